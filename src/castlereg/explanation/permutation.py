"""Permutation importance: how much the loss rises when one column is permuted among the rows."""

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
    """How much the loss of rows rises when one column is permuted.

    The loss is the squared error in units of the target's variance or the log loss in units of the class entropy, the
    mean over targets: 1 is the loss of the constant prediction, and ``1 - loss`` is what the model explains.

    Attributes
    ----------
    columns : tuple of str
    loss : float
        Of the rows as they are.
    increases : array of shape (columns, repeats)
        How much it rises with each permutation.
    """

    columns: tuple[str, ...]
    loss: float
    increases: NDArray[np.float64] = field(repr=False)

    @property
    def importances(self) -> NDArray[np.float64]:
        """The share of the loss explained through each column, shape (columns,).

        The mean increase divided by ``1 - loss``, as ``feature_importances_`` of an estimator, and not summing to 1
        either; zeros if the model explains nothing of these rows.
        """
        return self._shares(self.increases.mean(axis=1))

    def _shares(self, increases: NDArray[np.float64]) -> NDArray[np.float64]:
        return increases / (1 - self.loss) if self.loss < 1 else np.zeros(len(increases))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per column, the most important first.

        Columns: ``column``; ``importance``, see :attr:`importances`; ``std``, its standard deviation over permutations;
        ``loss_increase``, not divided by what the model explains.
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
            Where to draw; a new figure by default.
        most : int
            Columns to show, the most important ones.
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
    """Permute the columns of cells, shape (rows, columns), with the function of scikit-learn."""
    fitted = model.model_
    losses = RowLosses(fitted.targets, truth)
    n_columns = cells.shape[1]
    with tqdm(total=2 + n_columns * n_repeats, desc="permutations", delay=2, disable=not verbose) as bar:

        def score(_: NetworkEstimator, permuted: NDArray[np.float64], y: None) -> float:
            bar.update()
            with np.errstate(over="ignore"):  # a target that does not vary has no unit
                values = [of_target.mean(axis=0) for of_target in fitted.predict_values(permuted)]
                return -float(losses(values).mean())

        loss = -score(model, cells, None)
        result = inspection.permutation_importance(
            model, cells, None, scoring=score, n_repeats=n_repeats, random_state=seed
        )
    columns = tuple(column.name for column in fitted.preprocessing.schema)
    return PermutationImportance(columns, loss, np.asarray(result.importances, np.float64))
