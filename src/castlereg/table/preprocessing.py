"""From cells to the channels of a network: one description, fitted once.

A :class:`Preprocessing` describes how every channel is computed from the cells of a column. Its method ``encode``
evaluates this description for both training and prediction, and the ONNX export is generated from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from castlereg.layout import EdgeRules, Layout, Node
from castlereg.notices import warn_user
from castlereg.table.coding import coded_columns
from castlereg.table.dates import PERIODS
from castlereg.table.reading import Columns, sum_of_squares, unnamed_numbers
from castlereg.table.rows import Rows, column_order, row_order, row_ranks
from castlereg.table.schema import IN_ORDER, ColumnSchema, infer_schema
from castlereg.table.table import Table, blocks, center_and_spread, room_for
from castlereg.table.targets import ClassTarget, Target


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

    column: int  # in the user's order
    kind: Literal["value", "season", "level", "missing"]
    level: int = -1  # index into the column's levels
    center: float = 0.0
    spread: float = 1.0
    fill: float = 0.0  # for a missing value; NaN is later replaced by the mean of each member's training rows
    unknown: float | None = None  # for an unknown level; None for columns without levels


class _ChannelArrays(NamedTuple):
    """The fields of all channels as arrays of shape (channels,), and the indices of channels by kind."""

    column: NDArray[np.int64]
    level: NDArray[np.int64]
    center: NDArray[np.float64]
    spread: NDArray[np.float64]
    fill: NDArray[np.float64]
    unknown: NDArray[np.float64]
    levels: NDArray[np.int64]
    seasons: NDArray[np.int64]
    missing: NDArray[np.int64]
    coded: NDArray[np.int64]  # values that are indices into levels


@dataclass(frozen=True)
class Preprocessing:
    """How rows of a table become the channels of a layout.

    Parameters
    ----------
    schema : tuple of ColumnSchema
        In the user's order of columns.
    order : tuple of int
        Column of each node; networks use columns in a fixed order, see :mod:`castlereg.table.rows`.
    nodes : tuple of Node
        Of the features, in that order.
    center, spread : array of float64, shape (nodes,)
        Shift and divisor that bring the cells of each node near zero with unit spread; 0 and 1 for categorical nodes.
    targets : tuple of NumericTarget or ClassTarget

    Examples
    --------
    >>> import pandas as pd
    >>> from castlereg.table.reading import read_columns
    >>> from castlereg.table.targets import NumericTarget
    >>> frame = pd.DataFrame({"rooms": [1, None, 3, 5], "city": ["Rome", "Oslo", "Rome", "Oslo"]})
    >>> rows = Rows(read_columns(frame), (np.array([3.0, 4.0, 5.0, 6.0]),))
    >>> preprocessing, _ = Preprocessing.fit(
    ...     rows, None, lambda rows: (NumericTarget.fit(rows.targets[0], "rent"),), categorical=[False, False]
    ... )
    >>> [(frame.columns[channel.column], channel.kind) for channel in preprocessing.channels]
    [('city', 'value'), ('rooms', 'value'), ('rooms', 'missing')]
    >>> preprocessing.encode(preprocessing.cells(read_columns(frame))).round(2)
    array([[ 1.  , -1.22,  0.  ],
           [ 0.  ,   nan,  1.  ],
           [ 1.  ,  0.  ,  0.  ],
           [ 0.  ,  1.22,  0.  ]])
    """

    schema: tuple[ColumnSchema, ...]
    order: tuple[int, ...]
    nodes: tuple[Node, ...]
    center: NDArray[np.float64]
    spread: NDArray[np.float64]
    targets: tuple[Target, ...]

    @classmethod
    def fit(
        cls,
        rows: Rows,
        held_out: Rows | None,
        make_targets: Callable[[Rows], tuple[Target, ...]],
        *,
        categorical: Sequence[bool],
        clipped: bool = False,
        drop_unusable: bool = False,
        monotone: Sequence[int] | None = None,
    ) -> tuple[Preprocessing, list[Rows]]:
        """Learn the preprocessing of rows, code their levels and bring them into a fixed order.

        Parameters
        ----------
        rows : Rows
            Rows that determine the kinds, the levels and the scales.
        held_out : Rows, optional
            Validation rows. They influence only the order of the columns, which all folds of a table then share.
        make_targets : callable
            Function that learns how to encode the targets.
        categorical : sequence of bool
            Whether the user marked each column as categorical.
        clipped : bool
            Whether numeric columns are clipped.
        drop_unusable : bool
            Whether identifiers and free text are ignored; otherwise they raise.
        monotone : sequence of int, optional
            For each column, 1 if the targets rise with it, -1 if they fall, 0 otherwise.

        Returns
        -------
        preprocessing : Preprocessing
        parts : list of Rows
            ``rows`` and, if given, ``held_out``, each sorted by its values and with columns coded by the schema.
        """
        schema = infer_schema(rows.columns, categorical, drop_unusable=drop_unusable)
        parts = [replace(rows, columns=coded_columns(rows.columns, schema))]
        if held_out is not None:
            parts.append(replace(held_out, columns=coded_columns(held_out.columns, schema, "X_val")))
        ranks = row_ranks(np.concatenate(values) for values in zip(*(part.targets for part in parts), strict=True))
        columns = (np.concatenate([part.columns.column(j) for part in parts]) for j in range(len(schema)))
        nodes = feature_nodes(schema, clipped, monotone)
        order = column_order(columns, ranks, nodes, rows.columns.names)
        parts = [part.take(_row_order(part, order)) for part in parts]
        center, spread = np.array([_scale(schema[j], parts[0].columns.column(j)) for j in order]).T
        preprocessing = cls(schema, order, tuple(nodes[j] for j in order), center, spread, make_targets(parts[0]))
        for k, part in enumerate(parts[1:], 1):
            parts[k] = replace(part, targets=preprocessing._checked_targets(part, "y_val"))
            preprocessing.warn_of_new_missing(part.columns.cells, "X_val")
        return preprocessing, parts

    @cached_property
    def layout(self) -> Layout:
        """Nodes of the features and the targets."""
        return Layout((*self.nodes, *(target.node for target in self.targets)))

    @property
    def monotone(self) -> list[int]:
        """Direction of the targets in each column, in the user's order: rising (1), falling (-1) or free (0)."""
        return [self.nodes[k].monotone for k in np.argsort(self.order)]

    @property
    def constant(self) -> tuple[int, ...]:
        """Constant nodes, which get no edges."""
        return tuple(k for k, j in enumerate(self.order) if self.schema[j].constant)

    def node_order(self) -> NDArray[np.int64]:
        """Return the index of each node among the user's columns followed by the targets."""
        return np.r_[np.array(self.order, np.int64), len(self.order) + np.arange(len(self.targets))]

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """How each channel of the features is computed from the cells."""
        return tuple(chain.from_iterable(self._channels_of(k) for k in range(len(self.nodes))))

    def _channels_of(self, k: int) -> Iterator[Channel]:
        node, j = self.nodes[k], self.order[k]
        # Midway between the values of a binary column, the mean of a numeric one, or none of the levels.
        neutral = 0.5 if node.kind == "binary" else 0.0
        fill = np.nan if node.missing else neutral
        if node.kind == "categorical":
            yield from (Channel(j, "level", level, fill=fill, unknown=neutral) for level in range(node.levels))
        else:
            unknown = neutral if self.schema[j].is_coded else None
            yield Channel(j, "value", -1, float(self.center[k]), float(self.spread[k]), fill, unknown)
        for season in self.schema[j].seasons:
            period = PERIODS[season]
            start = period * np.floor(self.center[k] / period)  # near the values, to keep digits
            for quarter in (0, 1):  # a sine and, a quarter later, a cosine
                yield Channel(j, "season", -1, float(start - quarter * period / 4), period / (2 * np.pi), fill)
        if node.missing:
            yield Channel(j, "missing", fill=1.0)

    @cached_property
    def _rates(self) -> NDArray[np.float64]:
        """Inverse spreads of the channels: multiplication is much faster than division."""
        return 1 / self._arrays.spread

    @cached_property
    def _arrays(self) -> _ChannelArrays:
        channels, names = self.channels, ("column", "level", "center", "spread", "fill")
        fields = [np.array([getattr(channel, name) for channel in channels]) for name in names]
        unknown = np.array([channel.unknown or 0.0 for channel in channels])
        is_coded = np.array([channel.unknown is not None for channel in channels])
        kind = np.array([channel.kind for channel in channels])
        masks = (kind == "level", kind == "season", kind == "missing", (kind == "value") & is_coded)
        return _ChannelArrays._make([*fields, unknown, *map(np.flatnonzero, masks)])

    @cached_property
    def unusable(self) -> frozenset[int]:
        """Columns that are ignored, in the user's order."""
        return frozenset(j for j, column in enumerate(self.schema) if column.kind == "unusable")

    @cached_property
    def _is_numbers(self) -> bool:
        return all(column.holds == "numbers" and not column.is_coded for column in self.schema)

    def cells(self, columns: Columns, what: str = "X") -> NDArray[np.float64]:
        """Code another table with the same columns; see :func:`~castlereg.table.coding.coded_columns`."""
        if self._is_numbers and columns.types is unnamed_numbers(len(self.schema)):
            return columns.cells
        return coded_columns(columns, self.schema, what).cells

    def coded(self, rows: Rows, what: str = "X", what_of_targets: str = "y") -> Rows:
        """Code other rows, as :meth:`cells` does, and check their targets."""
        columns = coded_columns(rows.columns, self.schema, what)
        return replace(rows, columns=columns, targets=self._checked_targets(rows, what_of_targets))

    def in_own_order(self, rows: Rows) -> Rows:
        """Sort coded rows by their values, so that their order does not matter."""
        return rows.take(_row_order(rows, self.order))

    def _checked_targets(self, rows: Rows, what: str) -> tuple[NDArray[Any], ...]:
        return tuple(target.checked(values, what) for target, values in zip(self.targets, rows.targets, strict=True))

    def warn_of_new_missing(self, cells: NDArray[np.float64], what: str = "X") -> None:
        """Warn about missing values in columns that had none in training."""
        new = [
            f"{int(count)} in {column.name!r}"
            for count, column in zip(np.isnan(cells).sum(axis=0), self.schema, strict=True)
            if count and not column.missing
        ]
        if new:
            shown = ", ".join(new[:5]) + (f" and in {len(new) - 5} more columns" if len(new) > 5 else "")
            warn_user(
                f"{what} has missing values in columns that had none in training: {shown}; they are treated as the "
                "column's mean"
            )

    def encode(self, cells: NDArray[np.float64], room: int | None = None) -> NDArray[np.float64]:
        """Convert cells to channels, as described by :attr:`channels`.

        Parameters
        ----------
        cells : array of float64, shape (rows, columns)
            From :meth:`cells`, or from rows coded by :meth:`fit`.
        room : int, optional
            Number of rows of the result, shape (room, channels); rows after the encoded ones are zero.
        """
        by = self._arrays
        encoded = np.empty((len(cells) if room is None else room, len(by.column)))
        encoded[len(cells) :] = 0
        block = np.take(cells, by.column, axis=1, out=encoded[: len(cells)], mode="clip")
        is_missing = np.isnan(block) if np.isnan(sum_of_squares(cells)) else None
        is_unknown = block[:, by.coded] == -1
        if len(by.levels):
            block[:, by.levels] = block[:, by.levels] == by.level[by.levels]
        block -= by.center
        block *= self._rates
        if len(by.seasons):
            block[:, by.seasons] = np.sin(block[:, by.seasons])
        if len(by.coded):
            block[:, by.coded] = np.where(is_unknown, by.unknown[by.coded], block[:, by.coded])
        if len(by.missing):
            block[:, by.missing] = 0
        if is_missing is not None:
            np.copyto(block, by.fill, where=is_missing)
        return encoded

    def table(self, *parts: Rows, edges: EdgeRules | None = None) -> Table:
        """Encode coded rows for training, one part after another; ``edges`` are in the user's order of columns."""
        weights = [np.ones(len(part)) if part.weight is None else part.weight for part in parts]
        is_weighted = any(part.weight is not None for part in parts)
        weight = np.concatenate(weights).astype(np.float32) if is_weighted else None
        n_rows = sum(map(len, parts))
        room = room_for(n_rows, self.layout.n_channels)
        for part, last in zip(parts, accumulate(map(len, parts)), strict=True):
            self._fill(room[last - len(part) : last], part)
        rules = None if edges is None else edges.reordered(self.node_order())
        return Table(room[:n_rows], self.layout, weight, self.constant, rules, room)

    def _fill(self, channels: NDArray[np.float32], rows: Rows) -> None:
        """Encode rows and their targets into an array, block by block."""
        for block in blocks(len(rows)):
            at = self.layout.n_feature_channels
            channels[block, :at] = self.encode(rows.columns.block(block.start, block.stop))
            for target, values in zip(self.targets, rows.targets, strict=True):
                encoded = target.encode(values[block])
                channels[block, at : at + encoded.shape[1]] = encoded
                at += encoded.shape[1]

    def classes_of(self, rows: Rows) -> NDArray[np.int64] | None:
        """Return the class numbers of the first target with classes; None if all targets are numeric."""
        pairs = zip(self.targets, rows.targets, strict=True)
        return next((target.codes(values) for target, values in pairs if isinstance(target, ClassTarget)), None)


def feature_nodes(schema: Sequence[ColumnSchema], clipped: bool, monotone: Sequence[int] | None) -> list[Node]:
    """Return the nodes of columns; raise for monotone columns whose levels have no order."""
    signs = monotone or [0] * len(schema)
    for column, sign in zip(schema, signs, strict=True):
        is_text = column.kind == "binary" and column.holds == "text" and column.note != IN_ORDER
        if sign and (column.kind == "categorical" or is_text):
            raise ValueError(
                f"monotone has column {column.name!r}, whose levels have no order: use numbers, or an ordered pandas "
                "category"
            )
    return [replace(column.node(clipped), monotone=sign) for column, sign in zip(schema, signs, strict=True)]


def _row_order(rows: Rows, order: Sequence[int]) -> NDArray[np.int64]:
    """Return the order of rows by targets, columns and weights."""
    weight = () if rows.weight is None else (rows.weight,)
    return row_order(chain[NDArray[Any]](rows.targets, map(rows.columns.column, order), weight))


def _scale(column: ColumnSchema, cells: NDArray[np.float64]) -> tuple[float, float]:
    """Return the shift and divisor of coded cells, shape (rows,)."""
    if column.kind == "categorical":
        return 0.0, 1.0
    if column.kind == "binary":
        lowest, highest = float(np.nanmin(cells)), float(np.nanmax(cells))
        return lowest, max(highest - lowest, 1e-300)
    return center_and_spread(cells)
