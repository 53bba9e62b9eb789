"""The code of docs/integrations.md runs, each section where its packages are installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"
NEEDED = {
    "AutoGluon": ("autogluon.tabular",),
    "TabArena": ("tabarena",),
    "pytabkit": (),
}  # sections with code that runs


def sections() -> dict[str, list[str]]:
    """Return the Python blocks of each section."""
    parts = re.split(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    blocks = [re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) for text in parts[2::2]]
    return dict(zip(parts[1::2], blocks, strict=True))


def test_every_section_with_code_is_run() -> None:
    assert [section for section, blocks in sections().items() if blocks] == list(NEEDED)


@pytest.mark.filterwarnings("default")  # of the packages
@pytest.mark.parametrize("section", NEEDED)
def test_code_of_the_guide_runs(section: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for package in NEEDED[section]:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    made = {"__name__": "__main__"}
    for block in sections()[section]:
        exec(compile(block, str(PAGE), "exec"), made)
