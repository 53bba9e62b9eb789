"""The code of docs/integrations.md runs, each section where its package is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"
NEEDED = {"DoWhy": "dowhy.gcm"}


def test_every_section_whose_code_needs_a_package_is_run() -> None:
    """Blocks marked ``python`` are run with all pages, by ``tests/test_examples.py``."""
    parts = re.split(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    marked = [title for title, text in zip(parts[1::2], parts[2::2], strict=True) if "```py\n" in text]
    assert marked == list(NEEDED)


def first_block(section: str) -> str:
    """Return the first Python block of a section; later ones download tables."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"```py(?:thon)?\n(.*?)```", text, flags=re.DOTALL)[0]


@pytest.mark.filterwarnings("default")  # of the packages
@pytest.mark.parametrize("section", NEEDED)
def test_code_of_the_guide_runs(section: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip(NEEDED[section])
    monkeypatch.chdir(tmp_path)
    exec(compile(first_block(section), str(PAGE), "exec"), {"__name__": "__main__"})
