"""Rows drawn from a graph: every node a sum of functions of its parents plus noise (the paper's Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable
from graphlib import TopologicalSorter
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

FUNCTIONS: Final[dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]]] = {
    "linear": lambda x: x,
    "sigmoid": lambda x: np.asarray(expit(x)),
    # What the released code computes for its sigmoid: an operator's precedence makes it 1 + exp(-x).
    "released_sigmoid": lambda x: 1 + np.exp(-x),
}


def sample(
    dag: pd.DataFrame,
    n_rows: int,
    *,
    function: str = "sigmoid",
    noise: float = 1.0,
    random_state: int | np.random.Generator,
) -> pd.DataFrame:
    """Draw rows from a graph.

    Parameters
    ----------
    dag : DataFrame
        ``dag.loc[cause, effect]`` is the weight of the edge, 0 for none.
    n_rows : int
    function : {"sigmoid", "linear", "released_sigmoid"}
        Applied to each parent before the sum.
    noise : float
        Standard deviation of the Gaussian noise of every node.
    random_state : int or Generator

    Returns
    -------
    DataFrame
        One column per node, in the order of ``dag``.

    Examples
    --------
    >>> from castlereg.synthetic import example_dag
    >>> sample(example_dag(), 3, random_state=0).shape
    (3, 10)
    """
    if function not in FUNCTIONS:
        raise ValueError(f"function={function!r} is not one of {', '.join(map(repr, FUNCTIONS))}")
    rng = np.random.default_rng(random_state)
    apply = FUNCTIONS[function]
    values = dict(zip(dag.columns, noise * rng.standard_normal((len(dag), n_rows)), strict=True))
    parents = {node: list(dag.index[dag[node] != 0]) for node in dag.columns}
    for node in TopologicalSorter(parents).static_order():
        for parent in parents[node]:
            values[node] += dag.loc[parent, node] * apply(values[parent])
    return pd.DataFrame(values)
