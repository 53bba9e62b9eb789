"""Rows in one call."""

from __future__ import annotations

from graphlib import TopologicalSorter

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from castlereg.synthetic import StructuralModel, example_dag, random_dag, sample
from castlereg.synthetic.sampling import FUNCTIONS


def test_linear_data_have_the_weights_and_noise_of_the_graph() -> None:
    dag = pd.DataFrame([[0, 2.0, 0], [0, 0, -1.0], [0, 0, 0]], index=list("abc"), columns=list("abc"))
    rows = sample(dag, 20_000, function="linear", noise=0.5, random_state=0)
    fit = LinearRegression().fit(rows[["a", "b"]], rows["c"])
    np.testing.assert_allclose(fit.coef_, [0, -1], atol=0.02)
    np.testing.assert_allclose((rows["c"] - fit.predict(rows[["a", "b"]])).std(), 0.5, rtol=0.02)


@pytest.mark.parametrize("function", ["linear", "sigmoid", "released_sigmoid"])
def test_rows_are_those_of_earlier_versions_up_to_rounding(function: str) -> None:
    """One generator draws all noise, node by node, and is left where it was left before."""
    dag, rng, new = random_dag(12, 20, 3), np.random.default_rng(7), np.random.default_rng(7)
    values = dict(zip(dag.columns, 0.7 * rng.standard_normal((12, 90)), strict=True))
    parents = {node: list(dag.index[dag[node] != 0]) for node in dag.columns}
    for node in TopologicalSorter(parents).static_order():
        for parent in parents[node]:
            values[node] += FUNCTIONS[function](values[parent])
    rows = sample(dag, 90, function=function, noise=0.7, random_state=new)
    pd.testing.assert_frame_equal(rows, pd.DataFrame(values), rtol=1e-12)
    assert rng.random() == new.random()


def test_least_squares_on_the_example_graph_has_the_known_error() -> None:
    """The population error of OLS, 0.873 of the target's variance with sigmoids and 0.844 with 1 + exp(-x)."""
    for function, floor in (("sigmoid", 0.873), ("released_sigmoid", 0.844), ("linear", 0.047)):
        rows = sample(example_dag(), 100_000, function=function, random_state=0)
        X, y = rows.drop(columns="Y"), rows["Y"]
        residual = y - LinearRegression().fit(X, y).predict(X)
        assert residual.var() / y.var() == pytest.approx(floor, abs=0.02)


def test_is_a_short_form_of_the_model() -> None:
    noise = {"X1": 0.2}
    rows = sample(example_dag(), 50, function="sine", noise=noise, distribution="laplace", random_state=1)
    model = StructuralModel(example_dag(), function="sine", noise="laplace", noise_std=noise)
    pd.testing.assert_frame_equal(rows, model.sample(50, 1))


@pytest.mark.parametrize("options", [{"function": "smooth"}, {"categorical": {"X1": 3}}])
def test_a_number_repeats_random_functions_too(options: dict[str, object]) -> None:
    first = sample(example_dag(), 50, random_state=4, **options)  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(first, sample(example_dag(), 50, random_state=4, **options))  # type: ignore[arg-type]


def test_unknown_function_is_refused() -> None:
    with pytest.raises(ValueError, match="function='cubic' is not one of"):
        sample(example_dag(), 10, function="cubic", random_state=0)
