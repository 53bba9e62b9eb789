"""Networks arranged for prediction: those that were trained, and never dependent on the other rows of a call."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import castlereg.search.networks as module
from castlereg import CastleClassifierCV, CastleRegressorCV, NetworkRegressor, Recipe
from castlereg.layout import Layout, Node
from castlereg.network import WAVES, Parameters, forward, initialize, select
from castlereg.search.networks import _ROWS_OF_A_PRODUCT, _TargetNetwork

LAYOUT = Layout((Node(), Node("binary"), Node(), Node(target=True), Node("binary", target=True)))


def drawn(rng: np.random.Generator, embedding: int, sizes: tuple[int, ...], activation: Any) -> Parameters:
    """Draw the targets' sub-networks, in float64, of features only."""
    layout = replace(LAYOUT, embedding=embedding)
    nodes = select(initialize(layout, sizes, seed=0, activation=activation), np.array(layout.targets))
    parameters: Parameters = jax.tree.map(lambda a: rng.normal(size=a.shape) / 2, nodes)
    features = np.r_[: layout.n_feature_channels, layout.n_channels : layout.n_inputs]
    return parameters._replace(input_weights=parameters.input_weights[features])


@pytest.mark.parametrize("embedding", [0, 3])
@pytest.mark.parametrize("sizes", [(), (6,), (5, 7)])
@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_outputs_are_those_of_the_network(
    rng: np.random.Generator, embedding: int, sizes: tuple[int, ...], activation: str
) -> None:
    parameters = drawn(rng, embedding, sizes, activation)
    x = rng.normal(size=(3 * _ROWS_OF_A_PRODUCT, 3))
    x[0] *= 1e6  # waves of large values lose no digits
    expected: Any = forward(parameters, x)  # type: ignore[arg-type]
    found = _TargetNetwork.of(parameters).outputs(x, {})
    size = np.abs(expected).max(axis=(1, 2), keepdims=True)
    size = np.maximum(size, np.median(size))  # rounding is relative to the terms of a sum, which may cancel
    np.testing.assert_allclose(found / size, expected / size, rtol=0, atol=2e-6 if embedding else 1e-13)


def test_columns_without_weights_have_no_waves(rng: np.random.Generator) -> None:
    parameters = drawn(rng, 3, (6,), "relu")
    weights = np.array(parameters.input_weights)
    weights[3:6] = 0  # of the first column that is embedded
    parameters = parameters._replace(input_weights=weights)  # type: ignore[arg-type]
    network = _TargetNetwork.of(parameters)
    assert parameters.embedding is not None
    assert network.embedded == parameters.embedding.channels.indices[1:]
    assert network.wave_weights.shape == (WAVES * len(network.embedded), 12)
    x = rng.normal(size=(_ROWS_OF_A_PRODUCT, 3))
    np.testing.assert_allclose(network.outputs(x, {}), forward(parameters, x), rtol=1e-4, atol=1e-5)  # type: ignore[arg-type]


def test_networks_share_repeated_values(rng: np.random.Generator) -> None:
    x, repeated = rng.normal(size=(_ROWS_OF_A_PRODUCT, 3)), {}  # type: ignore[var-annotated]
    first, second = (_TargetNetwork.of(drawn(rng, 3, (6,), "relu")) for _ in range(2))
    alone = second.outputs(x, {})
    first.outputs(x, repeated)
    (values,) = repeated.values()
    np.testing.assert_array_equal(second.outputs(x, repeated), alone)
    assert values is repeated[second.embedded]


@pytest.mark.parametrize("processor", [None, "Haswell", "Nehalem"])
def test_predictions_do_not_depend_on_the_position_of_a_row(processor: str | None) -> None:
    """OpenBLAS reads the type of the processor when it is loaded; other libraries ignore the variable."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    if processor is not None:
        environment["OPENBLAS_CORETYPE"] = processor
    command = f"from {__name__} import check_positions; check_positions()"
    subprocess.run(
        [sys.executable, "-c", command], check=True, env=environment, cwd=Path(__file__).parents[2], timeout=240
    )


def check_positions() -> None:
    """Compare the outputs of networks on the same rows in other orders."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2 * _ROWS_OF_A_PRODUCT, 3))
    for embedding in (0, 3, 8):
        for sizes in ((), (6,), (32,), (11, 11), (64, 64), (128,), (33, 100)):
            network = _TargetNetwork.of(drawn(rng, embedding, sizes, "relu"))
            expected = network.outputs(x, {})
            for shift in range(1, len(x)):
                moved = np.roll(network.outputs(np.roll(x, shift, axis=0), {}), -shift, axis=0)
                np.testing.assert_array_equal(moved, expected, err_msg=f"{embedding=}, {sizes=}, {shift=}")


@pytest.fixture(scope="module", params=["regression", "classification"])
def fitted(request: pytest.FixtureRequest) -> tuple[Any, np.ndarray]:
    """Fit a pool of ten folds: more than NumPy adds up in the same order for one row and for many."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = X[:, 0] + np.sin(3 * X[:, 1]) + 0.1 * rng.normal(size=150)
    rows = rng.normal(size=(1100, 3))
    if request.param == "regression":
        return CastleRegressorCV(search="best", max_epochs=5, random_state=0).fit(X, y).predict, rows
    return CastleClassifierCV(search="best", max_epochs=5, random_state=0).fit(X, y > 0).predict_proba, rows


def test_a_prediction_does_not_depend_on_other_rows(fitted: tuple[Any, np.ndarray]) -> None:
    predict, rows = fitted
    together = predict(rows)  # more than one block
    np.testing.assert_array_equal(predict(rows[::-1])[::-1], together)
    for some in (slice(0, 1), slice(1023, 1025), slice(500, 517), slice(3, 300)):
        np.testing.assert_array_equal(predict(rows[some]), together[some])


@pytest.mark.parametrize("cores", [1, 3])
def test_a_prediction_does_not_depend_on_threads(
    fitted: tuple[Any, np.ndarray], cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict, rows = fitted
    expected = predict(rows)
    monkeypatch.setattr(module.joblib, "cpu_count", lambda: cores)
    np.testing.assert_array_equal(predict(rows), expected)
    monkeypatch.setattr(module, "_LONG", 10**9)
    np.testing.assert_array_equal(predict(rows), expected)


def test_without_threads_predictions_are_the_same(
    fitted: tuple[Any, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python starts no threads while it ends, when others may still predict."""

    def none(cores: int) -> Any:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    predict, rows = fitted
    expected = predict(rows)
    monkeypatch.setattr(module, "ThreadPoolExecutor", none)
    np.testing.assert_array_equal(predict(rows), expected)


@pytest.mark.filterwarnings("error")
def test_a_value_far_beyond_all_others_has_a_finite_prediction() -> None:
    rng = np.random.default_rng(0)
    X = 1e-10 * rng.normal(size=(60, 2))
    model = NetworkRegressor(recipe=Recipe(embedding=4), max_epochs=2, random_state=0).fit(X, X[:, 0] * 1e10)
    assert np.isfinite(model.predict([[1e30, 0.0], [0.0, -1e38]])).all()
