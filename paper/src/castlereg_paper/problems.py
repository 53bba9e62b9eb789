"""Problems of the paper's synthetic experiments: a random graph, a target and the roles of the other nodes, rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

from castlereg.causal import KnownWorld, random_dag
from castlereg.causal.worlds import edge_weights
from castlereg.options import check_choice, check_integer, check_number
from castlereg_paper.floors import BestError, best_error

_ROLES: Final = ("any", "with_parents", "without_parents")


class Roles(NamedTuple):
    """The nodes of a graph by their role relative to a target; each node is only in the first list that fits."""

    parents: list[str]  # causes of the target
    children: list[str]  # effects of the target
    spouses: list[str]  # other causes of the target's effects
    siblings: list[str]  # other effects of the target's causes
    distant: list[str]  # connected to the target by another path, regardless of edge directions
    unrelated: list[str]  # not connected to the target: the paper's noise variables


def roles(dag: pd.DataFrame, target: str) -> Roles:
    """Sort the nodes of a graph, where ``dag.loc[cause, effect]`` is nonzero for an edge, by role relative to a target.

    Examples
    --------
    >>> from castlereg.causal import example_dag
    >>> by_role = roles(example_dag(), "Y")
    >>> by_role.parents, by_role.children, by_role.spouses, by_role.siblings, by_role.distant
    (['X2', 'X3'], ['X8', 'X9'], ['X6'], ['X5', 'X7'], ['X1', 'X4'])
    """
    edges, names = edge_weights(dag) != 0, list(dag.columns)
    if target not in names:
        raise ValueError(f"target={target!r} is not a node; the nodes are {', '.join(map(str, names))}")
    node = names.index(target)
    parents, children = edges[:, node], edges[node]
    _, component = connected_components(edges, connection="weak")
    groups = (
        parents,
        children,
        edges[:, children].any(axis=1),
        edges[parents].any(axis=0),
        component == component[node],
        np.ones(len(names), dtype=bool),
    )
    remaining = np.arange(len(names)) != node
    by_role = []
    for group in groups:
        by_role.append([names[k] for k in np.flatnonzero(group & remaining)])
        remaining = remaining & ~group
    return Roles(*by_role)


def choose_target(dag: pd.DataFrame, role: str = "any", random_state: int | np.random.Generator = 0) -> str:
    """Choose a random target among the nodes with a role: "any", "with_parents" or "without_parents".

    Nodes ``without_parents`` have children.

    Examples
    --------
    >>> from castlereg.causal import example_dag
    >>> choose_target(example_dag(), "without_parents", random_state=0)
    'X1'
    """
    check_choice("role", role, _ROLES)
    edges = edge_weights(dag) != 0
    has_parents, has_children = edges.any(axis=0), edges.any(axis=1)
    candidates = {
        "any": np.ones(len(dag), dtype=bool),
        "with_parents": has_parents,
        "without_parents": has_children & ~has_parents,
    }[role]
    if not candidates.any():
        raise ValueError(
            f"role={role!r}: the graph of {len(dag)} nodes and {edges.sum()} edges has no such node: choose another"
        )
    rng = np.random.default_rng(random_state)
    chosen: str = dag.columns[rng.choice(np.flatnonzero(candidates))]
    return chosen


@dataclass(frozen=True, eq=False)
class Problem:
    """Training rows, test rows and the model that generated them; the target is called ``Y``."""

    X: pd.DataFrame
    y: pd.Series
    X_test: pd.DataFrame
    y_test: pd.Series
    model: KnownWorld

    @property
    def dag(self) -> pd.DataFrame:
        """The true graph, with ``dag.loc[cause, effect]``."""
        return self.model.dag

    @cached_property
    def best_error(self) -> BestError:
        """Error of the best possible predictor of ``Y`` from all columns of ``X``; computed on first access."""
        return best_error(self.model, "Y")


def random_problem(
    n_nodes: int,
    n_rows: int | None = None,
    *,
    role: str = "with_parents",
    n_noise_columns: int = 0,
    function: str = "sigmoid",
    noise: str = "gaussian",
    noise_std: float | None = None,
    branching: float | None = None,
    n_test_rows: int = 1000,
    random_state: int | np.random.Generator = 0,
) -> Problem:
    """Draw a problem on a random graph.

    Parameters
    ----------
    n_nodes : int
        Number of nodes, including the target; the paper uses 10, 50, 100 and 150.
    n_rows : int, optional
        Number of training rows; by default 50 per node, as in the paper.
    role : {"with_parents", "without_parents", "any"}
        See :func:`castlereg_paper.choose_target`.
    n_noise_columns : int
        Number of additional columns of standard normal noise; the paper uses 0 to 100.
    function, noise : str
        See :class:`castlereg.causal.KnownWorld`. In a complete linear graph, values double from node to
        node: they stay finite (2**149 for 150 nodes), but other columns then predict the target up to rounding.
    noise_std : float, optional
        By default drawn between 0.3 and 1, as in the paper.
    branching : float, optional
        Edges per node; drawn by default, see :func:`castlereg.causal.random_dag`.
    n_test_rows : int
    random_state : int or Generator

    Examples
    --------
    >>> problem = random_problem(10, n_noise_columns=20, branching=2, random_state=0)
    >>> problem.X.shape, problem.X_test.shape, int(problem.dag.to_numpy().sum())
    ((500, 29), (1000, 29), 20)
    >>> 0 < problem.best_error.standardized < 1
    True
    """
    rng = np.random.default_rng(random_state)
    dag = random_dag(n_nodes, random_state=rng, branching=branching)
    if n_rows is None:
        n_rows = 50 * n_nodes
    check_integer("n_rows", n_rows)
    check_integer("n_test_rows", n_test_rows)
    target = choose_target(dag, role, rng)
    dag = dag.rename(index={target: "Y"}, columns={target: "Y"})
    drawn_std = rng.uniform(0.3, 1.0)  # always drawn, so that passing noise_std changes nothing else
    if noise_std is None:
        noise_std = drawn_std
    check_number("noise_std", noise_std, least=0)
    model = KnownWorld(dag, function=function, noise=noise, noise_std=noise_std, random_state=rng)
    model = model.with_noise_columns(n_noise_columns)
    train, test = model.sample(n_rows, rng), model.sample(n_test_rows, rng)
    return Problem(train.drop(columns="Y"), train["Y"], test.drop(columns="Y"), test["Y"], model)
