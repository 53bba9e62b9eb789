"""Problems of the paper's synthetic experiments: a random graph, a target, training and test rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from castlereg.causal.synthetic import KnownWorld, random_dag
from castlereg.options import check_integer, check_number
from castlereg.paper.floors import BestError, best_error
from castlereg.paper.targets import choose_target


@dataclass(frozen=True, eq=False)
class Problem:
    """Training rows, test rows and the model that generated them.

    Attributes
    ----------
    X, y, X_test, y_test : DataFrame, Series
        The target is called ``Y``.
    model : KnownWorld
        The structural model that generated the rows.
    """

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
        See :func:`castlereg.paper.choose_target`.
    n_noise_columns : int
        Number of additional columns of standard normal noise; the paper uses 0 to 100.
    function, noise : str
        See :class:`castlereg.causal.synthetic.KnownWorld`. In a complete linear graph, values double from node to
        node: they stay finite (2**149 for 150 nodes), but other columns then predict the target up to rounding.
    noise_std : float, optional
        By default drawn between 0.3 and 1, as in the paper.
    branching : float, optional
        Edges per node; drawn by default, see :func:`castlereg.causal.synthetic.random_dag`.
    n_test_rows : int
    random_state : int or Generator

    Returns
    -------
    Problem

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
