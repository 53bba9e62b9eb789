"""The picture of training: what its curves show, and where it goes."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from castlereg.callbacks import LivePlot
from tests.callbacks.cases import fit


def lines(plot: LivePlot, panel: int) -> list[tuple[np.ndarray, np.ndarray]]:
    assert plot.figure is not None
    return [(np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in plot.figure.axes[panel].lines]


def test_curves_are_those_of_the_history(tmp_path: Path) -> None:
    plot = LivePlot(tmp_path / "training.png")
    model = fit(plot)
    assert (tmp_path / "training.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    for panel, name in enumerate(("objective", "validation_loss")):
        drawn = lines(plot, panel)
        by_member = [rows[name].to_numpy() for _, rows in model.history_.groupby("member")]
        curves = [line for line in drawn if len(line[0]) == 3]
        np.testing.assert_allclose([curve for _, curve in curves], [*by_member, np.mean(by_member, axis=0)], rtol=1e-6)
        assert list(curves[0][0]) == [1, 2, 3]
    dots = [(int(x[0]), y[0]) for x, y in lines(plot, 1) if len(x) == 1]
    best = model.history_.loc[model.history_.groupby("member")["validation_loss"].idxmin()]
    assert dots == list(zip(best["epoch"], best["validation_loss"], strict=True))
    assert plot.figure is not None
    assert plot.figure.get_suptitle().startswith("training: epoch 3 of at most 3, best validation loss ")
    assert not mpl.pyplot.get_fignums(), "no figure of the user's should be touched"


def test_a_stage_has_its_own_picture(tmp_path: Path) -> None:
    plot = LivePlot(tmp_path / "training.svg", metrics=["supervised"], seconds=1e9)
    fit(plot, refit=True)
    assert plot.figure is not None
    assert plot.figure.get_suptitle().startswith("refit: epoch 3") and len(plot.figure.axes) == 1
    assert "<svg" in (tmp_path / "training.svg").read_text()


def test_a_notebook_shows_one_picture_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    class Handle:
        def update(self, figure: Any) -> None:
            shown.append(figure)

    def display(figure: Any, display_id: bool) -> Handle:
        assert display_id and not shown
        shown.append(figure)
        return Handle()

    import matplotlib.pyplot  # noqa: F401  # asks IPython for more than a display when it is first imported

    mpl.use("agg")
    notebook = types.ModuleType("IPython.display")
    notebook.display = display  # type: ignore[attr-defined]
    notebook.version_info = (9, 0)  # type: ignore[attr-defined]
    notebook.get_ipython = lambda: None  # type: ignore[attr-defined]
    for name, module in (("ipykernel", notebook), ("IPython", notebook), ("IPython.display", notebook)):
        monkeypatch.setitem(sys.modules, name, module)
    fit(LivePlot(seconds=0))
    assert len(shown) == 3


def test_what_cannot_be_drawn_raises_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpl.use("agg")
    with pytest.raises(ValueError, match=r"matplotlib cannot open a window here; pass a file, LivePlot\('training"):
        fit(LivePlot())
    with pytest.raises(FileNotFoundError, match="create the folder"):
        fit(LivePlot(tmp_path / "nowhere" / "training.png"))
    with pytest.raises(ValueError, match="metrics contains 'loss', which is not one of objective, supervised"):
        fit(LivePlot(tmp_path / "training.png", metrics=["loss"]))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'castlereg\[plot\]'"):
        fit(LivePlot(tmp_path / "training.png"))
