"""Log training in TensorBoard."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from castlereg.callbacks.figures import figures_of, file_name, final_figures, mean_figures
from castlereg.training.callbacks import Epoch, Every


@dataclass
class TensorBoard:
    """Write the metrics of epochs for TensorBoard; ``tensorboard --logdir FOLDER`` shows them.

    Every stage of a fit is a separate run, a folder in ``folder``, with the mean of each metric over its networks and
    the lowest validation loss so far. The folder itself has the validation loss of the fitted model and the number of
    edges of its graph. Needs tensorboardX (``castlereg[tensorboard]``), or PyTorch with tensorboard.

    Parameters
    ----------
    folder : str or path
        Folder of the runs; use a different one for each fit.
    each : bool
        Whether to write a run for every network too.
    every : int, sequence of int or None
        Epochs to write, see :data:`castlereg.training.callbacks.Every`.

    Examples
    --------
    ::

        model.fit(X, y, callbacks=[TensorBoard("runs/first")])
    """

    folder: str | PathLike[str]
    each: bool = False
    every: Every = 1
    _writers: dict[Path, Any] = field(init=False, repr=False, default_factory=dict)
    _last: int = field(init=False, repr=False, default=0)

    def begin(self, estimator: Any) -> None:
        """Check that a package that writes TensorBoard's files is installed."""
        _writer_class()
        self._writers = {}

    def __call__(self, epoch: Epoch) -> None:
        """Write the metrics of an epoch."""
        run = Path(self.folder) / file_name(epoch.stage)
        if run not in self._writers:  # a stage ends when the next one begins
            self._close()
        self._write(run, mean_figures(epoch), epoch.number)
        if self.each:
            for i, member in enumerate(epoch.members):
                self._write(run / file_name(member), figures_of(epoch, i), epoch.number)
        self._last = epoch.number

    def end(self, estimator: Any, error: BaseException | None) -> None:
        """Write the final metrics of the fitted model, and close the files."""
        if error is None:
            self._write(Path(self.folder), final_figures(estimator), self._last)
        self._close()

    def _write(self, run: Path, figures: dict[str, float], step: int) -> None:
        if figures and run not in self._writers:
            self._writers[run] = _writer_class()(str(run))
        for name, value in figures.items():
            self._writers[run].add_scalar(name, value, step)

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers = {}


def _writer_class() -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        try:
            from torch.utils.tensorboard import SummaryWriter  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise ImportError(
                "TensorBoard needs the package tensorboardX: pip install 'castlereg[tensorboard]'"
            ) from None
    return SummaryWriter
