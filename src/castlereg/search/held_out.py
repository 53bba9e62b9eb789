"""Held-out rows: their predictions and losses, the columns that they show to be needed, and column importances.

Every row is predicted by the networks that were not trained on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from castlereg.notices import shows_progress
from castlereg.search.networks import Blend, Networks
from castlereg.table.encoding import Rows
from castlereg.table.targets import ClassTarget, Target

_MOST_ROWS = 20_000  # enough to estimate a mean loss; of more rows, evenly spaced ones are used
_MOST_THRESHOLDS = 32
_REPEATS = 5  # permutations of a column
_MOST_CELLS = 500_000  # rows x columns x repeats that are permuted: a second or so for most networks
_FEWEST_ROWS = 200  # for importances, however many columns


_Predictor = Networks | Blend


@dataclass(frozen=True)
class HeldOut:
    """Validation rows of networks."""

    cells: NDArray[np.float64]  # (rows, features), coded by the schema
    truth: Sequence[NDArray[Any]]  # (rows,), of each target
    by_member: Sequence[NDArray[np.int64]]  # which of the rows were each network's validation rows, each once
    rows: NDArray[np.int64]  # (rows,), their positions in the encoded table
    weight: NDArray[np.float64] | None = None  # (rows,), with a mean of 1; None for equal weights

    @classmethod
    def of(cls, parts: Sequence[Rows], by_member: Sequence[NDArray[Any]]) -> HeldOut:
        """Collect validation rows from the coded rows of parts; ``by_member`` are positions in all parts together."""
        positions = [np.unique(rows).astype(np.int64) for rows in by_member]
        chosen = evenly(np.unique(np.concatenate(positions)), _MOST_ROWS)
        cells, first = [], 0
        for part in parts:
            inside = chosen[(chosen >= first) & (chosen < first + len(part))] - first
            cells.append(part.take(inside).columns.cells)
            first += len(part)
        truth = [np.concatenate(values)[chosen] for values in zip(*(part.targets for part in parts), strict=True)]
        weight = None
        if parts[0].weight is not None:  # validation rows passed by the user have no weight
            weights = [np.ones(len(part)) if part.weight is None else part.weight for part in parts]
            weight = np.concatenate(weights)[chosen]
            weight /= weight.mean()
        return cls(np.concatenate(cells), truth, _positions(positions, chosen), chosen, weight)

    def member_values(
        self, members: Sequence[_Predictor], cells: NDArray[np.float64] | None = None
    ) -> list[list[NDArray[np.float64]]]:
        """Predict each member's rows, every target; ``cells`` replace those of all rows."""
        cells = self.cells if cells is None else cells
        return [
            [values[0] for values in member.predict_values(cells[rows])]
            for member, rows in zip(members, self.by_member, strict=True)
        ]

    def mean(self, member_values: Sequence[Sequence[NDArray[np.float64]]]) -> list[NDArray[np.float64]]:
        """Return the mean prediction of every row, over the members that held it out; for each target."""
        totals = [np.zeros((len(self.cells), *values.shape[1:])) for values in member_values[0]]
        counts = np.zeros(len(self.cells))
        for values, rows in zip(member_values, self.by_member, strict=True):
            counts[rows] += 1
            for total, predicted in zip(totals, values, strict=True):
                total[rows] += predicted
        return [total / counts.reshape(-1, *[1] * (total.ndim - 1)) for total in totals]


def one_by_one(predictor: _Predictor, n_members: int) -> list[_Predictor]:
    """Return each member as a predictor."""
    return [predictor.take(np.array([member])) for member in range(n_members)]


def _positions(rows_of_members: Sequence[NDArray[np.int64]], chosen: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the positions of each member's rows among chosen ones."""
    return [np.searchsorted(chosen, np.intersect1d(rows, chosen)) for rows in rows_of_members]


def evenly(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Keep at most ``most`` rows, evenly spaced."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


@dataclass(frozen=True)
class RowLosses:
    """Loss of every row, the mean over targets, as a function of the predictions of every target.

    Squared errors are in units of the target's variance, log losses in units of the entropy of the classes: 1 is the
    loss of predicting the mean or the class shares, or the best constant for the target's own loss. Losses are
    multiplied by the rows' weights.
    """

    targets: Sequence[Target]
    truth: Sequence[NDArray[Any]]  # of each target, (rows,)
    weight: NDArray[np.float64] | None = None  # (rows,), with a mean of 1

    def __call__(self, predicted: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the losses, shape (rows,), of values (rows,) or (rows, outputs), or probabilities, of each target."""
        total = np.zeros(len(self.truth[0]))
        for target, truth, values in zip(self.targets, self.truth, predicted, strict=True):
            if isinstance(target, ClassTarget):
                codes = target.codes(truth)
                shares = np.bincount(codes, self.weight) / len(codes)
                entropy = max(-float(np.average(np.log(shares[codes]), weights=self.weight)), 1e-9)
                total -= np.log(np.maximum(values[np.arange(len(codes)), codes], 1e-12)) / entropy
            else:
                constant_errors = target.errors(target.constant(truth, self.weight), truth)
                unit = float(np.average(constant_errors, weights=self.weight))
                total += target.errors(values, truth) / max(unit, 1e-300)
        total /= len(self.targets)
        return total if self.weight is None else total * self.weight


def prediction_errors(target: Target, predicted: NDArray[np.float64], truth: NDArray[Any]) -> NDArray[np.float64]:
    """Return the absolute errors of numbers, or one minus the probabilities of the true classes, shape (rows,)."""
    if isinstance(target, ClassTarget):
        return 1 - predicted[np.arange(len(truth)), target.codes(truth)]
    return np.abs(predicted - truth)


# --- which columns the targets need -----------------------------------------------------------------


def sparsest_threshold(networks: Networks, weights: NDArray[np.float64], held_out: HeldOut) -> float:
    """Choose the highest threshold at which the targets are still predicted nearly as well as at the best one.

    At a threshold, inputs whose mean learned weight into every target is below it are removed from the targets'
    sub-networks. "Nearly" means within one standard error of the mean loss of held-out rows.
    """
    n_features = networks.layout.n_features
    strongest = weights[:n_features, n_features:].max(axis=1)
    # Zero, and weights at which one more feature is left out.
    thresholds = np.r_[0.0, evenly(np.unique(strongest[strongest > 0]), _MOST_THRESHOLDS)]
    kept = np.repeat((strongest >= thresholds[:, None])[:, None], networks.n_members, axis=1)
    return float(thresholds[_nearly_best(_losses_with_features(networks, kept, held_out))[-1]])


def _nearly_best(losses: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the choices whose mean loss is within one standard error of the lowest; losses are (choices, rows)."""
    means = losses.mean(axis=1)
    best = int(np.argmin(means))
    error = losses[best].std(ddof=1) / np.sqrt(losses.shape[1]) if losses.shape[1] > 1 else 0.0
    return np.flatnonzero(means <= means[best] + error)


def selected_columns(networks: Networks, held_out: HeldOut) -> NDArray[np.bool_]:
    """Choose the columns that each network needs for the targets, shape (members, features).

    Each network keeps its strongest columns, by the weight of their edges into the targets. All networks keep the same
    number of columns: the smallest whose loss on held-out rows is within one standard error of the lowest.
    """
    n_features = networks.layout.n_features
    strengths = networks.target_edge_weights()
    rank = np.argsort(np.argsort(-strengths, axis=1, kind="stable"), axis=1)
    numbers = np.unique(np.geomspace(1, n_features, min(n_features, _MOST_THRESHOLDS)).round().astype(np.int64))
    choices = (rank < numbers[:, None, None]) & (strengths > 0)
    chosen: NDArray[np.bool_] = choices[_nearly_best(_losses_with_features(networks, choices, held_out))[0]]
    return chosen


def _losses_with_features(networks: Networks, choices: NDArray[np.bool_], held_out: HeldOut) -> NDArray[np.float64]:
    """Return the loss of every held-out row when only some features are kept, shape (choices of features, rows).

    ``choices`` has shape (choices, members, features). Losses are averaged over the members that the row was held out
    for. Rows are encoded once for all choices, and once for consecutive members that share them.
    """
    total, count = np.zeros((len(choices), len(held_out.cells))), np.zeros(len(held_out.cells))
    targets = networks.preprocessing.targets
    spread = [1.0 if isinstance(t, ClassTarget) else y.std() for t, y in zip(targets, held_out.truth, strict=True)]
    encoded_rows: NDArray[np.int64] | None = None
    for member, rows in enumerate(held_out.by_member):
        count[rows] += 1
        if encoded_rows is None or not np.array_equal(rows, encoded_rows):
            encoded_rows, blocks = rows, list(networks.encoded_blocks(held_out.cells[rows]))
        network = networks.take(np.array([member]))
        for choice_total, features in zip(total, choices, strict=True):
            (outputs,) = network.with_features(features[member]).outputs(blocks, len(rows))
            for k, target in enumerate(targets):
                predicted, truth = target.decode(outputs[:, k]), held_out.truth[k][rows]
                if isinstance(target, ClassTarget):
                    likely = predicted[np.arange(len(rows)), target.codes(truth)]
                    choice_total[rows] -= np.log(np.maximum(likely, 1e-12))
                elif target.loss is None:
                    choice_total[rows] += ((predicted - truth) / max(spread[k], 1e-300)) ** 2
                else:
                    choice_total[rows] += target.errors(predicted, truth)
    counted = count > 0
    share = (1.0 if held_out.weight is None else held_out.weight[counted]) / count[counted]
    return np.stack([choice_total[counted] * share for choice_total in total])


# --- importances ------------------------------------------------------------------------------------


def importance_rows(held_out: HeldOut) -> HeldOut:
    """Keep the rows that importances are measured on: all, or evenly spaced ones of long or wide tables."""
    n_rows, n_columns = held_out.cells.shape
    chosen = evenly(np.arange(n_rows), max(_FEWEST_ROWS, _MOST_CELLS // max(n_columns, 1)))
    weight = None if held_out.weight is None else held_out.weight[chosen] / held_out.weight[chosen].mean()
    truth, by_member = [values[chosen] for values in held_out.truth], _positions(held_out.by_member, chosen)
    return HeldOut(held_out.cells[chosen], truth, by_member, held_out.rows[chosen], weight)


def column_importances(predictor: _Predictor, held_out: HeldOut) -> NDArray[np.float64]:
    """Return the share of the explained loss that depends on each column, shape (features,).

    ``loss`` is the mean loss of held-out rows, each predicted by the networks that were not trained on it, and
    ``loss[j]`` is the same after the cells of column j are permuted among the rows::

        importance[j] = (loss[j] - loss) / (1 - loss)

    Losses are those of :class:`RowLosses`, where 1 is the loss of the constant prediction; ``1 - loss`` is the
    explained loss. ``loss[j]`` is the mean over five permutations, fewer for large tables.

    All columns use the same permutations, with fixed seeds, so that the order of the columns does not matter. A model
    that is not better than the constant prediction explains nothing: all importances are 0.
    """
    n_rows, n_columns = held_out.cells.shape
    losses = RowLosses(predictor.preprocessing.targets, held_out.truth, held_out.weight)
    members = one_by_one(predictor, len(held_out.by_member))

    def loss(cells: NDArray[np.float64]) -> float:
        with np.errstate(over="ignore"):  # a target that does not vary in these rows has no unit
            return float(losses(held_out.mean(held_out.member_values(members, cells))).mean())

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
