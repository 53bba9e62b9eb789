"""Estimators become modules that predict the same, and trained modules become estimators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

import castlereg
from castlereg import CastleRegressor, CastleRegressorCV
from castlereg.losses import cell_losses
from castlereg.network import forward
from tests.fitted_models import fitted

torch = pytest.importorskip("torch")
from castlereg.torch import (  # noqa: E402  # needs torch
    CastleNetwork,
    TableNetwork,
    WrappedNetwork,
    batch_of,
    castle_loss,
    from_estimator,
    input_graph,
    inputs_of,
    to_estimator,
)

# Mixed columns with missing values; clipped columns, several members and only the target's sub-network; dates, two
# targets and the graph objective; embeddings and a refit.
NAMES = ["CastleClassifier", "NetworkRegressor", "CastleMultiOutput", "embedded and refitted"]


def predictions(model: Any, X: Any) -> list[Any]:
    """Return values or probabilities of every target."""
    return model.model_.predict(castlereg.estimators.base.read_features(model, X))


@pytest.mark.filterwarnings("ignore:X has")  # levels and missing values that training had not
@pytest.mark.parametrize("name", NAMES)
def test_the_module_of_a_table_predicts_as_the_estimator(name: str) -> None:
    model, X, _, unseen = fitted(name)
    for rows in (X, unseen):
        expected = predictions(model, rows)
        for dtype, tolerance in ((torch.float64, 1e-6), (torch.float32, 1e-4)):
            found = TableNetwork(model).to(dtype)(rows)
            found = found if isinstance(found, tuple) else (found,)
            for of_target, values in zip(found, expected, strict=True):
                assert of_target.dtype == dtype
                scale = np.abs(values).max()
                np.testing.assert_allclose(of_target.detach(), values, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", NAMES)
def test_a_member_gives_the_outputs_of_standardized_rows(name: str) -> None:
    model, X, y, _ = fitted(name)
    member = model.model_.networks.n_members - 1
    parameters, batch = model.standardized(X, y, member)
    network = from_estimator(model, member).double()
    rows = batch_of(model, X, y, member, dtype=torch.float64)
    expected: Any = forward(parameters, batch.inputs)
    with torch.no_grad():
        np.testing.assert_allclose(network(rows.inputs), expected, rtol=1e-6, atol=1e-6)
        known = inputs_of(model, X, member, dtype=torch.float64)
        torch.testing.assert_close(network.target_outputs(known), network.target_outputs(rows.inputs))
    jax.tree.map(np.testing.assert_array_equal, network.to_parameters(), parameters)


def test_losses_of_an_estimators_network_are_in_its_units() -> None:
    model, X, y, _ = fitted("CastleClassifier")
    parameters, batch = model.standardized(X, y)
    networks, rows = model.model_.networks, batch_of(model, X, y)
    losses = cell_losses(
        forward(parameters, batch.inputs), batch, networks.layout, null_loss=networks.standardization.null_loss[0]
    )
    _, terms = castle_loss(from_estimator(model), rows)
    assert float(terms["reconstruction"].detach()) == pytest.approx(losses.sum(axis=1).mean(), rel=1e-5)
    assert float(terms["supervised"].detach()) == pytest.approx(losses[:, -1].mean(), rel=1e-5)


@pytest.mark.parametrize("name", ["CastleClassifier", "NetworkRegressor", "CastleMultiOutput", "CastleRegressor"])
def test_there_and_back_is_the_same_estimator(name: str) -> None:
    model, X, y, _ = fitted(name)
    networks = [from_estimator(model, member) for member in range(model.model_.networks.n_members)]
    again = to_estimator(networks, model, X, y)
    assert again is not model
    assert type(again) is type(model)
    for found, expected in zip(predictions(again, X), predictions(model, X), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert again.get_params()["n_members"] == len(networks)


@pytest.fixture(scope="module")
def diabetes() -> tuple[CastleRegressor, pd.DataFrame, pd.Series]:
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = CastleRegressor(max_epochs=3, hidden_layer_sizes=(8, 8), random_state=0)
    return model.fit(X[:350], y[:350], X_val=X[350:], y_val=y[350:]), X, y


@pytest.fixture(scope="module")
def trained(diabetes: Any) -> tuple[CastleNetwork, CastleRegressor]:
    """A network that was trained further in PyTorch, and its estimator."""
    model, X, y = diabetes
    network, batch = from_estimator(model), batch_of(model, X[:350], y[:350])
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(100):
        loss, _ = castle_loss(network, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network, to_estimator(network, model, X[350:], y[350:])


def test_weights_trained_in_torch_predict_in_the_estimator(diabetes: Any, trained: Any) -> None:
    (model, X, y), (_, estimator) = diabetes, trained
    np.testing.assert_allclose(TableNetwork(estimator).double()(X).detach(), estimator.predict(X), rtol=1e-9)
    assert estimator.score(X[350:], y[350:]) > 0.35 > model.score(X[350:], y[350:])
    assert estimator.validation_loss_ == pytest.approx(
        np.mean((estimator.predict(X[350:]) - y[350:]) ** 2) / y[:350].var(ddof=0), rel=1e-5
    )
    assert estimator.feature_importances_.max() > 0.1
    assert estimator.history_["validation_loss"].tolist() == [estimator.validation_loss_]


def test_weights_trained_in_torch_are_saved_and_exported(diabetes: Any, trained: Any, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    (_, X, _), (_, estimator) = diabetes, trained
    castlereg.save(estimator, tmp_path / "model.castle")
    np.testing.assert_array_equal(castlereg.load(tmp_path / "model.castle").predict(X), estimator.predict(X))
    castlereg.to_onnx(estimator, tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    (predicted,) = session.run(None, castlereg.onnx_inputs(estimator, X))
    np.testing.assert_allclose(predicted, estimator.predict(X), rtol=1e-9)


def test_the_graph_is_that_of_the_estimator(diabetes: Any, trained: Any) -> None:
    """The module's own graph, with the validation rows, has the estimator's edges, weights and threshold."""
    (model, X, y), (network, estimator) = diabetes, trained
    graph = input_graph(network, validation=batch_of(model, X[350:], y[350:]))
    names = list(estimator.graph_.names)
    assert set(graph.names) == set(names)
    assert graph.target == "target"
    np.testing.assert_allclose(graph.weights.loc[names, names], estimator.graph_.weights, rtol=1e-6)
    assert graph.threshold == pytest.approx(estimator.graph_.threshold)
    assert 0 < len(graph.edges()) < 55


def test_forbidden_edges_stay_forbidden() -> None:
    """The constraints of the fitted model: x1 -> x2, and no edge into an earlier tier."""
    model, X, y, _ = fitted("CastleRegressor")
    network = from_estimator(model)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1)
    castle_loss(network, batch_of(model, X, y))[0].backward()
    optimizer.step()
    weights = input_graph(network, threshold=0.0).learned_weights
    assert weights.loc["x1", "x2"] == weights.loc["y", "x0"] == 0
    assert weights.loc["x0", "y"] > 0
    assert to_estimator(network, model, X, y).graph_.weights.loc["x0", "y"] > 0  # required


def test_a_wrapped_network_becomes_an_estimator(diabetes: Any) -> None:
    model, X, y = diabetes
    mlp = torch.nn.Sequential(torch.nn.Linear(10, 6), torch.nn.SiLU(), torch.nn.Dropout(0.2), torch.nn.Linear(6, 1))
    estimator = to_estimator(WrappedNetwork(mlp, model.model_.networks.layout), model, X[350:], y[350:])
    outputs = mlp.eval()(inputs_of(model, X)[:, :10])[:, 0].detach().numpy()
    np.testing.assert_allclose(estimator.predict(X), y[:350].mean() + y[:350].std(ddof=0) * outputs, rtol=1e-5)


def test_what_cannot_be_converted_raises(diabetes: Any) -> None:
    model, X, y = diabetes
    network = from_estimator(model)
    with pytest.raises(ValueError, match="networks has 2 modules, but the estimator needs 1 network"):
        to_estimator([network, network], model, X, y)
    with pytest.raises(ValueError, match="the nodes of the network differ from those of the estimator"):
        to_estimator(CastleNetwork(3, (4,)), model, X, y)
    diverged = from_estimator(model)
    diverged.input_bias.data[0] = torch.nan
    with pytest.raises(ValueError, match="weights that are not finite"):
        to_estimator(diverged, model, X, y)
    with pytest.raises(ValueError, match="history needs a column 'member'"):
        to_estimator(network, model, X, y, history=pd.DataFrame({"epoch": [1]}))
    with pytest.raises(ValueError, match="member=1 must be less than the number of networks, which is 1"):
        from_estimator(model, 1)
    with pytest.raises(ValueError, match=r"errors of its folds.*: use CastleRegressor"):
        to_estimator(network, CastleRegressorCV(), X, y)
