"""Figures in pages are those of the files that benchmarks write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks import recovery_page, timings
from benchmarks.accuracy import page as accuracy
from benchmarks.effects import page as effects
from benchmarks.engines import page as engines
from benchmarks.marked_figures import DOCS, read_figures, write_figures
from paper import reproduce as paper

PAGES = [
    (DOCS / "speed.md", engines.COMMAND, engines.figures),
    (DOCS.parent / "README.md", accuracy.COMMAND, accuracy.readme_ranks),
    (DOCS / "speed.md", timings.COMMAND, timings.figures),
    (DOCS / "when_it_pays.md", paper.COMMAND, paper.gains_and_rule),
    (DOCS / "technical_report.md", paper.COMMAND, paper.verdicts_and_ranks),
]
WHOLE_PAGES = {
    "accuracy": accuracy.page_text,
    "effects": effects.page_text,
    "recovery": recovery_page.page_text,
    "results": paper.results_page,
}


@pytest.mark.parametrize(
    ("page", "command", "figures"), PAGES, ids=[f"{page.name}: {command}" for page, command, _ in PAGES]
)
def test_a_page_has_the_figures_of_its_file(page: Path, command: str, figures: Callable[[], str]) -> None:
    assert read_figures(page, command).strip() == figures().strip(), f"run: {command}"


@pytest.mark.parametrize("name", WHOLE_PAGES)
def test_a_page_is_what_its_files_make(name: str) -> None:
    assert (DOCS / f"{name}.md").read_text(encoding="utf-8") == WHOLE_PAGES[name](), "run its benchmark's page command"


def test_the_rule_of_advice_is_what_its_results_make() -> None:
    assert paper.RULE.read_text(encoding="utf-8") == paper.rule_text(), f"run: {paper.COMMAND}"


def test_only_what_is_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- figures: make figures -->\nold\n<!-- end of figures -->\nafter\n", encoding="utf-8")
    write_figures(page, "make figures", "new")
    assert page.read_text(encoding="utf-8").splitlines()[::2] == ["before", "new", "after"]
    with pytest.raises(ValueError, match="has no marks"):
        write_figures(page, "make others", "new")
