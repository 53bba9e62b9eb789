"""The demo and the README's code run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parents[1]


def test_demo_writes_its_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mpl.use("agg")
    spec = importlib.util.spec_from_file_location("diabetes", ROOT / "examples" / "diabetes.py")
    assert spec is not None
    assert spec.loader is not None
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    errors = demo.main(tmp_path, max_epochs=15)
    printed = capsys.readouterr().out
    assert "CASTLE" in printed
    assert "plain network" in printed
    assert errors.loc["CASTLE"].iloc[0] < errors.loc["mean of y"].iloc[0]
    for name in ("graph.png", "training.png"):
        assert (tmp_path / name).stat().st_size > 10_000


def test_readme_code_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mpl.use("agg")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
