"""The demo, the examples and the code of the pages run; ``make docs`` writes what they print."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from tests.fitted_models import short_pools

ROOT = Path(__file__).parents[1]


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_demo_writes_its_pictures_and_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mpl.use("agg")
    errors = example("diabetes").main(tmp_path, n_splits=1, max_epochs=15, report_folds=2)
    printed = capsys.readouterr().out
    assert errors["mean error"].idxmin() == "castlereg, search"
    for edge in (r"cholesterol +ldl", r"log triglycerides +ldl", r"bmi +progression"):
        assert re.search(edge, printed)
    assert "-2 in bmi changes the mean of progression by -" in printed
    for name in ("graph.png", "effect.png"):
        assert (tmp_path / name).stat().st_size > 10_000
    assert f"Report: {tmp_path / 'report.html'}" in printed
    assert "What predicts progression" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("healthcare", {}),
        ("housing", {}),
        ("marketing", {"n_splits": 1, "methods": ("Baseline", "CASTLE")}),
        ("noisy_columns", {"n_draws": 1}),
        ("knowledge", {}),
        ("what_if", {}),
        ("own_loop", {}),
    ],
)
def test_examples_of_the_gallery_run(
    name: str, options: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mpl.use("agg")
    drawn = example(name).main(tmp_path, max_epochs=2, **options)
    printed = capsys.readouterr().out
    assert drawn or "CASTLEREG_DATA" in printed
    assert all(path.stat().st_size > 5_000 for path in drawn)


@pytest.mark.parametrize("name", ["housing", "marketing"])
def test_examples_without_their_table_say_so(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("CASTLEREG_DATA", "XDG_DATA_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    assert example(name).main(tmp_path, max_epochs=2) == []
    assert "CASTLEREG_DATA" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "needed"), [("torch_loop", "torch"), ("torch_skorch", "skorch")])
def test_examples_in_pytorch_run(name: str, needed: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip(needed)
    example(name).main(max_epochs=5)
    printed = capsys.readouterr().out
    assert "test" in printed
    assert len(printed.splitlines()) >= 3  # the graph has edges


outputs = example("page_outputs")
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if "```python\n" in page.read_text(encoding="utf-8") or page in outputs.pages_with_output()
]
_NEEDED = {"explain": "shap", "torch": "torch", "deployment": "fastapi"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_of_the_pages_runs(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From top to bottom, with few epochs; each output has a place on the page if there is one."""
    mpl.use("agg")
    if page.stem in _NEEDED:
        pytest.importorskip(_NEEDED[page.stem])
    monkeypatch.chdir(tmp_path)
    with short_pools():
        for shown, printed in outputs.printed(page):
            assert shown is None or printed, "the page shows an output of code that prints nothing"
    plt.close("all")
