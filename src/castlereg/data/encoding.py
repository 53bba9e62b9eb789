"""From cells to channels: what a network sees of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from castlereg.data.reading import Columns, unnamed_numbers
from castlereg.data.refusals import sum_of_squares
from castlereg.data.schema import ColumnSchema, cells_by_schema
from castlereg.layout import Layout, Node
from castlereg.notices import warn_user


@dataclass(frozen=True)
class Scaling:
    """Where columns lie and how far they spread, in float64.

    Networks compute in float32; this takes columns near zero with unit spread first, so that
    neither the unit of a column nor a large offset costs digits. Each member of a stack then standardizes
    by its own training rows.
    """

    center: NDArray[np.float64]  # (columns,)
    spread: NDArray[np.float64]  # (columns,), 1 for columns that do not vary

    @classmethod
    def fit(cls, columns: NDArray[np.float64]) -> Scaling:
        """Measure columns, shape (rows, columns), that may have NaN."""
        present = ~np.isnan(columns)
        if present.all():
            center, spread = columns.mean(axis=0), columns.std(axis=0)
        else:
            count = np.maximum(present.sum(axis=0), 1)
            center = np.where(present, columns, 0.0).sum(axis=0) / count
            spread = np.sqrt((np.where(present, columns - center, 0.0) ** 2).sum(axis=0) / count)
        varies = spread > 4 * np.finfo(np.float64).eps * np.abs(center)
        return cls(center, np.where(varies, spread, 1.0))

    @classmethod
    def joined(cls, scalings: Sequence[Scaling]) -> Scaling:
        """Put the scalings of columns side by side."""
        return cls(np.concatenate([s.center for s in scalings]), np.concatenate([s.spread for s in scalings]))

    def encode(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Centre and divide."""
        encoded: NDArray[np.float64] = (columns - self.center) / self.spread
        return encoded

    def decode(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Undo :meth:`encode`."""
        columns: NDArray[np.float64] = encoded * self.spread + self.center
        return columns


@dataclass(frozen=True)
class Encoder:
    """The features of a table as channels.

    Parameters
    ----------
    schema : tuple of ColumnSchema
        Of the columns as the user has them.
    order : tuple of int
        Which column each node is: networks see columns in an order of their own, see
        :func:`castlereg.data.column_order.column_order`.
    nodes : tuple of Node
        In that order.
    scaling : Scaling
        Of the nodes; places 0 and 1 for categorical ones, which have no scale.
    """

    schema: tuple[ColumnSchema, ...]
    order: tuple[int, ...]
    nodes: tuple[Node, ...]
    scaling: Scaling

    @classmethod
    def fit(
        cls,
        schema: tuple[ColumnSchema, ...],
        cells: Columns,
        order: Sequence[int],
        *,
        clipped: bool = False,
    ) -> Encoder:
        """Measure the cells of a table.

        Parameters
        ----------
        schema : tuple of ColumnSchema
        cells : Columns
            From :func:`castlereg.data.schema.coded_columns`.
        order : sequence of int
        clipped : bool
            Whether numeric columns are clipped.

        Returns
        -------
        Encoder
        """
        columns = [schema[j] for j in order]
        scaling = Scaling.joined([Scaling.fit(cells.column(j)[:, None]) for j in order])
        for k, column in enumerate(columns):
            if column.kind == "categorical":
                scaling.center[k], scaling.spread[k] = 0.0, 1.0
            elif column.kind == "binary":
                of_column = cells.column(order[k])
                lowest, highest = np.nanmin(of_column), np.nanmax(of_column)
                scaling.center[k], scaling.spread[k] = lowest, highest - lowest
        return cls(schema, tuple(order), tuple(column.node(clipped) for column in columns), scaling)

    def cells(self, columns: Columns, what: str = "X") -> NDArray[np.float64]:
        """Number the levels of another table with the same columns."""
        if self._is_plain and columns.types is unnamed_numbers(len(self.schema)) and self._holds_numbers:
            return columns.cells
        return cells_by_schema(columns, self.schema, what)

    def warn_of_new_gaps(self, cells: NDArray[np.float64], what: str = "X") -> None:
        """Warn of gaps in columns that had none in training."""
        new = [
            f"{int(gaps)} in {column.name!r}"
            for gaps, column in zip(np.isnan(cells).sum(axis=0), self.schema, strict=True)
            if gaps and not column.missing
        ]
        if new:
            shown = ", ".join(new[:5]) + (f" and in {len(new) - 5} more columns" if len(new) > 5 else "")
            warn_user(f"{what} has gaps in columns that had none in training: {shown}; they count as the column's mean")

    @property
    def constant(self) -> tuple[int, ...]:
        """Nodes that have nothing to tell."""
        return tuple(k for k, j in enumerate(self.order) if self.schema[j].constant)

    def node_order(self, n_targets: int) -> NDArray[np.int64]:
        """Return for each node of the layout its place among the user's columns and, behind them, the targets."""
        return np.r_[np.array(self.order, dtype=np.int64), len(self.order) + np.arange(n_targets)]

    def layout(self, *targets: Node) -> Layout:
        """Return the layout of the features and these targets."""
        return Layout((*self.nodes, *targets))

    @cached_property
    def spread(self) -> NDArray[np.float64]:
        """What centred channels are to be divided by, shape (channels,)."""
        return np.concatenate(
            [
                np.r_[np.full(node.levels, self.scaling.spread[k]), np.ones(int(node.gaps))]
                for k, node in enumerate(self.nodes)
            ]
        )

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        """First channel of every node."""
        return np.cumsum([0, *(node.channels for node in self.nodes)])

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        return np.array(self.order)

    @cached_property
    def _center(self) -> NDArray[np.float64]:
        """Centers in the user's order of columns."""
        center = np.empty(len(self.order))
        center[self._places] = self.scaling.center
        return center

    @cached_property
    def _holds_numbers(self) -> bool:
        return all(column.holds == "numbers" for column in self.schema)

    @cached_property
    def _is_plain(self) -> bool:
        """Whether every column is one channel of numbers, so that centring is all there is to do."""
        return all(node.channels == 1 for node in self.nodes) and not any(c.is_coded for c in self.schema)

    def centred(self, cells: NDArray[np.float64], room: int | None = None) -> NDArray[np.float64]:
        """Turn cells into channels that are centred but not yet divided by :attr:`spread`.

        Value channels of a missing cell are NaN when the column had gaps in training, and the mean otherwise. An
        unknown level is none of the known ones; between them for a binary column, and the mean for an ordinal one.

        Parameters
        ----------
        cells : array of shape (rows, columns)
        room : int, optional
            Rows of the result, of which those beyond the cells' are zero; as many as the cells have by default.

        Returns
        -------
        array of shape (room, channels)
        """
        room = len(cells) if room is None else room
        whole = np.empty((room, len(self.order)))
        whole[len(cells) :] = 0
        values = np.take(cells - self._center, self._places, axis=1, out=whole[: len(cells)], mode="clip")
        has_gaps = bool(np.isnan(sum_of_squares(values)))
        if self._is_plain and not has_gaps:
            return whole
        whole = np.zeros((room, int(self._first[-1])))
        out = whole[: len(cells)]
        single = [k for k, node in enumerate(self.nodes) if node.kind != "categorical"]
        out[:, self._first[single]] = values[:, single]
        for k, node in enumerate(self.nodes):
            column, first = self.schema[self.order[k]], self._first[k]
            if column.is_coded and node.kind != "categorical":
                own = out[:, first]
                unknown = values[:, k] + self.scaling.center[k] == -1
                own[unknown] = self.scaling.spread[k] / 2 if node.kind == "binary" else 0.0
            elif node.kind == "categorical":
                out[:, first : first + node.levels] = values[:, k, None] == np.arange(node.levels)
            if has_gaps or node.gaps:
                self._fill_gaps(out, np.isnan(values[:, k]), node, first, k)
        return whole

    def _fill_gaps(self, out: NDArray[np.float64], missing: NDArray[np.bool_], node: Node, first: int, k: int) -> None:
        channels = out[:, first : first + node.levels]
        if node.gaps:
            out[:, first + node.levels] = missing
            channels[missing] = np.nan
        elif node.kind == "numeric":
            channels[missing] = 0.0
        else:  # no gaps in training: nothing is known of the cell
            channels[missing] = 0.0 if node.kind == "categorical" else self.scaling.spread[k] / 2

    def encode(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn cells into channels near zero with unit spread."""
        encoded: NDArray[np.float64] = self.centred(cells) / self.spread
        return encoded
