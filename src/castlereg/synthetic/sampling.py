"""Rows drawn from a graph in one call: the paper's Algorithm 1."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from castlereg.synthetic.equations import FUNCTIONS, SMOOTH
from castlereg.synthetic.model import StructuralModel

__all__ = ["FUNCTIONS", "sample"]


def sample(
    dag: pd.DataFrame,
    n_rows: int,
    *,
    function: str = "sigmoid",
    noise: float | Mapping[str, float] | pd.Series = 1.0,
    distribution: str | Mapping[str, str] = "gaussian",
    categorical: Mapping[str, int] | None = None,
    random_state: int | np.random.Generator,
) -> pd.DataFrame:
    """Draw rows from a graph.

    Parameters
    ----------
    dag : DataFrame
        ``dag.loc[cause, effect]`` is the weight of the edge, 0 for none.
    n_rows : int
    function : {"sigmoid", "linear", "released_sigmoid", "sine", "smooth"}
        Applied to each parent before the sum.
    noise : float, or mapping or Series of node to float
        Standard deviation of the noise.
    distribution : {"gaussian", "uniform", "laplace", "gumbel"} or mapping of node to these
        Of the noise.
    categorical : mapping of node to int, optional
        Number of levels of categorical nodes.
    random_state : int or Generator
        Draws the noise, and the smooth functions and effects of levels as well: two calls with different numbers have
        different ones. :class:`StructuralModel` keeps them for training and test rows.

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
    rng = np.random.default_rng(random_state)
    effects = rng if function == SMOOTH or categorical else 0  # else nothing is drawn but noise
    model = StructuralModel(
        dag,
        function=function,
        noise=distribution,
        noise_std=noise,
        categorical=categorical or {},
        random_state=effects,
    )
    return model.sample(n_rows, rng)
