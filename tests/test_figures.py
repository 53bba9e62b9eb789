"""Figures in pages are those of the files that benchmarks write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.clusters import page as clusters
from benchmarks.engines import page as engines
from benchmarks.marked_figures import DOCS, read_figures, write_figures
from benchmarks.torch_loop import page as torch_loop

PAGES = [
    (DOCS / "speed.md", engines.COMMAND, engines.figures),
    (DOCS / "speed.md", clusters.COMMAND, clusters.figures),
    (DOCS / "speed.md", torch_loop.COMMAND, torch_loop.figures),
    (DOCS.parent / "README.md", engines.COMMAND, engines.against_peer),
]


@pytest.mark.parametrize(
    ("page", "command", "figures"), PAGES, ids=[f"{page.name}: {command}" for page, command, _ in PAGES]
)
def test_a_page_has_the_figures_of_its_file(page: Path, command: str, figures: Callable[[], str]) -> None:
    assert read_figures(page, command).strip() == figures().strip(), f"run: {command}"


def test_only_what_is_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- figures: make figures -->\nold\n<!-- end of figures -->\nafter\n", encoding="utf-8")
    write_figures(page, "make figures", "new")
    assert page.read_text(encoding="utf-8").splitlines()[::2] == ["before", "new", "after"]
    with pytest.raises(ValueError, match="has no marks"):
        write_figures(page, "make others", "new")
