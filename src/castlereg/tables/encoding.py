"""Numeric columns and a target, encoded for a network and decoded from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castlereg.layout import Layout, Node

_FLOAT32_MAX = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Scaling:
    """Where columns lie and how far they spread, in float64.

    Networks compute in float32; this takes columns near zero with unit spread first, so that
    neither the unit of a column nor a large offset costs digits. Each member of a stack then standardizes
    by its own training rows.
    """

    center: NDArray[np.float64]  # (columns,)
    spread: NDArray[np.float64]  # (columns,), 1 for constant columns

    @classmethod
    def fit(cls, columns: NDArray[np.float64]) -> Scaling:
        """Measure columns, shape (rows, columns)."""
        center = columns.mean(axis=0)
        spread = columns.std(axis=0)
        return cls(center, np.where(is_constant(columns), 1.0, spread))

    def encode(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Centre and divide."""
        encoded: NDArray[np.float64] = (columns - self.center) / self.spread
        return encoded

    def decode(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Undo :meth:`encode`."""
        columns: NDArray[np.float64] = encoded * self.spread + self.center
        return columns


def is_constant(columns: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which columns hold one value, or values that differ by rounding only, shape (columns,)."""
    largest = np.abs(columns).max(axis=0)
    constant: NDArray[np.bool_] = np.ptp(columns, axis=0) <= 4 * np.finfo(np.float64).eps * largest
    return constant


def check_range(columns: NDArray[np.float64], names: list[str], what: str) -> None:
    """Refuse values that float32 cannot hold.

    Parameters
    ----------
    columns : array of shape (rows, columns)
    names : list of str
    what : str
        What the columns are, for the message: "X" or "y".
    """
    if columns.size and max(columns.max(), -columns.min()) > _FLOAT32_MAX:
        row, column = np.argwhere(np.abs(columns) > _FLOAT32_MAX)[0]
        raise ValueError(
            f"{what} has {columns[row, column]:g} in row {row} of column {names[column]!r}, beyond the range of "
            f"float32 (3.4e38) that networks compute in: rescale the column or take its logarithm"
        )


def target_node(n_classes: int | None) -> Node:
    """Return the node of a target: numeric, or of this many classes."""
    if n_classes is None:
        return Node(target=True)
    if n_classes == 2:
        return Node("binary", target=True)
    return Node("categorical", n_classes, target=True)


def numeric_layout(n_features: int, target: Node) -> Layout:
    """Return the layout of numeric features and one target."""
    return Layout((*(Node() for _ in range(n_features)), target))


def class_channels(codes: NDArray[np.int64], n_classes: int) -> NDArray[np.float64]:
    """Encode classes 0..n-1 as channels: 0 or 1 for two classes, else one channel per class."""
    if n_classes == 2:
        return codes[:, None].astype(np.float64)
    return np.eye(n_classes)[codes]
