"""Rows to learn from: what was read, coded for a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.data.column_order import column_order
from castlereg.data.encoding import Encoder
from castlereg.data.reading import Columns
from castlereg.data.row_order import repeated_rows, row_order, row_ranks
from castlereg.data.schema import cells_by_schema, coded_columns, infer_schema
from castlereg.data.targets import ClassTarget, Target
from castlereg.layout import EdgeRules, Layout
from castlereg.moments import blocks
from castlereg.training import Table
from castlereg.training.room import room_for


@dataclass(frozen=True)
class Rows:
    """Rows with their targets and weights.

    Parameters
    ----------
    columns : Columns
    targets : tuple of array of shape (rows,)
    weight : array of float64, shape (rows,), optional
        None when all weigh alike.
    index : array of int, shape (rows,), optional
        Places of the rows in the user's table; None when they are all there in the user's order.
    """

    columns: Columns
    targets: tuple[NDArray[Any], ...]
    weight: NDArray[np.float64] | None = None
    index: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.columns)

    def take(self, rows: NDArray[np.int64]) -> Rows:
        """Keep some rows, in this order."""
        weight = None if self.weight is None else self.weight[rows]
        index = rows if self.index is None else self.index[rows]
        return Rows(self.columns.take(rows), tuple(target[rows] for target in self.targets), weight, index)

    def order(self, columns: Iterable[NDArray[np.float64]]) -> NDArray[np.int64]:
        """Return the rows' own order, by targets, coded columns and weights."""
        return row_order(chain(self.targets, columns, [] if self.weight is None else [self.weight]))

    def weighted(self, weight: NDArray[np.float64] | None) -> Rows:
        """Repeat rows as whole-number weights say, or drop those that weigh nothing and keep the weights."""
        if weight is None:
            return self
        repeated = repeated_rows(weight)
        if repeated is not None:
            return self.take(repeated)
        return replace(self, weight=weight).take(np.flatnonzero(weight))


@dataclass(frozen=True)
class Coding:
    """How rows become the channels of a layout.

    Parameters
    ----------
    encoder : Encoder
        Of the features.
    targets : tuple of NumericTarget or ClassTarget
    """

    encoder: Encoder
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
    ) -> tuple[Coding, list[Rows]]:
        """Learn the coding of rows, and bring them into an order of their own.

        Parameters
        ----------
        rows : Rows
            Decide the kinds, the levels and the scales.
        held_out : Rows, optional
            Rows to stop by. They have a say in the order of the columns alone, so that folds of one table share it.
        make_targets : callable
            Learns the coding of the targets.
        categorical : sequence of bool
            Columns that the user calls categorical.
        clipped : bool

        Returns
        -------
        coding : Coding
        parts : list of Rows
            ``rows`` and, if given, ``held_out``, each in their own order.
        """
        schema = infer_schema(rows.columns, categorical)
        parts, cells = [rows], [coded_columns(rows.columns, schema)]
        if held_out is not None:
            parts.append(held_out)
            cells.append(coded_columns(held_out.columns, schema, "X_val"))
        ranks = row_ranks(np.concatenate(columns) for columns in zip(*(part.targets for part in parts), strict=True))
        nodes = [column.node(clipped) for column in schema]
        columns = (np.concatenate([part.column(j) for part in cells]) for j in range(len(schema)))
        order = column_order(columns, ranks, nodes, rows.columns.names)
        own = [part.order(map(of_part.column, order)) for part, of_part in zip(parts, cells, strict=True)]
        parts = [part.take(own_order) for part, own_order in zip(parts, own, strict=True)]
        encoder = Encoder.fit(schema, cells[0].take(own[0]), order, clipped=clipped)
        for of_held_out in cells[1:]:
            encoder.warn_of_new_gaps(of_held_out.cells, "X_val")
        return cls(encoder, make_targets(parts[0])), parts

    @property
    def layout(self) -> Layout:
        """Nodes of the features and the targets."""
        return self.encoder.layout(*(target.node for target in self.targets))

    def table(self, *parts: Rows, edges: EdgeRules | None = None) -> Table:
        """Encode rows, one part below the other; the rules are for the columns in the user's order."""
        weights = None
        if any(part.weight is not None for part in parts):
            weights = np.concatenate([np.ones(len(p)) if p.weight is None else p.weight for p in parts])
        layout, n_rows = self.layout, sum(map(len, parts))
        room = room_for(n_rows, layout.n_channels)
        first = 0
        for part in parts:
            self._fill(room[first : first + len(part)], part)
            first += len(part)
        return Table(
            room[:n_rows],
            layout,
            None if weights is None else weights.astype(np.float32),
            self.encoder.constant,
            None if edges is None else edges.reordered(self.encoder.node_order(len(self.targets))),
            room,
        )

    def cells(self, rows: Rows) -> NDArray[np.float64]:
        """Number the levels of rows whose oddities were told before."""
        return cells_by_schema(rows.columns, self.encoder.schema, warn=False)

    def coded(self, rows: Rows) -> Columns:
        """Do what :meth:`cells` does, without a copy of a table whose cells are values already."""
        return coded_columns(rows.columns, self.encoder.schema, warn=False)

    def _fill(self, channels: NDArray[np.float32], rows: Rows) -> None:
        """Encode rows into an array, block by block."""
        coded = self.coded(rows)
        for block in blocks(len(rows)):
            features = self.encoder.encode(coded.block(block.start, block.stop))
            targets = [target.encode(values[block]) for target, values in zip(self.targets, rows.targets, strict=True)]
            channels[block] = np.hstack([features, *targets])

    def classes_of(self, rows: Rows) -> NDArray[np.int64] | None:
        """Number the classes of the first target that has any; None when all targets are numbers."""
        for target, values in zip(self.targets, rows.targets, strict=True):
            if isinstance(target, ClassTarget):
                return target.codes(values)
        return None
