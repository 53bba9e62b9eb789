"""Choice of a target in a graph, and the roles of the other nodes relative to it."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

from castlereg.causal.synthetic.graphs import edge_weights
from castlereg.options import check_choice

ROLES: Final = ("any", "with_parents", "without_parents")


class Roles(NamedTuple):
    """The nodes of a graph by their role relative to a target; each node is only in the first list that fits."""

    parents: list[str]  # causes of the target
    children: list[str]  # effects of the target
    spouses: list[str]  # other causes of the target's effects
    siblings: list[str]  # other effects of the target's causes
    distant: list[str]  # connected to the target by another path, regardless of edge directions
    unrelated: list[str]  # not connected to the target: the paper's noise variables


def roles(dag: pd.DataFrame, target: str) -> Roles:
    """Sort the nodes of a graph by their role relative to a target.

    Parameters
    ----------
    dag : DataFrame
        ``dag.loc[cause, effect]`` is nonzero for an edge.
    target : str

    Returns
    -------
    Roles
        Names in the order of the graph.

    Examples
    --------
    >>> from castlereg.causal.synthetic import example_dag
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
    """Choose a random target among the nodes with a role.

    Parameters
    ----------
    dag : DataFrame
    role : {"any", "with_parents", "without_parents"}
        ``without_parents`` are nodes with children but no parents.
    random_state : int or Generator

    Returns
    -------
    str

    Examples
    --------
    >>> from castlereg.causal.synthetic import example_dag
    >>> choose_target(example_dag(), "without_parents", random_state=0)
    'X1'
    """
    check_choice("role", role, ROLES)
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
