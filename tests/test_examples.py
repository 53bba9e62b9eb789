"""The demo and the README's code run."""

from __future__ import annotations

import contextlib
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
    for edge in ("cholesterol               ldl", "log triglycerides               ldl", "bmi       progression"):
        assert edge in printed
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
_NEEDED = {"report": "shap", "torch": "torch", "deployment": "fastapi"}
_NUMBER = re.compile(r"-?\d+\.\d*(?:e-?\d+)?")


@pytest.mark.filterwarnings("ignore:X has columns that are not used")  # docs/tables.md drops an identifier
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_of_the_pages_runs_and_prints_what_they_show(
    page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From top to bottom; networks train as long as users wait only on pages that show outputs."""
    mpl.use("agg")
    if page.stem in _NEEDED:
        pytest.importorskip(_NEEDED[page.stem])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # workers compile as this process does: same bits
    with contextlib.nullcontext() if page in outputs.pages_with_output() else short_pools():
        for shown, printed in outputs.printed(page):
            if shown is not None:
                assert same_output(shown, printed), f"run: python examples/page_outputs.py {page}\n{printed}"
    plt.close("all")


def same_output(shown: str, printed: str) -> bool:
    """Compare words and whole numbers exactly, decimals to a twentieth: machines round differently while they train."""
    decimals = [[float(number) for number in _NUMBER.findall(text)] for text in (shown, printed)]
    words = [_NUMBER.sub("#", text).split() for text in (shown, printed)]
    return words[0] == words[1] and decimals[0] == pytest.approx(decimals[1], rel=0.05, abs=0.02)


@pytest.mark.parametrize(
    ("shown", "printed", "is_same"),
    [
        ("R2 0.512\n", "R2  0.520\n", True),
        ("R2 0.512\n", "R2 0.600\n", False),
        ("['bmi', 's5']\n", "['bmi', 's6']\n", False),
        ("12 edges\n", "13 edges\n", False),
        ("-2 units\n", "2 units\n", False),
        ("[121. 297.]\n", "[122. 296.]\n", True),
        ("a 1.0\n", "a 1.0 2.0\n", False),
    ],
)
def test_outputs_are_compared(shown: str, printed: str, is_same: bool) -> None:
    assert same_output(shown, printed) is is_same
