"""A live plot of training."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from castlereg.atomic_write import atomic_write, check_writable
from castlereg.training.callbacks import Epoch, Every

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_DRAWN = 40  # networks; the curves of more overlap
_LINE, _MEMBER, _BEST = "#1f6fb2", "#9db8d0", "#d9480f"


@dataclass
class LivePlot:
    """Draw the metrics of epochs while networks train: in a notebook, in a window, or into a file.

    Light lines are single networks, the strong line is their mean while all of them train, and a dot marks the best
    epoch of each network so far. The plot shows one stage of a fit at a time. Needs ``castlereg[plot]``.

    Parameters
    ----------
    path : str or path, optional
        File to overwrite with each update, such as ``"training.png"``. By default, the plot is shown below the cell of
        a notebook, or in a window if matplotlib can open one.
    metrics : sequence of str
        Columns of ``history_`` to draw, side by side.
    seconds : float
        Minimum time between two updates; the last epoch is always drawn.
    every : int, sequence of int or None
        Epochs to plot, see :data:`castlereg.training.callbacks.Every`.

    Attributes
    ----------
    figure : matplotlib Figure
        The last plot.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressor
    >>> from castlereg.callbacks import LivePlot
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     picture = pathlib.Path(folder) / "training.png"
    ...     model = CastleRegressor(max_epochs=9, random_state=0).fit(X, y, callbacks=[LivePlot(picture)])
    ...     picture.stat().st_size > 5000
    True
    """

    path: str | PathLike[str] | None = None
    metrics: Sequence[str] = ("objective", "validation_loss")
    seconds: float = 1.0
    every: Every = 1
    figure: Figure | None = field(init=False, repr=False, default=None)
    _epochs: list[Epoch] = field(init=False, repr=False, default_factory=list)
    _drawn_at: float = field(init=False, repr=False, default=0.0)
    _drawn: int = field(init=False, repr=False, default=0)  # epochs of the stage
    _shown: Any = field(init=False, repr=False, default=None)  # the display of a notebook

    def begin(self, estimator: Any) -> None:
        """Start with an empty plot."""
        pyplot = _pyplot()
        self.figure, self._epochs, self._drawn_at, self._drawn, self._shown = None, [], 0.0, 0, None
        if self.path is not None:
            check_writable(Path(self.path))
        elif not _in_notebook():
            window = pyplot.figure(figsize=self._size, layout="constrained")
            if window.canvas.required_interactive_framework is None:
                pyplot.close(window)
                raise ValueError("matplotlib cannot open a window here; pass a file, LivePlot('training.png')")
            self.figure = window

    def __call__(self, epoch: Epoch) -> None:
        """Record an epoch, and draw if it is time for an update."""
        for name in self.metrics:
            if name not in epoch.metrics:
                raise ValueError(f"metrics contains {name!r}, which is not one of {', '.join(epoch.metrics)}")
        if self._epochs and self._epochs[-1].stage != epoch.stage:
            self._epochs, self._drawn = [], 0
        self._epochs.append(epoch)
        if time.monotonic() - self._drawn_at >= self.seconds:
            self._draw()

    def end(self, estimator: Any, error: BaseException | None) -> None:
        """Draw the last epoch; a window stays open."""
        if error is None and self._drawn < len(self._epochs):
            self._draw()

    def _draw(self) -> None:
        figure = self._empty_figure()
        last = self._epochs[-1]
        numbers = np.array([epoch.number for epoch in self._epochs])
        for axes, name in zip(figure.subplots(1, len(self.metrics), squeeze=False)[0], self.metrics, strict=True):
            values = np.stack([epoch.metrics[name] for epoch in self._epochs])
            _draw_curves(axes, numbers, values, last.best_loss if name == "validation_loss" else None)
            axes.set(xlabel="epoch", title=name.replace("_", " "))
            axes.set_xlim(0, max(int(numbers[-1]) + 1, 5))
        best_loss = float(last.best_loss.min())
        known = f", best validation loss {best_loss:.4g}" if np.isfinite(best_loss) else ""
        figure.suptitle(f"{last.stage}: epoch {last.number} of at most {last.max_epochs}{known}", fontsize=10)
        self._show(figure)
        self._drawn_at, self._drawn = time.monotonic(), len(self._epochs)

    @property
    def _size(self) -> tuple[float, float]:
        return 4.2 * len(self.metrics), 3.2

    def _empty_figure(self) -> Figure:
        if self.path is None and not _in_notebook():
            assert self.figure is not None  # the window
            self.figure.clear()
            return self.figure
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=self._size, layout="constrained")
        FigureCanvasAgg(self.figure)
        return self.figure

    def _show(self, figure: Figure) -> None:
        if self.path is not None:
            with atomic_write(Path(self.path)) as file:
                figure.savefig(file, dpi=120, format=Path(self.path).suffix.lstrip(".") or "png")
        elif _in_notebook():
            from IPython.display import display

            if self._shown is None:
                self._shown = display(figure, display_id=True)
            else:
                self._shown.update(figure)
        else:
            figure.show()
            figure.canvas.draw_idle()
            figure.canvas.flush_events()


def _draw_curves(
    axes: Any,
    numbers: NDArray[np.int64],
    values: NDArray[np.floating[Any]],
    best_loss: NDArray[np.floating[Any]] | None,
) -> None:
    """Draw one metric, shape (epochs, members), with a dot at the best epoch of each member if it is known."""
    n_members = values.shape[1]
    colour, width = (_LINE, 1.6) if n_members == 1 else (_MEMBER, 0.8)
    for i in range(min(n_members, _MOST_DRAWN)):
        axes.plot(numbers, values[:, i], color=colour, lw=width)
        if best_loss is not None:
            best = values[:, i] == best_loss[i]
            axes.plot(numbers[best], values[best, i], "o", color=_BEST, ms=3.5, zorder=3)
    if n_members > 1:
        all_train = ~np.isnan(values).any(axis=1)
        axes.plot(numbers[all_train], values[all_train].mean(axis=1), color=_LINE, lw=2)
    axes.spines[["top", "right"]].set_visible(False)


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("LivePlot needs the package matplotlib: pip install 'castlereg[plot]'") from None
    return pyplot
