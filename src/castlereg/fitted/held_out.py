"""Validation rows of networks, and their predictions by networks that were not trained on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from castlereg.table.preprocessing import Preprocessing
from castlereg.table.rows import Rows
from castlereg.table.targets import ClassTarget, Target

_MOST_ROWS = 20_000  # enough to estimate a mean loss; of more rows, evenly spaced ones are used


class Predictor(Protocol):
    """Networks, or a blend of them."""

    @property
    def preprocessing(self) -> Preprocessing:
        """Preprocessing from rows to channels."""

    def of_members(self, members: NDArray[np.int64]) -> Predictor:
        """Keep some members."""

    def predict(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Predict every target: values (members, rows), probabilities (members, rows, classes)."""

    def predict_values(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Predict every target; all outputs, (members, rows, outputs), if it has its own loss."""


@dataclass(frozen=True)
class HeldOut:
    """Validation rows of networks."""

    cells: NDArray[np.float64]  # (rows, features), coded by the schema
    truth: Sequence[NDArray[Any]]  # (rows,), of each target
    spread: Sequence[float]  # standard deviation of each numeric target over all rows; not used for classes
    by_member: Sequence[NDArray[np.int64]]  # which of the rows were each network's validation rows, each once
    weight: NDArray[np.float64] | None = None  # (rows,), with a mean of 1; None for equal weights

    @classmethod
    def of(cls, targets: Sequence[Target], parts: Sequence[Rows], by_member: Sequence[NDArray[Any]]) -> HeldOut:
        """Collect validation rows from the coded rows of parts; ``by_member`` are indices into all parts together."""
        indices = [np.unique(rows).astype(np.int64) for rows in by_member]
        chosen = evenly(np.unique(np.concatenate(indices)), _MOST_ROWS)
        cells, first = [], 0
        for part in parts:
            of_part = chosen[(chosen >= first) & (chosen < first + len(part))] - first
            cells.append(part.take(of_part).columns.cells)
            first += len(part)
        truth = [np.concatenate(columns) for columns in zip(*(part.targets for part in parts), strict=True)]
        spread = [
            1.0 if isinstance(target, ClassTarget) else float(values.std())
            for target, values in zip(targets, truth, strict=True)
        ]
        positions = [np.searchsorted(chosen, np.intersect1d(rows, chosen)) for rows in indices]
        weight = None
        if parts[0].weight is not None:  # validation rows passed by the user have no weight
            of_parts = [np.ones(len(part)) if part.weight is None else part.weight for part in parts]
            weight = np.concatenate(of_parts)[chosen]
            weight /= weight.mean()
        return cls(np.concatenate(cells), [values[chosen] for values in truth], spread, positions, weight)

    def evenly_spaced(self, most: int) -> HeldOut:
        """Keep at most ``most`` rows, evenly spaced."""
        chosen = evenly(np.arange(len(self.cells)), most)
        positions = [np.searchsorted(chosen, np.intersect1d(rows, chosen)) for rows in self.by_member]
        weight = None if self.weight is None else self.weight[chosen] / self.weight[chosen].mean()
        return HeldOut(self.cells[chosen], [values[chosen] for values in self.truth], self.spread, positions, weight)


@dataclass(frozen=True)
class HeldOutPredictions:
    """True values of held-out rows, and the mean prediction of the networks that were not trained on them.

    Each target has values of shape (rows,), and predictions of shape (rows,) or (rows, classes).
    """

    truth: Sequence[NDArray[Any]]
    predicted: Sequence[NDArray[np.float64]]

    @classmethod
    def of(cls, networks: Predictor, held_out: HeldOut) -> HeldOutPredictions:
        """Predict the held-out rows of every network."""
        members = (networks.of_members(np.array([member])) for member in range(len(held_out.by_member)))
        values = mean_values(members, held_out.cells, held_out.by_member)
        targets = networks.preprocessing.targets
        return cls(
            list(held_out.truth),
            [target.predicted(of_target) for target, of_target in zip(targets, values, strict=True)],
        )


def mean_values(
    members: Iterable[Predictor], cells: NDArray[np.float64], by_member: Sequence[NDArray[np.int64]]
) -> list[NDArray[np.float64]]:
    """Return ``predict_values`` of every row, the mean over the members that have the row in ``by_member``."""
    totals: list[NDArray[np.float64]] = []
    counts = np.zeros(len(cells))
    for member, rows in zip(members, by_member, strict=True):
        predictions = [of_target[0] for of_target in member.predict_values(cells[rows])]
        totals = totals or [np.zeros((len(cells), *of_target.shape[1:])) for of_target in predictions]
        counts[rows] += 1
        for total, predicted in zip(totals, predictions, strict=True):
            total[rows] += predicted
    return [total / counts.reshape(-1, *[1] * (total.ndim - 1)) for total in totals]


def evenly(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Keep at most ``most`` rows, evenly spaced.

    Examples
    --------
    >>> import numpy as np
    >>> evenly(np.arange(10), 4)
    array([0, 3, 6, 9])
    """
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
