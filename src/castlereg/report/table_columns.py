"""What every column was taken for."""

from __future__ import annotations

from dataclasses import dataclass

from castlereg.data.targets import NumericTarget
from castlereg.estimators.base import NetworkEstimator

_MOST_LEVELS = 8


@dataclass(frozen=True)
class Column:
    """One column of the table, or a target.

    Attributes
    ----------
    name, kind : str
    is_target : bool
    levels : tuple of str
        The first few.
    n_levels : int
    missing : int
        Gaps.
    missing_share : float
        Of all rows.
    note : str
    """

    name: str
    kind: str
    is_target: bool
    levels: tuple[str, ...]
    n_levels: int
    missing: int
    missing_share: float
    note: str


def table_columns(model: NetworkEstimator, n_rows: int) -> tuple[Column, ...]:
    """List the columns of the table that a model was trained on, the targets first.

    Parameters
    ----------
    model : fitted estimator
    n_rows : int

    Returns
    -------
    tuple of Column
    """
    targets = [
        Column(target.name, "numeric", True, (), 0, 0, 0.0, "")
        if isinstance(target, NumericTarget)
        else Column(
            target.name, target.node.kind, True, _first(target.classes.tolist()), len(target.classes), 0, 0.0, ""
        )
        for target in model._coding.targets
    ]
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
        for column in model._coding.schema
    ]
    return (*targets, *features)


def _first(levels: tuple[object, ...] | list[object]) -> tuple[str, ...]:
    return tuple(str(level) for level in levels[:_MOST_LEVELS])
