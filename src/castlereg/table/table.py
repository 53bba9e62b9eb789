"""Encoded rows, and their standardization by each member.

Networks train on numbers near zero with unit spread. Shift and scale are measured on the training rows of each member,
so nothing leaks from its validation rows. Long tables are measured block by block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from castlereg.layout import EdgeRules, Layout

_ALIGNMENT = 64  # bytes; JAX uses an array that starts at a multiple of this without a copy


@dataclass(frozen=True)
class Table:
    """Encoded rows."""

    inputs: NDArray[Any]  # (rows, channels): size near one, or 0 and 1 for levels and indicators; NaN for missing
    layout: Layout
    weight: NDArray[Any] | None = None  # (rows,), positive; all equal by default
    constant: tuple[int, ...] = ()  # constant nodes, which get no edges
    edges: EdgeRules | None = None  # which edges are allowed and which are required
    room: NDArray[Any] | None = None  # from room_for, starts with the inputs; saves a copy during training


def rounded_up(n: int) -> int:
    """Round a length up, to powers of two until 1024, then in steps of an eighth, so a few programs fit all lengths."""
    power = 1 << max(n - 1, 15).bit_length()
    if n <= 1024:
        return power
    step = power // 16
    return -(-n // step) * step


def room_for(n_rows: int, n_channels: int, dtype: Any = np.float32) -> NDArray[Any]:
    """Return zeros for ``n_rows`` rows, followed by at least one empty row."""
    rows = rounded_up(n_rows + 1)
    spare = _ALIGNMENT // np.dtype(dtype).itemsize
    zeros = np.zeros(rows * n_channels + spare, dtype)
    first = (-zeros.ctypes.data % _ALIGNMENT) // zeros.itemsize
    return zeros[first : first + rows * n_channels].reshape(rows, n_channels)


def with_empty_rows(inputs: NDArray[Any], room: NDArray[Any] | None = None) -> NDArray[Any]:
    """Return rows followed by empty rows: ``room``, which starts with them, or a copy."""
    if room is not None:
        return room
    room = room_for(len(inputs), inputs.shape[1], inputs.dtype)
    room[: len(inputs)] = inputs
    return room


# Rows that are measured in one piece, in float64, summed as NumPy does; and the size of the pieces of longer tables.
MOST_AT_ONCE = 65_536
_PIECE = 8192
CLIP = 3.0  # bound of smooth_clip
_IQR_OF_NORMAL = 1.3489795003921634

RowNumbers = NDArray[np.int64] | NDArray[np.int32]
Clipping = tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]  # center and rate of each channel


def blocks(n_rows: int, size: int | None = None) -> Iterator[slice]:
    """Split rows into blocks of a size; by default, only the rows of a long table are split."""
    size = size or (n_rows if n_rows <= MOST_AT_ONCE else _PIECE)
    for start in range(0, n_rows, max(size, 1)):
        yield slice(start, min(start + size, n_rows))


class Moments(NamedTuple):
    """Weight, mean and variance of the values that are not missing, for each channel."""

    total: NDArray[np.float64]  # (channels,), weight of the values
    mean: NDArray[np.float64]  # (channels,), 0 where all values are missing
    variance: NDArray[np.float64]  # (channels,)

    @classmethod
    def of(cls, rows: NDArray[np.float64], weight: NDArray[np.float64], has_missing: bool) -> Moments:
        """Return the moments of rows, shape (rows, channels); missing values are NaN."""
        if not has_missing:
            mean = np.average(rows, axis=0, weights=weight)
            variance = np.average((rows - mean) ** 2, axis=0, weights=weight)
            return cls(np.full(rows.shape[1], weight.sum()), mean, variance)
        present = ~np.isnan(rows)
        share = weight[:, None] * present
        total = share.sum(axis=0)
        share /= np.where(total > 0, total, 1.0)
        rows = np.where(present, rows, 0.0)
        mean = np.sum(share * rows, axis=0)
        return cls(total, mean, np.sum(share * (rows - mean) ** 2, axis=0))

    def and_of(self, other: Moments) -> Moments:
        """Return the moments of the rows of both, from deviations from the means to keep precision."""
        total = self.total + other.total
        share = other.total / np.where(total > 0, total, 1.0)
        apart = other.mean - self.mean
        variance = (1 - share) * self.variance + share * other.variance + share * (1 - share) * apart**2
        return Moments(total, self.mean + share * apart, np.where(total > 0, variance, 0.0))

    @classmethod
    def joined(cls, parts: Sequence[Moments]) -> Moments:
        """Return the moments of the rows of all parts."""
        return reduce(cls.and_of, parts)


def center_and_spread(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and standard deviation of a column, shape (rows,), without its missing values.

    Networks compute in float32. Shifting columns near zero with unit spread first, in float64, keeps the precision that
    large offsets or units would cost. Each member of a stack then standardizes by its own training rows.
    """
    if np.isnan(values).all():
        return 0.0, 1.0
    center = float(np.nanmean(values))
    return center, usable_spread(center, float(np.nanstd(values)))


def usable_spread(center: float, spread: float) -> float:
    """Return the spread, or 1 if values differ only by rounding."""
    return spread if spread > 4 * np.finfo(np.float64).eps * abs(center) else 1.0


class Standardization(NamedTuple):
    """Standardization of a member's channels; in a stack, all fields have a leading member axis."""

    shift: NDArray[np.float32]  # (channels,)
    scale: NDArray[np.float32]  # (channels,), factor of shifted channels
    clip_center: NDArray[np.float32] | None  # (channels,), applied to clipped channels first; None for a table
    clip_rate: NDArray[np.float32] | None  # without clipped columns
    null_loss: NDArray[np.float32] | None  # (nodes,), see null_losses; None if all losses are squared errors

    def of_member(self, member: int | NDArray[np.int64]) -> Standardization:
        """Return one member, or some, of a stack."""
        return Standardization(*(None if field is None else field[member] for field in self))  # type: ignore[arg-type]


def standardize(encoded: Any, by: Standardization, layout: Layout) -> Any:
    """Standardize encoded channels, a NumPy or JAX array of shape (..., channels), by one member; NaN stays NaN."""
    return (drawn_in(encoded, by.clip_center, by.clip_rate, layout) - by.shift) * by.scale


def drawn_in(encoded: Any, clip_center: Any, clip_rate: Any, layout: Layout) -> Any:
    """Clip the clipped channels smoothly, if any; encoded rows have all channels or only those of the features."""
    if clip_center is None or clip_rate is None:
        return encoded
    where, width = encoded.__array_namespace__().where, encoded.shape[-1]
    clipped = smooth_clip((encoded - clip_center[:width]) * clip_rate[:width])
    return where(layout.is_clipped[:width], clipped, encoded)


def smooth_clip(z: Any) -> Any:
    """Clip values smoothly: close to ``z`` near zero, below 3 in size, strictly increasing."""
    sqrt = z.__array_namespace__().sqrt
    return z / sqrt(1 + (z / CLIP) ** 2)


def measure(table: Table, row_lists: Sequence[RowNumbers]) -> tuple[Standardization, NDArray[Any]]:
    """Measure every member's training rows; return their standardization and mean weight, shape (members,).

    Value channels are centred on the mean of the values that are not missing. All channels of a node are divided by the
    same number, the root of their summed variances: a categorical column then has the same scale as a numeric one, and
    rare levels do not become large. Constant nodes are multiplied by zero, and so are levels that none of the rows has:
    the member treats them as "none of the levels". Missing indicators and seasons are centred and keep their scale of
    1, close to the step between two levels; dividing by their own spread would make rare missing values very large.
    """
    known: dict[bytes, tuple[Standardization, float]] = {}
    measured = []
    for rows in row_lists:
        key = hashlib.blake2b(np.ascontiguousarray(rows).data).digest()
        if key not in known:  # otherwise the same rows with other regularization strengths
            known[key] = _measure_rows(table, rows)
        measured.append(known[key])
    fields, dtype = zip(*(by for by, _ in measured), strict=True), table.inputs.dtype
    stacked: list[Any] = [None if field[0] is None else np.stack(field).astype(dtype) for field in fields]
    return Standardization(*stacked), np.array([weight for _, weight in measured], dtype)


def _measure_rows(table: Table, train_rows: RowNumbers) -> tuple[Standardization, float]:
    layout = table.layout
    weight = None if table.weight is None else table.weight[train_rows].astype(np.float64)
    clips = clipping(table.inputs, train_rows, layout)
    parts = []
    for block in blocks(len(train_rows)):
        rows = table.inputs[train_rows[block]].astype(np.float64)
        of_rows = np.ones(len(rows)) if weight is None else weight[block]
        parts.append(Moments.of(drawn_in(rows, *clips, layout), of_rows, layout.has_missing))
    by = standardization_of(Moments.joined(parts), *clips, layout)
    by = with_units_of_targets(by, layout, lambda channel: table.inputs[train_rows, channel], weight)
    return by, 1.0 if weight is None else float(weight.mean())


def standardization_of(
    moments: Moments, clip_center: NDArray[np.float64] | None, clip_rate: NDArray[np.float64] | None, layout: Layout
) -> Standardization:
    """Compute the standardization from the moments of training rows, in float64; see :func:`measure`."""
    mean, variance = moments.mean, moments.variance
    values = ~layout.is_input_only
    by_node = np.bincount(layout.channel_nodes[values], variance[values])[layout.channel_nodes]
    varies = variance > 1e-12
    scale = np.where(varies, np.where(values, 1 / np.sqrt(np.where(by_node > 1e-12, by_node, 1.0)), 1.0), 0.0)
    null_loss = None if layout.is_squared.all() else null_losses(mean, layout)
    return Standardization(mean, scale, clip_center, clip_rate, null_loss)  # type: ignore[arg-type]


def null_losses(rates: NDArray[np.float64], layout: Layout) -> NDArray[np.float64]:
    """Return the loss of predicting the mean rates: 1 for numeric nodes, the entropy for others; shape (nodes,).

    The value is also 1 for a node with a single level, whose entropy is zero, and for a target with its own loss, see
    :func:`with_units_of_targets`.
    """
    losses = np.ones(layout.n_nodes)
    for k, node in enumerate(layout.nodes):
        if node.kind == "numeric":
            continue
        of_node = rates[layout.output_channels[k][: node.levels]]
        shares = np.array([of_node[0], 1 - of_node[0]]) if node.kind == "binary" else of_node
        shares = shares[shares > 0]
        entropy = -float(np.sum(shares * np.log(shares)))
        losses[k] = entropy if entropy > 1e-9 else 1.0
    return losses


def with_units_of_targets(
    by: Standardization,
    layout: Layout,
    values: Callable[[int], NDArray[Any]],
    weight: NDArray[np.float64] | None = None,
) -> Standardization:
    """Set the units of targets with their own loss; ``values`` returns the training rows of a channel."""
    if by.null_loss is None:
        return by
    units = by.null_loss.copy()
    for k, node in enumerate(layout.nodes):
        if node.loss is not None:
            rows = values(int(layout.output_channels[k, 0])).astype(np.float64)
            units[k] = node.loss.null_loss(rows, weight)
    return by._replace(null_loss=units)


def clipping(inputs: NDArray[np.float32], rows: RowNumbers, layout: Layout) -> Clipping:
    """Measure median and spread of the clipped channels by quantiles, which are robust to outliers.

    The spread is the interquartile range, scaled to the standard deviation of a normal distribution. If the quartiles
    are equal, it is half the range.
    """
    if not layout.is_clipped.any():
        return None, None
    center, rate = np.zeros(layout.n_channels), np.ones(layout.n_channels)
    for channel in np.flatnonzero(layout.is_clipped):
        column = inputs[rows, channel].astype(np.float64)
        column = column[~np.isnan(column)]
        if len(column) == 0:
            continue
        lowest, low, center[channel], high, highest = np.quantile(column, [0, 0.25, 0.5, 0.75, 1])
        spread = (high - low) / _IQR_OF_NORMAL if high > low else (highest - lowest) / 2
        rate[channel] = 1 / spread if spread > 0 else 0.0
    return center, rate
