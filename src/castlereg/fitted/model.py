"""The fitted model: everything that an estimator learns, in one immutable object."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from castlereg.fitted.blend import Blend
from castlereg.fitted.held_out import HeldOut, HeldOutPredictions
from castlereg.fitted.importances import column_importances
from castlereg.fitted.networks import Networks
from castlereg.regularizers import Regularizer
from castlereg.table.preprocessing import Preprocessing
from castlereg.table.reading import Columns
from castlereg.table.rows import Fold, Rows
from castlereg.table.table import Table
from castlereg.table.targets import ClassTarget, Target, TargetKind
from castlereg.training.further import Ongoing

if TYPE_CHECKING:
    import pandas as pd

    from castlereg.causal.graph import CausalGraph


@dataclass(frozen=True)
class FoldBook:
    """Record of cross-validation.

    ``errors`` has, for each fold with a network and each target, the errors on the rows that the fold left out: the
    absolute error for numbers, one minus the probability of the true class for classes.
    """

    folds: list[Fold]  # training rows and left-out rows, in the user's order of rows
    seeds: list[int]  # of each fold
    fold_of: NDArray[np.int64]  # (networks,), fold of each network of the model
    errors: list[list[NDArray[np.float64]]]
    results: dict[str, Any]  # scores, as scikit-learn's ``cv_results_``
    best: int  # index of the chosen candidate
    regularizers: tuple[Regularizer, ...]  # the chosen candidate


@dataclass(frozen=True)
class FittedModel:
    """Result of a fit."""

    networks: Networks  # with the preprocessing that they share; those that the graph comes from
    history: pd.DataFrame  # one row per network and epoch
    validation_loss: float  # mean over networks at their best epoch; for a pool, on held-out rows; NaN without any
    graph: CausalGraph | None = None  # None when only the targets' sub-networks were trained
    folds: FoldBook | None = None  # None without cross-validation
    held_out: HeldOutPredictions | None = field(default=None, compare=False, repr=False)  # not saved to files
    blend: Blend | None = None  # predicts instead of the networks, if there is one
    selected: tuple[int, ...] | None = None  # columns that a refit kept, in the user's order; None without one
    rows: Rows | None = field(default=None, compare=False, repr=False)  # of training, coded; not in files or pickles
    importance_rows: HeldOut | None = field(default=None, compare=False, repr=False)  # not in files or pickles
    stored_importances: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)  # without the rows
    ongoing: Ongoing | None = field(default=None, compare=False, repr=False)  # of partial_fit; not saved to files
    engine: str = "jax"  # engine of the training: "jax", "native", both ("jax, native"), or "torch"

    def __getstate__(self) -> dict[str, Any]:
        """Leave the training rows out of pickles, so that sharing a model does not share its data."""
        without_rows = {"rows": None, "importance_rows": None, "stored_importances": self.importances}
        return {**vars(self), **without_rows}

    def __deepcopy__(self, memo: Any) -> FittedModel:
        """Return the same object, which never changes; a copy of an estimator thus keeps the rows."""
        return self

    @property
    def predictor(self) -> Networks | Blend:
        """Networks or blend that predicts: one network, or a weighted mean of networks, per fold."""
        return self.networks if self.blend is None else self.blend

    @property
    def preprocessing(self) -> Preprocessing:
        """Preprocessing from rows to channels."""
        return self.networks.preprocessing

    @property
    def targets(self) -> tuple[Target, ...]:
        """Targets, with their names and values."""
        return self.preprocessing.targets

    @property
    def classes(self) -> list[NDArray[Any]]:
        """Classes of each target that has classes."""
        return [target.classes for target in self.targets if isinstance(target, ClassTarget)]

    @property
    def target_kinds(self) -> list[TargetKind]:
        """Whether each target is one of numbers or of classes."""
        return ["numbers" if target.is_numeric else "classes" for target in self.targets]

    @cached_property
    def importances(self) -> NDArray[np.float64] | None:
        """Share of the explained loss that depends on each column, in the user's order; None without held-out rows.

        Computed on first access; see :func:`castlereg.fitted.importances.column_importances`.
        """
        if self.importance_rows is None:
            return self.stored_importances
        return column_importances(self.predictor, self.importance_rows)

    def cells(self, columns: Columns, what: str = "X") -> NDArray[np.float64]:
        """Number the levels of columns as in training; warn about new levels and new missing values."""
        cells = self.preprocessing.cells(columns, what)
        if not (columns.complete and columns.has_values_only):
            self.preprocessing.warn_of_new_missing(cells, what)
        return cells

    def predict(self, columns: Columns) -> list[NDArray[np.float64]]:
        """Predict every target, the mean over networks: values (rows,) or probabilities (rows, classes)."""
        return self.predict_cells(self.cells(columns))

    def predict_cells(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Predict every target from :meth:`cells`, as :meth:`predict` does."""
        return [mean_of_members(values) for values in self.predictor.predict(cells)]

    def predict_by_fold(self, columns: Columns) -> list[NDArray[np.float64]]:
        """Predict every target with each fold's network: (folds, rows) or (folds, rows, classes)."""
        return self.predictor.predict(self.cells(columns))

    def predict_quantiles(self, columns: Columns) -> NDArray[np.float64]:
        """Predict all quantiles of every target, the mean over networks: (rows, targets, quantiles)."""
        return np.stack([mean_of_members(values) for values in self.predict_values(self.cells(columns))], axis=1)

    def predict_values(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Predict every target from :meth:`cells` with each fold; all outputs if the target has its own loss."""
        return self.predictor.predict_values(cells)

    def encoded(self, rows: Rows) -> Table:
        """Encode rows and their targets as inputs of the networks."""
        return self.preprocessing.table(self.preprocessing.coded(rows))

    def log_likelihood(self, rows: Rows) -> float:
        """Return the mean log-likelihood of rows over all columns, and over networks."""
        return float(self.networks.log_likelihoods(self.encoded(rows)).mean())


def mean_of_members(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over the first axis, summed in its order; NumPy's order depends on the number of rows."""
    total: NDArray[np.float64] = sum(values[1:], start=values[0])
    return total / len(values)


_CELLS_AT_ONCE = 4_000_000  # rows x left-out rows


def cv_plus(values: NDArray[np.float64], errors: Sequence[NDArray[np.float64]], coverage: float) -> NDArray[np.float64]:
    """Return the ends of the CV+ interval, shape (rows, 2).

    ``values`` are the predictions of each fold's network, shape (folds, rows); ``errors`` are its absolute errors on
    the rows that the fold left out.
    """
    n = sum(map(len, errors))
    rank = math.ceil(coverage * (n + 1))  # of n, from below for the upper and from above for the lower end
    ends = np.empty((values.shape[1], 2))
    if rank > n:
        ends[:] = -np.inf, np.inf
        return ends
    at_once = max(1, _CELLS_AT_ONCE // n)
    for start in range(0, len(ends), at_once):
        block = values[:, start : start + at_once]
        for side, sign in enumerate((-1.0, 1.0)):
            moved = np.concatenate([sign * v[:, None] + e for v, e in zip(block, errors, strict=True)], axis=1)
            ends[start : start + at_once, side] = sign * np.partition(moved, rank - 1, axis=1)[:, rank - 1]
    return ends


def class_sets(
    probabilities: NDArray[np.float64], errors: Sequence[NDArray[np.float64]], coverage: float
) -> NDArray[np.bool_]:
    """Return which classes cannot be ruled out, shape (folds, rows, classes) to (rows, classes).

    ``errors`` are one minus the probability of the true class, on the rows that each fold left out.
    """
    n = sum(map(len, errors))
    # In how many left-out rows the true class was found at least as improbable as this class here.
    as_far = sum(
        len(e) - np.searchsorted(np.sort(e), 1 - of_fold, side="left")
        for of_fold, e in zip(probabilities, errors, strict=True)
    )
    is_likely: NDArray[np.bool_] = n - as_far < coverage * (n + 1)
    return is_likely
