"""Column importances: the share of a model's explained loss that depends on each column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from castlereg.fitted.held_out import HeldOut, Predictor, mean_values
from castlereg.fitted.row_losses import RowLosses
from castlereg.notices import shows_progress

_REPEATS = 5
_MOST_CELLS = 500_000  # rows x columns x repeats that are permuted: a second or so for most networks
_FEWEST_ROWS = 200  # however many columns


def importance_rows(held_out: HeldOut) -> HeldOut:
    """Keep the rows that importances are measured on: all, or evenly spaced ones of long or wide tables."""
    return held_out.evenly_spaced(max(_FEWEST_ROWS, _MOST_CELLS // max(held_out.cells.shape[1], 1)))


def column_importances(predictor: Predictor, held_out: HeldOut) -> NDArray[np.float64]:
    """Return the share of the explained loss that depends on each column, shape (features,), in the user's order.

    ``loss`` is the mean loss of held-out rows, each predicted by the networks that were not trained on it, and
    ``loss[j]`` is the same after the cells of column j are permuted among the rows::

        importance[j] = (loss[j] - loss) / (1 - loss)

    Losses are those of :class:`castlereg.fitted.row_losses.RowLosses`, where 1 is the loss of the constant prediction;
    ``1 - loss`` is the explained loss. ``loss[j]`` is the mean over five permutations, fewer for large tables.

    Parameters
    ----------
    predictor : Networks or Blend
    held_out : HeldOut
        See :func:`importance_rows`.

    Notes
    -----
    All columns use the same permutations, with fixed seeds, so that the order of the columns does not matter. A model
    that is not better than the constant prediction explains nothing: all importances are 0.
    """
    n_rows, n_columns = held_out.cells.shape
    losses = RowLosses(predictor.preprocessing.targets, held_out.truth, held_out.weight)
    members = [predictor.of_members(np.array([member])) for member in range(len(held_out.by_member))]

    def loss(cells: NDArray[np.float64]) -> float:
        with np.errstate(over="ignore"):  # a target that does not vary in these rows has no unit
            return float(losses(mean_values(members, cells, held_out.by_member)).mean())

    before = loss(held_out.cells)
    importances = np.zeros(n_columns)
    if not before < 1:
        return importances
    repeats = int(np.clip(_MOST_CELLS // held_out.cells.size, 1, _REPEATS))
    permutations = [np.random.default_rng(repeat).permutation(n_rows) for repeat in range(repeats)]
    cells = held_out.cells.copy()
    bar = tqdm(range(n_columns), desc="importances", unit="column", delay=3, disable=not shows_progress(None))
    for j in bar:
        column = held_out.cells[:, j]
        if (column == column[0]).all():
            continue
        after = []
        for permutation in permutations:
            cells[:, j] = column[permutation]
            after.append(loss(cells))
        cells[:, j] = column
        importances[j] = (np.mean(after) - before) / (1 - before)
    return importances
