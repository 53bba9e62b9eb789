"""Columns on one scale, by each member's own training rows.

Networks train on numbers near zero with unit spread. The numbers that do this are measured on the training rows of each
member, so that nothing is learned from the rows it is judged by.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.moments import Moments, blocks
from castlereg.objective import Batch

if TYPE_CHECKING:
    from castlereg.training.members import Member, RowNumbers, Table

CLIP = 3.0  # what smooth_clip never reaches
_IQR_OF_NORMAL = 1.3489795003921634


class Standardization(NamedTuple):
    """How a member's channels become standardized, with a leading member axis in a stack."""

    shift: NDArray[np.float32]  # (channels,)
    scale: NDArray[np.float32]  # (channels,), what shifted channels are multiplied by
    clip_center: NDArray[np.float32] | None  # (channels,), of clipped channels before the above; None for a table
    clip_rate: NDArray[np.float32] | None  # without clipped columns
    null_loss: NDArray[np.float32] | None  # (nodes,), see null_losses; None when all nodes are numeric

    def of_member(self, member: int | NDArray[np.int64]) -> Standardization:
        """Take one member, or some, out of a stack."""
        return Standardization(*(None if field is None else field[member] for field in self))  # type: ignore[arg-type]


def standardize(encoded: Any, by: Standardization, layout: Layout) -> Any:
    """Standardize encoded channels; missing cells stay NaN.

    Parameters
    ----------
    encoded : NumPy or JAX array of shape (..., channels)
    by : Standardization
        Of one member.
    layout : Layout

    Returns
    -------
    array of shape (..., channels)
    """
    if by.clip_center is not None and by.clip_rate is not None:
        where = encoded.__array_namespace__().where
        clipped = smooth_clip((encoded - by.clip_center) * by.clip_rate)
        encoded = where(layout.is_clipped[: encoded.shape[-1]], clipped, encoded)
    return (encoded - by.shift) * by.scale


def as_batch(encoded: Any, weight: Any, by: Standardization, layout: Layout) -> Batch:
    """Standardize rows, and lay out what the sub-networks should say.

    Parameters
    ----------
    encoded : NumPy or JAX array of shape (rows, channels)
    weight : array of shape (rows,)
        Of the rows in a mean.
    by : Standardization
        Of one member.
    layout : Layout

    Returns
    -------
    Batch
    """
    xp = encoded.__array_namespace__()
    x = standardize(encoded, by, layout)
    numeric = layout.is_kind("numeric")[layout.channel_nodes]
    truth = x if numeric.all() else xp.where(numeric, x, encoded)
    truth = truth[..., None] if layout.n_channels == layout.n_nodes else truth[..., layout.output_channels]
    if not layout.has_gaps:
        return Batch(x, truth, weight)
    # Standardized, the mean is zero: that is what missing cells are filled with.
    missing = xp.isnan(truth[..., 0])
    x, truth = xp.where(xp.isnan(x), 0.0, x), xp.where(missing[..., None], 0.0, truth)
    return Batch(x, truth, weight, (~missing).astype(x.dtype))


def smooth_clip(z: Any) -> Any:
    """Draw large values in: nearly ``z`` near zero, never beyond 3 in size, always increasing.

    Examples
    --------
    >>> import numpy as np
    >>> smooth_clip(np.array([0.1, 1.0, 10.0, 1000.0])).round(2)
    array([0.1 , 0.95, 2.87, 3.  ])
    """
    sqrt = z.__array_namespace__().sqrt
    return z / sqrt(1 + (z / CLIP) ** 2)


def measure(table: Table, members: Sequence[Member]) -> tuple[Standardization, NDArray[np.float32]]:
    """Measure every member's training rows.

    Value channels are centred on the mean of the cells that are there. Those of one node are divided by one number, the
    root of their summed variances: a categorical column then weighs as much as a numeric one, and
    its rare levels do not grow large. A node that does not vary is multiplied by zero, and so is a level that
    none of the rows has: the member takes it as "none of the levels". Missing flags are centred and keep their
    size of 1, about that of the step from one level to another; dividing by their own spread would blow up rare gaps.

    Parameters
    ----------
    table : Table
    members : sequence of Member

    Returns
    -------
    standardization : Standardization
        With a leading member axis.
    mean_weight : array of float32, shape (members,)
        Mean weight of the training rows.
    """
    known: dict[bytes, tuple[Standardization, float]] = {}
    measured = []
    for member in members:
        key = hashlib.blake2b(np.ascontiguousarray(member.train_rows).data).digest()
        if key not in known:  # otherwise the same rows with other strengths
            known[key] = _measure_rows(table, member.train_rows)
        measured.append(known[key])
    fields = zip(*(one for one, _ in measured), strict=True)
    stacked: list[Any] = [None if field[0] is None else np.stack(field).astype(np.float32) for field in fields]
    return Standardization(*stacked), np.array([weight for _, weight in measured], np.float32)


def null_losses(rates: NDArray[np.float64], layout: Layout) -> NDArray[np.float64]:
    """Loss of predicting the base rates: 1 for numeric nodes, the entropy of binary and categorical ones.

    Parameters
    ----------
    rates : array of shape (channels,)
        Mean of each channel over the cells that are there.
    layout : Layout

    Returns
    -------
    array of shape (nodes,)
        1 also for a node with one level, whose entropy is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg.layout import Layout, Node
    >>> null_losses(np.array([0.0, 0.5]), Layout((Node(), Node("binary", target=True)))).round(4)
    array([1.    , 0.6931])
    """
    losses = np.ones(layout.n_nodes)
    for k, node in enumerate(layout.nodes):
        if node.kind == "numeric":
            continue
        own = rates[layout.output_channels[k][: node.levels]]
        shares = np.array([own[0], 1 - own[0]]) if node.kind == "binary" else own
        shares = shares[shares > 0]
        entropy = -float(np.sum(shares * np.log(shares)))
        losses[k] = entropy if entropy > 1e-9 else 1.0
    return losses


def _measure_rows(table: Table, train_rows: RowNumbers) -> tuple[Standardization, float]:
    layout = table.layout
    weight = None if table.weight is None else table.weight[train_rows].astype(np.float64)
    clip_center, clip_rate = clipping(table.inputs, train_rows, layout)
    parts = []
    for block in blocks(len(train_rows)):
        rows = table.inputs[train_rows[block]].astype(np.float64)
        own = np.ones(len(rows)) if weight is None else weight[block]
        parts.append(Moments.of(drawn_in(rows, clip_center, clip_rate, layout), own, layout.has_gaps))
    by = standardization_of(Moments.joined(parts), clip_center, clip_rate, layout)
    return by, 1.0 if weight is None else float(weight.mean())


def drawn_in(
    rows: NDArray[np.float64],
    clip_center: NDArray[np.float64] | None,
    clip_rate: NDArray[np.float64] | None,
    layout: Layout,
) -> NDArray[np.float64]:
    """Draw in the clipped channels of rows, if there are any."""
    if clip_center is None or clip_rate is None:
        return rows
    return np.where(layout.is_clipped, smooth_clip((rows - clip_center) * clip_rate), rows)


def standardization_of(
    moments: Moments,
    clip_center: NDArray[np.float64] | None,
    clip_rate: NDArray[np.float64] | None,
    layout: Layout,
) -> Standardization:
    """Turn the moments of training rows into what standardizes them, in float64; see :func:`measure`."""
    mean, variance = moments.mean, moments.variance
    values = ~layout.is_flag
    by_node = np.bincount(layout.channel_nodes[values], variance[values])[layout.channel_nodes]
    varies = variance > 1e-12
    scale = np.where(varies, np.where(values, 1 / np.sqrt(np.where(by_node > 1e-12, by_node, 1.0)), 1.0), 0.0)
    null_loss = None if layout.is_kind("numeric").all() else null_losses(mean, layout)
    return Standardization(mean, scale, clip_center, clip_rate, null_loss)  # type: ignore[arg-type]


def clipping(
    inputs: NDArray[np.float32], rows: RowNumbers, layout: Layout
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Measure median and spread of the clipped channels by quantiles, of which a few wild values change nothing.

    The spread is the distance of the quartiles, as a normal distribution's standard deviation. Where the quartiles are
    equal it is half the range.
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
