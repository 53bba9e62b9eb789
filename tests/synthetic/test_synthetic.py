"""Synthetic data against the graph it was drawn from."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from castlereg.synthetic import example_dag, random_dag, sample


def test_example_graph_is_the_papers() -> None:
    dag = example_dag()
    edges = {(cause, effect) for cause in dag for effect in dag if dag.loc[cause, effect]}
    expected = ["X1-X2", "X1-X3", "X1-X4", "X2-X5", "X2-Y", "X3-Y", "X3-X6", "X3-X7", "X6-X9", "Y-X8", "Y-X9"]
    assert edges == {tuple(edge.split("-")) for edge in expected}


@pytest.mark.parametrize(("p", "edges"), [(2, 0), (5, 10), (15, 45), (30, 60)])
def test_random_graphs_are_acyclic_with_the_edges_asked_for(p: int, edges: int) -> None:
    for seed in range(5):
        dag = random_dag(p, edges, seed)
        assert int(dag.to_numpy().sum()) == edges
        assert nx.is_directed_acyclic_graph(nx.from_numpy_array(dag.to_numpy(), create_using=nx.DiGraph))


def test_too_many_edges_are_refused() -> None:
    with pytest.raises(ValueError, match="n_edges=7: 4 nodes have room for 0 to 6 edges"):
        random_dag(4, 7, 0)


def test_linear_data_have_the_weights_and_noise_of_the_graph() -> None:
    dag = pd.DataFrame([[0, 2.0, 0], [0, 0, -1.0], [0, 0, 0]], index=list("abc"), columns=list("abc"))
    rows = sample(dag, 20_000, function="linear", noise=0.5, random_state=0)
    fit = LinearRegression().fit(rows[["a", "b"]], rows["c"])
    np.testing.assert_allclose(fit.coef_, [0, -1], atol=0.02)
    np.testing.assert_allclose((rows["c"] - fit.predict(rows[["a", "b"]])).std(), 0.5, rtol=0.02)


def test_least_squares_on_the_example_graph_has_the_known_error() -> None:
    """The population error of OLS, 0.873 of the target's variance with sigmoids and 0.844 with 1 + exp(-x)."""
    for function, floor in (("sigmoid", 0.873), ("released_sigmoid", 0.844), ("linear", 0.047)):
        rows = sample(example_dag(), 100_000, function=function, random_state=0)
        X, y = rows.drop(columns="Y"), rows["Y"]
        residual = y - LinearRegression().fit(X, y).predict(X)
        assert residual.var() / y.var() == pytest.approx(floor, abs=0.02)


def test_unknown_function_is_refused() -> None:
    with pytest.raises(ValueError, match="function='cubic' is not one of"):
        sample(example_dag(), 10, function="cubic", random_state=0)
