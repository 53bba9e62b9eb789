"""Figures inside a page: what stands between two marks is written by a benchmark, and all else by hand."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
END = "<!-- end of figures -->\n"


def write_figures(page: Path, command: str, shown: str) -> None:
    """Replace what is between the marks of a command in a page."""
    start = f"<!-- figures: {command} -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(start)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise ValueError(f"{page} has no marks {start.strip()} and {END.strip()}")
    page.write_text(f"{before}{start}{shown.rstrip()}\n{END}{after}", encoding="utf-8")
