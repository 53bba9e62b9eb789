"""Figures inside a page: benchmarks write the text between two marks, and the rest is written by hand."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
END = "<!-- end of figures -->\n"


def write_figures(page: Path, command: str, shown: str) -> None:
    """Replace the text between the marks of a command in a page."""
    before, _, after = _parts(page, command)
    page.write_text(f"{before}{shown.rstrip()}\n{after}", encoding="utf-8")


def read_figures(page: Path, command: str) -> str:
    """Return the text between the marks of a command in a page."""
    return _parts(page, command)[1]


def _parts(page: Path, command: str) -> tuple[str, str, str]:
    """Split a page into the text before the figures, the figures, and the text after them; marks are outside."""
    start = f"<!-- figures: {command} -->\n"
    before, opening, remaining = page.read_text(encoding="utf-8").partition(start)
    figures, closing, after = remaining.partition(END)
    if not (opening and closing):
        raise ValueError(f"{page} has no marks {start.strip()} and {END.strip()}")
    return before + start, figures, END + after
