"""From cells to the standardized channels of networks.

A :class:`Preprocessing` describes how every channel is computed from the cells of a column. Its method ``encode``
evaluates this description for both training and prediction, and the ONNX export is generated from it. :class:`Encoded`
rows are what networks train on; :func:`measure` standardizes them by the training rows of each member, so nothing leaks
from its validation rows. Rows and columns stay in the user's order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import accumulate, chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from castlereg.layout import EdgeRules, Layout, Node
from castlereg.notices import warn_user
from castlereg.options import check_number
from castlereg.table.reading import PERIODS, Columns, first_few, on_disk, sum_of_squares, unnamed_numbers
from castlereg.table.schema import IN_ORDER, ColumnSchema, center_and_spread, coded_columns, infer_schema
from castlereg.table.targets import ClassTarget, ClassWeight, Target


@dataclass(frozen=True)
class Rows:
    """Rows with their targets and weights; columns are either as read or coded by the schema of a preprocessing."""

    columns: Columns
    targets: tuple[NDArray[Any], ...]  # each of shape (rows,)
    weight: NDArray[np.float64] | None = None  # None if all weights are equal; 0 for rows that no split uses

    def __len__(self) -> int:
        return len(self.columns)

    def take(self, rows: NDArray[np.int64]) -> Rows:
        """Return some rows, in this order."""
        weight = None if self.weight is None else self.weight[rows]
        return Rows(self.columns.take(rows), tuple(target[rows] for target in self.targets), weight)


def weighted_by_class(rows: Rows, targets: Sequence[Target], class_weight: ClassWeight) -> Rows:
    """Multiply the weights of rows by those of their classes, as scikit-learn does."""
    if class_weight is None:
        return rows
    entries = class_weight if isinstance(class_weight, list | tuple) else [class_weight] * len(targets)
    if len(entries) != len(targets):
        raise ValueError(f"class_weight has {len(entries)} entries for {len(targets)} targets: pass one for each")
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    factor = np.ones(len(rows))
    for entry, target, values in zip(entries, targets, rows.targets, strict=True):
        if entry is None or not isinstance(target, ClassTarget):
            continue
        codes, known = target.codes(values), target.classes.tolist()
        if isinstance(entry, Mapping):
            for label, value in entry.items():
                if label not in known:
                    raise ValueError(
                        f"class_weight has class {label!r}, which {target.name} does not have; its classes are {known}"
                    )
                check_number(f"class_weight[{label!r}]", value, least=0)
            factors = np.array([float(entry.get(label, 1.0)) for label in known])
        else:
            totals = np.bincount(codes, weight, minlength=len(known))
            factors = totals.sum() / (len(known) * np.where(totals > 0, totals, 1.0))
        factor *= factors[codes]
    return replace(rows, weight=weight * factor)


# --- the description of channels, and its evaluation ---------------------------------------------------


@dataclass(frozen=True)
class Channel:
    """How one channel is computed from the cells of one column.

    =========  =============================================
    kind       value of a cell that is not missing
    =========  =============================================
    "value"    ``(cell - center) * (1 / spread)``
    "season"   ``sin((cell - center) * (1 / spread))``
    "level"    1 if the cell is this level, otherwise 0
    "missing"  0
    =========  =============================================
    """

    column: int
    kind: Literal["value", "season", "level", "missing"]
    level: int = -1  # index into the column's levels
    center: float = 0.0
    spread: float = 1.0
    fill: float = 0.0  # for a missing value; NaN is later replaced by the mean of each member's training rows
    unknown: float | None = None  # for an unknown level; None for columns without levels


@dataclass(frozen=True)
class Preprocessing:
    """How rows of a table become the channels of a layout.

    Examples
    --------
    >>> import pandas as pd
    >>> from castlereg.table.reading import read_columns
    >>> from castlereg.table.targets import NumericTarget
    >>> frame = pd.DataFrame({"rooms": [1, None, 3, 5], "city": ["Rome", "Oslo", "Rome", "Oslo"]})
    >>> rows = Rows(read_columns(frame), (np.array([3.0, 4.0, 5.0, 6.0]),))
    >>> target = NumericTarget.fit(rows.targets[0], "rent")
    >>> preprocessing = Preprocessing.fit(rows, (target,), categorical=[False, False])
    >>> [(frame.columns[channel.column], channel.kind) for channel in preprocessing.channels]
    [('rooms', 'value'), ('rooms', 'missing'), ('city', 'value')]
    >>> preprocessing.encode(preprocessing.cells(read_columns(frame))).round(2)
    array([[-1.22,  0.  ,  1.  ],
           [  nan,  1.  ,  0.  ],
           [ 0.  ,  0.  ,  1.  ],
           [ 1.22,  0.  ,  0.  ]])
    """

    schema: tuple[ColumnSchema, ...]  # in the user's order of columns
    nodes: tuple[Node, ...]  # of the features: node k is column k
    center: NDArray[np.float64]  # (nodes,), shift that brings cells near zero; 0 for categorical nodes
    spread: NDArray[np.float64]  # (nodes,), divisor that brings cells to unit spread; 1 for categorical nodes
    targets: tuple[Target, ...]

    @classmethod
    def fit(
        cls,
        rows: Rows,
        targets: tuple[Target, ...],
        *,
        categorical: Sequence[bool],
        clipped: bool = False,
        monotone: Sequence[int] | None = None,
    ) -> Preprocessing:
        """Learn kinds, levels and scales from rows as read; the targets have already been learned.

        ``categorical`` is whether the user marked each column as such, ``clipped`` whether numeric columns are clipped,
        and ``monotone`` has 1 for columns with which the targets rise, -1 for those with which they fall, 0 otherwise.
        """
        schema = infer_schema(rows.columns, categorical)
        signs = monotone or [0] * len(schema)
        for column, sign in zip(schema, signs, strict=True):
            is_text = column.kind == "binary" and column.holds == "text" and column.note != IN_ORDER
            if sign and (column.kind == "categorical" or is_text):
                raise ValueError(
                    f"monotone has column {column.name!r}, whose levels have no order: use numbers, or an ordered "
                    "pandas category"
                )
        pairs = zip(schema, signs, strict=True)
        nodes = tuple(replace(column.node(clipped), monotone=sign) for column, sign in pairs)
        coded = coded_columns(rows.columns, schema)
        center, spread = np.array([_scale(column, coded.column(j)) for j, column in enumerate(schema)]).T
        return cls(schema, nodes, center, spread, targets)

    @cached_property
    def layout(self) -> Layout:
        """Nodes of the features and the targets."""
        return Layout((*self.nodes, *(target.node for target in self.targets)))

    @property
    def constant(self) -> tuple[int, ...]:
        """Constant nodes, which get no edges."""
        return tuple(k for k, column in enumerate(self.schema) if column.constant)

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """How each channel of the features is computed from the cells."""
        return tuple(chain.from_iterable(self._channels_of(k) for k in range(len(self.nodes))))

    def _channels_of(self, k: int) -> Iterator[Channel]:
        node, column = self.nodes[k], self.schema[k]
        # Midway between the values of a binary column, the mean of a numeric one, or none of the levels.
        neutral = 0.5 if node.kind == "binary" else 0.0
        fill = np.nan if node.missing else neutral
        if node.kind == "categorical":
            yield from (Channel(k, "level", level, fill=fill, unknown=neutral) for level in range(node.levels))
        else:
            unknown = neutral if column.is_coded else None
            yield Channel(k, "value", -1, float(self.center[k]), float(self.spread[k]), fill, unknown)
        for season in column.seasons:
            period = PERIODS[season]
            start = period * np.floor(self.center[k] / period)  # near the values, to keep digits
            for quarter in (0, 1):  # a sine and, a quarter later, a cosine
                yield Channel(k, "season", -1, float(start - quarter * period / 4), period / (2 * np.pi), fill)
        if node.missing:
            yield Channel(k, "missing", fill=1.0)

    @cached_property
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """The fields of all channels, shape (channels,), and the indices of channels that are not plain numbers."""
        channels, names = self.channels, ("column", "kind", "level", "center", "spread", "fill")
        arrays = {name: np.array([getattr(channel, name) for channel in channels]) for name in names}
        arrays |= {f"{kind}s": np.flatnonzero(arrays["kind"] == kind) for kind in ("level", "season", "missing")}
        arrays["rate"] = 1 / arrays["spread"]  # multiplication is much faster than division
        arrays["unknown"] = np.array([channel.unknown or 0.0 for channel in channels])
        arrays["coded"] = np.flatnonzero([c.kind == "value" and c.unknown is not None for c in channels])
        return arrays

    @cached_property
    def unusable(self) -> frozenset[int]:
        """Columns that are left out."""
        return frozenset(j for j, column in enumerate(self.schema) if column.kind == "unusable")

    @cached_property
    def _is_numbers(self) -> bool:
        return all(column.holds == "numbers" and not column.is_coded for column in self.schema)

    def cells(self, columns: Columns, what: str = "X") -> NDArray[np.float64]:
        """Code another table with the same columns; see :func:`~castlereg.table.schema.coded_columns`."""
        if self._is_numbers and columns.types is unnamed_numbers(len(self.schema)):
            return columns.cells  # quick, for single rows
        return coded_columns(columns, self.schema, what).cells

    def coded(self, rows: Rows, what: str = "X", what_of_targets: str = "y") -> Rows:
        """Code rows, as :meth:`cells` does, and check their targets."""
        columns = coded_columns(rows.columns, self.schema, what)
        pairs = zip(self.targets, rows.targets, strict=True)
        targets = tuple(target.checked(values, what_of_targets) for target, values in pairs)
        return replace(rows, columns=columns, targets=targets)

    def warn_of_new_missing(self, cells: NDArray[np.float64], what: str = "X") -> None:
        """Warn about missing values in columns that had none in training."""
        new = [
            f"{int(count)} in {column.name!r}"
            for count, column in zip(np.isnan(cells).sum(axis=0), self.schema, strict=True)
            if count and not column.missing
        ]
        if new:
            warn_user(
                f"{what} has missing values in columns that had none in training: {first_few(new)}; they are treated "
                "as the column's mean"
            )

    def encode(self, cells: NDArray[np.float64], padded_rows: int | None = None) -> NDArray[np.float64]:
        """Convert coded cells, shape (rows, columns), to the :attr:`channels`, shape (rows or padded_rows, channels).

        Rows after the encoded ones are zero.
        """
        arrays = self._arrays
        encoded = np.empty((len(cells) if padded_rows is None else padded_rows, len(arrays["column"])))
        encoded[len(cells) :] = 0
        block = np.take(cells, arrays["column"], axis=1, out=encoded[: len(cells)], mode="clip")
        is_missing = np.isnan(block) if np.isnan(sum_of_squares(cells)) else None
        is_unknown = block[:, arrays["coded"]] == -1
        if len(arrays["levels"]):
            block[:, arrays["levels"]] = block[:, arrays["levels"]] == arrays["level"][arrays["levels"]]
        block -= arrays["center"]
        block *= arrays["rate"]
        if len(arrays["seasons"]):
            block[:, arrays["seasons"]] = np.sin(block[:, arrays["seasons"]])
        if len(arrays["coded"]):
            block[:, arrays["coded"]] = np.where(
                is_unknown, arrays["unknown"][arrays["coded"]], block[:, arrays["coded"]]
            )
        if len(arrays["missings"]):
            block[:, arrays["missings"]] = 0
        if is_missing is not None:
            np.copyto(block, arrays["fill"], where=is_missing)
        return encoded

    def encoded(self, *parts: Rows, edges: EdgeRules | None = None) -> Encoded:
        """Encode coded rows for training, one part after another; into a memory map where the rows are in one."""
        weights = [np.ones(len(part)) if part.weight is None else part.weight for part in parts]
        is_weighted = any(part.weight is not None for part in parts)
        weight = np.concatenate(weights).astype(np.float32) if is_weighted else None
        n_rows, width = sum(map(len, parts)), self.layout.n_channels
        if any(part.columns.on_disk for part in parts):
            storage = on_disk((padded_size(n_rows), width), np.float32)
        else:
            storage = _aligned_zeros(padded_size(n_rows), width, np.float32)
        for part, last in zip(parts, accumulate(map(len, parts)), strict=True):
            channels = storage[last - len(part) : last]
            for block in _blocks(len(part)):
                pairs = zip(self.targets, part.targets, strict=True)
                encoded = [target.encode(values[block]) for target, values in pairs]
                features = self.encode(part.columns.block(block.start, block.stop))
                channels[block] = np.concatenate([features, *encoded], axis=1)
        return Encoded(storage[:n_rows], self.layout, weight, self.constant, edges, storage)

    def classes_of(self, rows: Rows) -> NDArray[np.int64] | None:
        """Return the class numbers of the first target with classes; None if all targets are numeric."""
        pairs = zip(self.targets, rows.targets, strict=True)
        return next((target.codes(values) for target, values in pairs if isinstance(target, ClassTarget)), None)


def _scale(column: ColumnSchema, cells: NDArray[np.float64]) -> tuple[float, float]:
    """Return the shift and divisor of coded cells, shape (rows,)."""
    if column.kind == "categorical":
        return 0.0, 1.0
    if column.kind == "binary":
        lowest, highest = float(np.nanmin(cells)), float(np.nanmax(cells))
        return lowest, max(highest - lowest, 1e-300)
    return center_and_spread(cells)


# --- encoded rows --------------------------------------------------------------------------------------

_ALIGNMENT = 64  # bytes; JAX uses an array that starts at a multiple of this without a copy


@dataclass(frozen=True)
class Encoded:
    """Encoded rows of a table.

    Examples
    --------
    >>> encoded = Encoded(np.ones((20, 2), np.float32), Layout((Node(), Node(target=True))))
    >>> encoded.padded().shape, encoded.padded()[19:21, 0]
    ((32, 2), array([1., 0.], dtype=float32))
    """

    inputs: NDArray[Any]  # (rows, channels): size near one, or 0 and 1 for levels and indicators; NaN for missing
    layout: Layout
    weight: NDArray[Any] | None = None  # (rows,); all equal by default
    constant: tuple[int, ...] = ()  # constant nodes, which get no edges
    edges: EdgeRules | None = None  # which edges are allowed and which are required
    storage: NDArray[Any] | None = field(default=None, repr=False, compare=False)  # starts with the inputs; see padded

    def padded(self) -> NDArray[Any]:
        """Return the inputs followed by at least one row of zeros, ``padded_size(rows)`` rows in all."""
        n_rows, width = self.inputs.shape
        if self.storage is not None and self.storage.ctypes.data == self.inputs.ctypes.data:
            return self.storage
        padded = _aligned_zeros(padded_size(n_rows), width, self.inputs.dtype)
        padded[:n_rows] = self.inputs
        return padded


def padded_size(n_rows: int) -> int:
    """Return the length of an array for some rows and at least one empty row.

    Lengths are powers of two until 1024, then steps of an eighth, so a few compiled programs fit all tables.
    """
    power = 1 << max(n_rows, 15).bit_length()
    if n_rows < 1024:
        return power
    step = power // 16
    return -(-(n_rows + 1) // step) * step


def _aligned_zeros(n_rows: int, width: int, dtype: Any) -> NDArray[Any]:
    zeros = np.zeros(n_rows * width + _ALIGNMENT // np.dtype(dtype).itemsize, dtype)
    first = (-zeros.ctypes.data % _ALIGNMENT) // zeros.itemsize
    return zeros[first : first + n_rows * width].reshape(n_rows, width)


# Rows that are measured in one piece, in float64, summed as NumPy does; and the size of the pieces of longer tables.
_MOST_AT_ONCE = 65_536
_PIECE = 8192


def _blocks(n_rows: int) -> Iterator[slice]:
    """Split the rows of a long table into blocks."""
    size = max(n_rows, 1) if n_rows <= _MOST_AT_ONCE else _PIECE
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


# --- standardization by the training rows of each member -----------------------------------------------

_CLIP = 3.0  # bound of smooth_clip
_IQR_OF_NORMAL = 1.3489795003921634
_ENOUGH_ON_DISK = 200_000  # evenly spaced rows of a memory map, for quantiles: each column would take a pass over it

RowNumbers = NDArray[np.int64] | NDArray[np.int32]


class _Moments(NamedTuple):
    """Weight, mean and variance of the values that are not missing, for each channel."""

    total: NDArray[np.float64]  # (channels,), weight of the values
    mean: NDArray[np.float64]  # (channels,), 0 where all values are missing
    variance: NDArray[np.float64]  # (channels,)

    @classmethod
    def of(cls, rows: NDArray[np.float64], weight: NDArray[np.float64], has_missing: bool) -> _Moments:
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

    def joined(self, other: _Moments) -> _Moments:
        """Return the moments of the rows of both, from deviations from the means to keep precision."""
        total = self.total + other.total
        share = other.total / np.where(total > 0, total, 1.0)
        apart = other.mean - self.mean
        variance = (1 - share) * self.variance + share * other.variance + share * (1 - share) * apart**2
        return _Moments(total, self.mean + share * apart, np.where(total > 0, variance, 0.0))


class Standardization(NamedTuple):
    """Standardization of a member's channels; in a stack, all fields have a leading member axis."""

    shift: NDArray[np.float32]  # (channels,)
    scale: NDArray[np.float32]  # (channels,), factor of shifted channels
    clip_center: NDArray[np.float32] | None  # (channels,), applied to clipped channels first; None for a table
    clip_rate: NDArray[np.float32] | None  # without clipped columns
    null_loss: NDArray[np.float32] | None  # (nodes,), see _null_losses; None if all losses are squared errors

    def take(self, members: int | NDArray[np.int64]) -> Standardization:
        """Return one member, or some, of a stack."""
        return Standardization(*(None if array is None else array[members] for array in self))  # type: ignore[arg-type]


def standardize(encoded: Any, standardization: Standardization, layout: Layout) -> Any:
    """Standardize encoded channels, a NumPy or JAX array of shape (..., channels), by one member; NaN stays NaN."""
    clipped = clip_smoothly(encoded, standardization.clip_center, standardization.clip_rate, layout)
    return (clipped - standardization.shift) * standardization.scale


def clip_smoothly(encoded: Any, center: Any, rate: Any, layout: Layout) -> Any:
    """Clip the clipped channels smoothly, if any; encoded rows have all channels or only those of the features."""
    if center is None or rate is None:
        return encoded
    where, width = encoded.__array_namespace__().where, encoded.shape[-1]
    clipped = smooth_clip((encoded - center[:width]) * rate[:width])
    return where(layout.is_clipped[:width], clipped, encoded)


def smooth_clip(z: Any) -> Any:
    """Clip values smoothly: close to ``z`` near zero, below 3 in size, strictly increasing."""
    sqrt = z.__array_namespace__().sqrt
    return z / sqrt(1 + (z / _CLIP) ** 2)


def measure(encoded: Encoded, row_lists: Sequence[RowNumbers]) -> tuple[Standardization, NDArray[Any]]:
    """Measure every member's training rows; return their standardization and mean weight, shape (members,).

    All channels of a node are divided by the root of their summed variances, so that rare levels do not become large.
    Constant nodes and levels that none of the rows has are multiplied by zero. Missing indicators and seasons are only
    centred: dividing by their own spread would make rare missing values very large.
    """
    known: dict[bytes, tuple[Standardization, float]] = {}  # the same rows may have other regularization strengths
    keys = [hashlib.blake2b(np.ascontiguousarray(rows).data).digest() for rows in row_lists]
    for key, rows in zip(keys, row_lists, strict=True):
        known[key] = known.get(key) or _measure_rows(encoded, rows)
    measured = [known[key] for key in keys]
    arrays, dtype = zip(*(standardization for standardization, _ in measured), strict=True), encoded.inputs.dtype
    stacked: list[Any] = [
        None if member_arrays[0] is None else np.stack(member_arrays).astype(dtype) for member_arrays in arrays
    ]
    return Standardization(*stacked), np.array([weight for _, weight in measured], dtype)


def _measure_rows(encoded: Encoded, rows: RowNumbers) -> tuple[Standardization, float]:
    """Measure the training rows of one member, in float64."""
    layout, inputs = encoded.layout, encoded.inputs
    weight = None if encoded.weight is None else encoded.weight[rows].astype(np.float64)
    step = -(-len(rows) // _ENOUGH_ON_DISK) if isinstance(inputs, np.memmap) else 1
    some, some_rows = (inputs, rows) if step == 1 else (inputs[rows[::step]], np.arange(len(rows[::step])))
    center, rate = _clipping(some, some_rows, layout)
    parts = []
    for block in _blocks(len(rows)):
        values = inputs[rows[block]].astype(np.float64)
        block_weight = np.ones(len(values)) if weight is None else weight[block]
        parts.append(_Moments.of(clip_smoothly(values, center, rate, layout), block_weight, layout.has_missing))
    _, mean, variance = reduce(_Moments.joined, parts)
    is_value = ~layout.is_input_only
    node_values = np.bincount(layout.channel_nodes[is_value], variance[is_value])[layout.channel_nodes]
    scale = np.where(is_value, 1 / np.sqrt(np.where(node_values > 1e-12, node_values, 1.0)), 1.0)
    scale = np.where(variance > 1e-12, scale, 0.0)
    units = None if layout.is_squared.all() else _null_losses(mean, layout)
    for k, node in enumerate(layout.nodes):
        if node.loss is not None and units is not None:
            truth = some[some_rows, layout.output_channels[k, 0]].astype(np.float64)
            units[k] = node.loss.null_loss(truth, None if weight is None else weight[::step])
    standardization = Standardization(mean, scale, center, rate, units)  # type: ignore[arg-type]
    return standardization, 1.0 if weight is None else float(weight.mean())


def _null_losses(rates: NDArray[np.float64], layout: Layout) -> NDArray[np.float64]:
    """Return the losses of predicting the mean rates: the entropy, or 1 where it is zero and for numeric nodes."""
    losses = np.ones(layout.n_nodes)
    for k, node in enumerate(layout.nodes):
        if node.kind == "numeric":
            continue
        node_values = rates[layout.output_channels[k][: node.levels]]
        shares = np.array([node_values[0], 1 - node_values[0]]) if node.kind == "binary" else node_values
        shares = shares[shares > 0]
        entropy = -float(np.sum(shares * np.log(shares)))
        losses[k] = entropy if entropy > 1e-9 else 1.0
    return losses


def _clipping(
    inputs: NDArray[np.float32], rows: RowNumbers, layout: Layout
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Measure median and inverse spread of the clipped channels: the scaled interquartile range, or half the range."""
    if not layout.is_clipped.any():
        return None, None
    center, rate = np.zeros(layout.n_channels), np.ones(layout.n_channels)
    for channel in np.flatnonzero(layout.is_clipped):
        column = inputs[rows, channel].astype(np.float64)
        column = column[~np.isnan(column)]
        if len(column):
            lowest, low, center[channel], high, highest = np.quantile(column, [0, 0.25, 0.5, 0.75, 1])
            spread = (high - low) / _IQR_OF_NORMAL if high > low else (highest - lowest) / 2
            rate[channel] = 1 / spread if spread > 0 else 0.0
    return center, rate
