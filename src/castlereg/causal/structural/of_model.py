"""Build a structural model from a fitted model: its columns, its training rows, and a graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.causal.graph.causal_graph import CausalGraph
from castlereg.causal.graph.constraints import unknown_node
from castlereg.causal.structural.fitted_world import FittedWorld
from castlereg.causal.structural.variables import Variable
from castlereg.fitted.model import FittedModel
from castlereg.table.preprocessing import Preprocessing
from castlereg.table.rows import Rows
from castlereg.table.schema import ColumnSchema
from castlereg.table.targets import ClassTarget


def structural_model(
    model: FittedModel,
    rows: Rows,
    graph: CausalGraph | None,
    *,
    n_draws: int,
    random_state: int | np.random.Generator,
    progress: bool = False,
) -> FittedWorld:
    """Learn the equations of a graph over the columns and targets of a model.

    Parameters
    ----------
    model : FittedModel
    rows : Rows
        Rows coded with the schema of the model.
    graph : CausalGraph, optional
        A graph that is taken as known; by default the graph of the model, with its uncertainty.
    n_draws, random_state, progress
        As in :meth:`castlereg.causal.structural.FittedWorld.fit`.
    """
    variables, values = variables_of(model.preprocessing, rows)
    names = [variable.name for variable in variables]
    is_graph_given = graph is not None
    if graph is None:
        graph = model.graph
    if graph is None:
        raise ValueError("this model has not learned a graph, it only predicts the target; pass graph=CausalGraph(...)")
    return FittedWorld.fit(
        variables,
        values,
        in_order(graph, names),
        weight=rows.weight,
        is_graph_given=is_graph_given,
        n_draws=n_draws,
        random_state=random_state,
        progress=progress,
    )


def in_order(graph: CausalGraph, names: list[str]) -> CausalGraph:
    """Return a graph with its nodes in the order of ``names``; it must have all of them."""
    if not isinstance(graph, CausalGraph):
        raise ValueError(f"graph={graph!r} must be a CausalGraph, such as graph_ of a fitted model")
    for name in graph.names:
        if name not in names:
            raise ValueError(unknown_node(name, names, "the graph"))
    absent = [name for name in names if name not in graph.names]
    if absent:
        raise ValueError(f"the graph has no node {', '.join(map(repr, absent))}; it needs all columns and targets")
    if list(graph.names) == names:
        return graph
    order = np.ix_(*[[graph.names.index(name) for name in names]] * 2)
    arrays = ("weight_array", "learned_array", "confidence_array", "direction_array")
    return replace(graph, names=tuple(names), traits=None, **{name: getattr(graph, name)[order] for name in arrays})


def variables_of(preprocessing: Preprocessing, rows: Rows) -> tuple[list[Variable], NDArray[np.float64]]:
    """Return the columns and targets in the user's order, and coded rows as numbers, shape (variables, rows)."""
    variables, values = [], []
    cells = rows.columns.cells
    for j, column in enumerate(preprocessing.schema):
        variable, numbers = _feature(column, cells[:, j])
        variables.append(variable)
        values.append(numbers)
    for target, of_target in zip(preprocessing.targets, rows.targets, strict=True):
        if isinstance(target, ClassTarget):
            variables.append(Variable(target.name, tuple(target.classes.tolist())))
            values.append(target.codes(of_target).astype(np.float64))
        else:
            variables.append(Variable(target.name))
            values.append(np.asarray(of_target, dtype=np.float64))
    return variables, np.stack(values)


def _feature(column: ColumnSchema, cells: NDArray[np.float64]) -> tuple[Variable, NDArray[np.float64]]:
    """Return a column of the table as a variable: with levels if it has levels or two values, otherwise numeric."""
    if column.levels is not None:
        return Variable(column.name, tuple(column.levels), schema=column), np.where(cells < 0, np.nan, cells)
    levels = np.unique(cells[np.isfinite(cells)])
    if column.kind == "binary" and column.holds == "numbers" and len(levels) == 2:
        codes = np.where(np.isfinite(cells), np.searchsorted(levels, cells), np.nan)
        return Variable(column.name, tuple(levels.tolist()), schema=column), codes
    holds: Any = column.holds if column.holds in ("dates", "durations") else "numbers"
    return Variable(column.name, None, holds, column), cells
