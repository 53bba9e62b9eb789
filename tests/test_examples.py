"""The demo and the README's code run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from castlereg.comparison import PAPER_METHODS

ROOT = Path(__file__).parents[1]


def test_demo_writes_its_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mpl.use("agg")
    spec = importlib.util.spec_from_file_location("diabetes", ROOT / "examples" / "diabetes.py")
    assert spec is not None
    assert spec.loader is not None
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    result = demo.main(tmp_path, max_epochs=15)
    printed = capsys.readouterr().out
    assert all(method in printed for method in PAPER_METHODS)
    assert result.to_frame().loc["CASTLE", "MSE"] < 1  # better than the mean
    for name in ("comparison.png", "graph.png", "training.png"):
        assert (tmp_path / name).stat().st_size > 10_000


PAGES = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in (
            "regularizers",
            "tables",
            "choosing",
            "graph",
            "bound",
            "datasets",
            "synthetic",
            "experiments",
            "big_data",
        )
    ),
]


@pytest.mark.parametrize("page", PAGES)
def test_code_of_the_pages_runs(page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From top to bottom, later blocks using what earlier ones made."""
    mpl.use("agg")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    made = {"__name__": "__main__"}  # dataclasses look their module up
    for block in blocks:
        exec(compile(block, page, "exec"), made)
    plt.close("all")
