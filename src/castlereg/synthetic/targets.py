"""A node's place in a graph: targets with or without parents, and what the other nodes are to a target."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from castlereg.graph.cycles import reachability
from castlereg.options import check_choice
from castlereg.synthetic.graphs import edge_weights

ROLES: Final = ("any", "with_parents", "without_parents")


class Roles(NamedTuple):
    """What each node is to a target; every other node is in exactly one list, the first that fits.

    Attributes
    ----------
    parents : list of str
        Causes of the target.
    children : list of str
        Effects of the target.
    spouses : list of str
        Other causes of the target's effects.
    siblings : list of str
        Other effects of the target's causes.
    distant : list of str
        The rest of those that a path joins to the target, whatever the arrows on it.
    unrelated : list of str
        Joined to the target by no path: the paper's noise variables.
    """

    parents: list[str]
    children: list[str]
    spouses: list[str]
    siblings: list[str]
    distant: list[str]
    unrelated: list[str]


def roles(dag: pd.DataFrame, target: str) -> Roles:
    """Sort the nodes of a graph by what they are to a target.

    Parameters
    ----------
    dag : DataFrame
        ``dag.loc[cause, effect]`` is not 0 where there is an edge.
    target : str

    Returns
    -------
    Roles
        Names in the order of the graph.

    Examples
    --------
    >>> from castlereg.synthetic import example_dag
    >>> found = roles(example_dag(), "Y")
    >>> found.parents, found.children, found.spouses, found.siblings, found.distant
    (['X2', 'X3'], ['X8', 'X9'], ['X6'], ['X5', 'X7'], ['X1', 'X4'])
    """
    edges, names = edge_weights(dag) != 0, list(dag.columns)
    if target not in names:
        raise ValueError(f"target={target!r} is not a node; the nodes are {', '.join(map(str, names))}")
    place = names.index(target)
    parents, children = edges[:, place], edges[place]
    groups = (
        parents,
        children,
        edges[:, children].any(axis=1),
        edges[parents].any(axis=0),
        reachability(edges | edges.T)[place],
        np.ones(len(names), dtype=bool),
    )
    left = np.arange(len(names)) != place
    found = []
    for group in groups:
        found.append([names[k] for k in np.flatnonzero(group & left)])
        left = left & ~group
    return Roles(*found)


def choose_target(dag: pd.DataFrame, role: str = "any", random_state: int | np.random.Generator = 0) -> str:
    """Choose a target at random among the nodes of a role.

    Parameters
    ----------
    dag : DataFrame
    role : {"any", "with_parents", "without_parents"}
        ``without_parents`` means causes that have none themselves: no parents, but children.
    random_state : int or Generator

    Returns
    -------
    str

    Examples
    --------
    >>> from castlereg.synthetic import example_dag
    >>> choose_target(example_dag(), "without_parents", random_state=0)
    'X1'
    """
    check_choice("role", role, ROLES)
    edges = edge_weights(dag) != 0
    has_parents, has_children = edges.any(axis=0), edges.any(axis=1)
    fitting = {
        "any": np.ones(len(dag), dtype=bool),
        "with_parents": has_parents,
        "without_parents": has_children & ~has_parents,
    }[role]
    if not fitting.any():
        raise ValueError(f"role={role!r}: the graph of {len(dag)} nodes and {edges.sum()} edges has no such node")
    rng = np.random.default_rng(random_state)
    chosen: str = dag.columns[rng.choice(np.flatnonzero(fitting))]
    return chosen
