"""Permutation importance: the increase of the loss when one column is permuted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import inspection
from tqdm.auto import tqdm

from castlereg.estimators.base import NetworkEstimator
from castlereg.explanation.bars import draw_bars
from castlereg.fitted.row_losses import RowLosses

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class PermutationImportance:
    """The increase of the loss over rows when one column is permuted.

    The loss is the squared error in units of the target's variance, or the log loss in units of the class entropy,
    averaged over targets: 1 is the loss of a constant prediction, and the model explains ``1 - loss``.

    Attributes
    ----------
    columns : tuple of str
    loss : float
        Loss without a permutation.
    increases : array of shape (columns, repeats)
        Increase of the loss with each permutation.
    """

    columns: tuple[str, ...]
    loss: float
    increases: NDArray[np.float64] = field(repr=False)

    @property
    def importances(self) -> NDArray[np.float64]:
        """The share of the loss explained through each column, shape (columns,).

        The mean increase divided by ``1 - loss``. Like ``feature_importances_`` of an estimator, these values do not
        sum to 1. They are zero if the model explains nothing on these rows.
        """
        return self._shares(self.increases.mean(axis=1))

    def _shares(self, increases: NDArray[np.float64]) -> NDArray[np.float64]:
        return increases / (1 - self.loss) if self.loss < 1 else np.zeros(len(increases))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per column, the most important first.

        The frame has the columns ``column``; ``importance``, see :attr:`importances`; ``std``, its standard deviation
        over permutations; and ``loss_increase``, the mean increase of the loss.
        """
        frame = pd.DataFrame(
            {
                "column": self.columns,
                "importance": self.importances,
                "std": self._shares(self.increases.std(axis=1)),
                "loss_increase": self.increases.mean(axis=1),
            }
        )
        return frame.sort_values("loss_increase", ascending=False, kind="stable", ignore_index=True)

    def plot(self, ax: Axes | None = None, *, most: int = 20) -> Axes:
        """Draw the importances as bars, with the standard deviation over permutations. Needs ``castlereg[plot]``.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default new axes.
        most : int
            Maximum number of columns; the most important are drawn.
        """
        frame = self.to_frame()
        bars = [frame["importance"].to_numpy()]
        label = "share of the loss explained through the column"
        return draw_bars(frame["column"].tolist(), bars, label, ax, most, spread=frame["std"].to_numpy())

    def __str__(self) -> str:
        return str(self.to_frame().to_string(index=False, float_format="{:.3f}".format))


def permutation_importance(
    model: NetworkEstimator,
    cells: NDArray[np.float64],
    truth: Sequence[NDArray[Any]],
    n_repeats: int,
    seed: int,
    verbose: bool,
) -> PermutationImportance:
    """Permute the columns of cells, shape (rows, columns), with scikit-learn's function."""
    fitted = model.model_
    losses = RowLosses(fitted.targets, truth)
    n_columns = cells.shape[1]
    with tqdm(total=2 + n_columns * n_repeats, desc="permutations", delay=2, disable=not verbose) as bar:

        def score(_: NetworkEstimator, permuted: NDArray[np.float64], y: None) -> float:
            bar.update()
            with np.errstate(over="ignore"):  # a constant target has a unit of zero
                values = [of_target.mean(axis=0) for of_target in fitted.predict_values(permuted)]
                return -float(losses(values).mean())

        loss = -score(model, cells, None)
        result = inspection.permutation_importance(
            model, cells, None, scoring=score, n_repeats=n_repeats, random_state=seed
        )
    columns = tuple(column.name for column in fitted.preprocessing.schema)
    return PermutationImportance(columns, loss, np.asarray(result.importances, np.float64))
