"""The columns of the table and how they were read."""

from __future__ import annotations

from dataclasses import dataclass

from castlereg.data.preprocessing import Preprocessing
from castlereg.data.targets import NumericTarget, Target

_MOST_LEVELS = 8


@dataclass(frozen=True)
class Column:
    """One column of the table, or a target."""

    name: str
    kind: str
    is_target: bool
    levels: tuple[str, ...] = ()  # the first few
    n_levels: int = 0
    missing: int = 0  # missing values
    missing_share: float = 0.0  # of all rows
    note: str = ""


def table_columns(preprocessing: Preprocessing, n_rows: int) -> tuple[Column, ...]:
    """List the columns of a table with this many rows, the targets first."""
    features = [
        Column(
            column.name,
            "constant" if column.constant else column.kind,
            False,
            _first(column.levels or ()),
            len(column.levels or ()),
            column.missing,
            min(column.missing / n_rows, 1.0),
            column.note,
        )
        for column in preprocessing.schema
    ]
    return (*map(_of_target, preprocessing.targets), *features)


def _of_target(target: Target) -> Column:
    if isinstance(target, NumericTarget):
        return Column(target.name, "numeric", True)
    return Column(target.name, target.node.kind, True, _first(target.classes.tolist()), len(target.classes))


def _first(levels: tuple[object, ...] | list[object]) -> tuple[str, ...]:
    return tuple(str(level) for level in levels[:_MOST_LEVELS])
