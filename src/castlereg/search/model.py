"""The fitted model: everything that an estimator learns, in one immutable object."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from castlereg.layout import EdgeRules
from castlereg.notices import shows_progress
from castlereg.regularizers import Regularizer
from castlereg.search.held_out import HeldOut, column_importances, evenly, importance_rows, sparsest_threshold
from castlereg.search.networks import Blend, Networks, mean_over_members
from castlereg.table.encoding import Encoded, Preprocessing, Rows
from castlereg.table.reading import Columns
from castlereg.table.splits import Fold
from castlereg.table.targets import ClassTarget, Target, TargetKind

if TYPE_CHECKING:
    import pandas as pd

    from castlereg.causal import CausalGraph, InputGraph

_MOST_SAVED_ROWS = 2000  # enough to discover the graph, and to fit its equations


@dataclass(frozen=True)
class HeldOutPredictions:
    """True values of held-out rows, and the mean prediction of the networks that were not trained on them.

    Each target has values of shape (rows,), and predictions of shape (rows,) or (rows, classes).
    """

    truth: Sequence[NDArray[Any]]
    predicted: Sequence[NDArray[np.float64]]


@dataclass(frozen=True)
class FoldRecord:
    """Record of cross-validation.

    ``errors`` has, for each fold with a network and each target, the errors on the rows that the fold left out: the
    absolute error for numbers, one minus the probability of the true class for classes.
    """

    folds: list[Fold]  # training rows and left-out rows, in the user's order of rows
    seeds: list[int]  # of each fold
    fold_of: NDArray[np.int64]  # (networks,), fold of each network of the model
    errors: list[list[NDArray[np.float64]]]
    results: dict[str, Any]  # scores, as scikit-learn's ``cv_results_``, with further columns
    best: int  # index of the chosen candidate
    regularizers: tuple[Regularizer, ...] | None  # the chosen candidate; None if only pickle could store it


@dataclass(frozen=True)
class FittedModel:
    """Result of a fit.

    The graph, the input graph and the importances are computed when they are first asked for, from rows that are held
    in memory. Files and pickles have at most 2,000 of the training rows, and the results that need more.
    """

    blend: Blend  # predicts
    networks: Networks  # of the chosen CASTLE candidate, which have the input graph; else those of the best candidate
    history: pd.DataFrame  # one row per network and epoch
    validation_loss: float  # mean over networks at their best epoch; for a blend of several, on held-out rows
    engine: str  # of the training: "jax", "native", both ("jax, native"), or "" if nothing was trained
    graph_seed: int = 0  # of the discovery
    folds: FoldRecord | None = None  # None without cross-validation
    selected: tuple[int, ...] | None = None  # columns that a refit kept; None without one
    edges: EdgeRules | None = None  # what the user knows about the graph
    rows: Rows | None = field(default=None, compare=False, repr=False)  # of training, coded
    known_graph: CausalGraph | None = field(default=None, compare=False, repr=False)  # passed to fit, or found before
    known_input_graph: InputGraph | None = field(default=None, compare=False, repr=False)
    known_importances: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
    # Only in memory.
    held_out: HeldOutPredictions | None = field(default=None, compare=False, repr=False)
    held_out_rows: HeldOut | None = field(default=None, compare=False, repr=False)

    def for_file(self, *, rows: bool = True) -> FittedModel:
        """Return the model as files and pickles hold it, with at most 2,000 training rows, or without rows."""
        return replace(
            self,
            rows=self.sampled_rows if rows else None,
            known_graph=self.graph if not rows or "graph" in vars(self) else self.known_graph,
            known_input_graph=self.input_graph,
            known_importances=self.importances,
            held_out=None,
            held_out_rows=None,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave most rows out of pickles, which are sent between processes."""
        return {name: getattr(self.for_file(), name) for name in type(self).__dataclass_fields__}

    def __deepcopy__(self, memo: Any) -> FittedModel:
        """Return the same object, which never changes; a copy of an estimator thus keeps the rows."""
        return self

    @property
    def preprocessing(self) -> Preprocessing:
        """Preprocessing from rows to channels."""
        return self.networks.preprocessing

    @property
    def targets(self) -> tuple[Target, ...]:
        """Targets, with their names and values."""
        return self.preprocessing.targets

    @property
    def names(self) -> list[str]:
        """Names of all nodes: the columns, then the targets."""
        return [column.name for column in (*self.preprocessing.schema, *self.targets)]

    @property
    def classes(self) -> list[NDArray[Any]]:
        """Classes of each target that has classes."""
        return [target.classes for target in self.targets if isinstance(target, ClassTarget)]

    @property
    def target_kinds(self) -> list[TargetKind]:
        """Whether each target is one of numbers or of classes."""
        return ["numbers" if target.is_numeric else "classes" for target in self.targets]

    @property
    def sampled_rows(self) -> Rows | None:
        """At most 2,000 of the training rows, evenly spaced."""
        rows = self.rows
        if rows is not None and len(rows) > _MOST_SAVED_ROWS:
            rows = rows.take(evenly(np.arange(len(rows)), _MOST_SAVED_ROWS))
        if rows is None or rows.columns.rows is None:
            return rows
        return replace(rows, columns=replace(rows.columns, values=rows.columns.cells, rows=None))  # not a view

    # --- what is computed from rows when it is first asked for ------------------------------------

    @cached_property
    def graph(self) -> CausalGraph | None:
        """The causal graph, discovered from training rows under the user's knowledge; None without rows."""
        rows, known = self.sampled_rows, self.known_graph
        if rows is None:
            return known
        from castlereg.causal import discover_graph
        from castlereg.causal.discovery import Source

        if known is None:
            options: dict[str, Any] = {"seed": self.graph_seed, "progress": shows_progress(None)}
            return discover_graph(self.preprocessing, rows, edges=self.edges, **options)
        is_given = self.edges is not None and np.array_equal(self.edges.allowed, self.edges.required)
        if known.source is not None or is_given:  # a graph that the user gave was not discovered
            return known
        return known.discovered_from(Source.of(self.preprocessing, rows, self.edges, self.graph_seed))

    @cached_property
    def input_graph(self) -> InputGraph | None:
        """The paper's graph of the CASTLE networks; None if only the targets' sub-networks were trained.

        The weight of an edge is the norm of its input weights (eq. 7). The threshold is the highest that costs no
        accuracy on held-out rows, or the smallest weight of a strong edge if that is lower.
        """
        if self.known_input_graph is not None or self.held_out_rows is None or not self.networks.has_all_nodes:
            return self.known_input_graph
        from castlereg.acyclicity.cut import acyclic_cut, weakest_strong_weight
        from castlereg.causal import InputGraph

        weights = self.networks.edge_weights()
        mean = np.asarray(weights.mean(axis=0))
        required = None if self.edges is None else self.edges.required
        threshold = min(
            sparsest_threshold(self.networks, mean, self.held_out_rows),
            weakest_strong_weight(acyclic_cut(mean, required)),
        )
        targets = [target.name for target in self.targets]
        return InputGraph.from_networks(weights, self.names, targets, threshold=threshold, required=required)

    @cached_property
    def importances(self) -> NDArray[np.float64] | None:
        """Share of the explained loss that depends on each column; None without held-out rows."""
        if self.known_importances is not None or self.held_out_rows is None:
            return self.known_importances
        return column_importances(self.blend, importance_rows(self.held_out_rows))

    # --- predictions ------------------------------------------------------------------------------

    def cells(self, columns: Columns, what: str = "X") -> NDArray[np.float64]:
        """Code the cells of a table as in training; warn about new levels and new missing values."""
        cells = self.preprocessing.cells(columns, what)
        if not columns.complete:
            self.preprocessing.warn_of_new_missing(cells, what)
        return cells

    def predict(self, columns: Columns) -> list[NDArray[np.float64]]:
        """Predict every target, the mean over networks: values (rows,) or probabilities (rows, classes)."""
        return self.predict_cells(self.cells(columns))

    def predict_cells(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Predict every target from :meth:`cells`, as :meth:`predict` does."""
        return [mean_over_members(values) for values in self.blend.predict(cells)]

    def predict_by_fold(self, columns: Columns) -> list[NDArray[np.float64]]:
        """Predict every target with each fold's network: (folds, rows) or (folds, rows, classes)."""
        return self.blend.predict(self.cells(columns))

    def predict_quantiles(self, columns: Columns) -> NDArray[np.float64]:
        """Predict all quantiles of every target, the mean over networks: (rows, targets, quantiles)."""
        values = self.blend.predict_values(self.cells(columns))
        return np.stack([mean_over_members(quantiles) for quantiles in values], axis=1)

    def encoded(self, rows: Rows) -> Encoded:
        """Encode rows and their targets as inputs of the networks."""
        return self.preprocessing.encoded(self.preprocessing.coded(rows))


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
        len(e) - np.searchsorted(np.sort(e), 1 - fold_probabilities, side="left")
        for fold_probabilities, e in zip(probabilities, errors, strict=True)
    )
    is_likely: NDArray[np.bool_] = n - as_far < coverage * (n + 1)
    return is_likely
