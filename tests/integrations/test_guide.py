"""The code of docs/integrations.md runs, each section where its packages are installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sklearn.datasets import load_diabetes

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"
NEEDED = {
    "scikit-learn": (),
    "Optuna": ("optuna", "optuna_integration"),
    "AutoGluon": ("autogluon.tabular",),
    "TabArena": ("tabarena",),
    "pytabkit": (),
}


def sections() -> dict[str, str]:
    parts = re.split(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_section_is_run() -> None:
    assert list(sections()) == list(NEEDED)


@pytest.mark.filterwarnings("default")  # of the packages
@pytest.mark.parametrize("section", NEEDED)
def test_code_of_the_guide_runs(section: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for package in NEEDED[section]:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    made = {"__name__": "__main__", "X": X, "y": y}  # of the sections above
    blocks = re.findall(r"```python\n(.*?)```", sections()[section], flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), made)
