"""Figures inside a page: what stands between two marks is written by a benchmark, and all else by hand."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
END = "<!-- end of figures -->\n"


def write_figures(page: Path, command: str, shown: str) -> None:
    """Replace what is between the marks of a command in a page."""
    before, _, after = _parts(page, command)
    page.write_text(f"{before}{shown.rstrip()}\n{after}", encoding="utf-8")


def read_figures(page: Path, command: str) -> str:
    """Return what is between the marks of a command in a page."""
    return _parts(page, command)[1]


def _parts(page: Path, command: str) -> tuple[str, str, str]:
    """Split a page into what stands before its figures, these, and what stands after them, with the marks outside."""
    start = f"<!-- figures: {command} -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(start)
    figures, closed, after = rest.partition(END)
    if not (found and closed):
        raise ValueError(f"{page} has no marks {start.strip()} and {END.strip()}")
    return before + start, figures, END + after
