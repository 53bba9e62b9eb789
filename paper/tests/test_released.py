"""The authors' released code: its objective, its start and how it trains."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.special
from sklearn.datasets import load_diabetes

from castlereg import CastleRegressor, NetworkRegressor, load, save
from castlereg.layout import Layout, Node
from castlereg.losses import Batch
from castlereg.network import forward, initialize
from castlereg.regularizers import Castle
from castlereg.regularizers.engine import regularized_loss
from castlereg.training.loop import BatchStream
from castlereg_paper import ReleasedCastle, released_options
from castlereg_paper.acyclicity import truncated_series
from castlereg_paper.released import released_start


@pytest.mark.parametrize("regularizer", [ReleasedCastle(5.0), Castle(acyclicity=truncated_series)])
def test_it_trains(regularizer: Castle) -> None:
    X, y = load_diabetes(return_X_y=True)
    model = NetworkRegressor([regularizer], max_epochs=60, random_state=0).fit(X, y)
    assert 0.2 < model.score(X, y) < 0.8


def test_terms_are_weighted_as_in_the_released_code(rng: np.random.Generator) -> None:
    layout, n_rows, reg_lambda, reg_beta = Layout((*[Node()] * 3, Node(target=True))), 6, 0.5, 5.0
    x = rng.normal(size=(n_rows, 4)).astype(np.float32)
    batch = Batch(x, x[:, :, None], np.full(n_rows, 1 / n_rows, np.float32))  # type: ignore[arg-type]
    weights = rng.normal(scale=0.4, size=(4, 4, 4)) * layout.edge_mask()[:, :, None]
    parameters = initialize(layout, (4, 4), seed=0)._replace(input_weights=weights.astype(np.float32))  # type: ignore[arg-type]
    total, (terms, _) = regularized_loss(parameters, batch, [ReleasedCastle(reg_beta, reg_lambda)], layout)
    squares = (weights**2).sum(axis=-1)
    h = sum(np.trace(np.linalg.matrix_power(squares, i)) / scipy.special.factorial(i) for i in range(1, 10))
    errors = (np.asarray(forward(parameters, batch.inputs))[..., 0] - x) ** 2
    expected = reg_lambda * errors[:, -1].mean() + errors.sum() + h + h**2 / 2 + reg_beta * np.sqrt(squares).sum()
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    np.testing.assert_allclose(terms["acyclicity"], h + h**2 / 2, rtol=1e-5)


def test_two_layers_of_width_32_from_input_layers_that_are_all_alike() -> None:
    X, y = load_diabetes(return_X_y=True)
    options = released_options()
    model = CastleRegressor(**options, learning_rate=1e-9, max_epochs=1, random_state=0).fit(X, y)
    networks = model.model_.networks
    assert networks.hidden_layer_sizes == (32, 32)
    weights = np.asarray(networks.parameters.input_weights[0])  # (channels, nodes, 32)
    mask = networks.layout.edge_mask()
    for channel, of_channel in enumerate(weights):
        alike = of_channel[mask[channel] > 0]
        np.testing.assert_allclose(alike, np.broadcast_to(alike[0], alike.shape), rtol=0, atol=1e-6)
    assert weights[mask > 0].std() == pytest.approx(0.01, rel=0.1)
    assert (weights[mask == 0] == 0).all()
    assert np.std(networks.parameters.output_weights) == pytest.approx(1.0, rel=0.1)


def test_patience_counts_only_after_fifty_epochs() -> None:
    X, y = load_diabetes(return_X_y=True)
    options = {**released_options(), "learning_rate": 0.01, "random_state": 0}
    options["recipe"] = replace(options["recipe"], patience=2)
    model = CastleRegressor(**options).fit(X, y)
    losses = model.history_.set_index("epoch")["validation_loss"]
    assert 50 < len(losses) < 200
    best = losses[losses.index > 50].idxmin()
    assert len(losses) == best + 2
    assert model.validation_loss_ == pytest.approx(losses[best])
    assert losses.min() < losses[best]  # an epoch of the warm-up was better, and is not kept
    at_once = CastleRegressor(**{**options, "recipe": replace(options["recipe"], warmup=0)}).fit(X, y)
    assert len(at_once.history_) < 50


def test_batches_are_drawn_independently() -> None:
    batches = released_options()["recipe"].batches
    stream = BatchStream(np.arange(64, dtype=np.int32), 32, np.random.SeedSequence(0), batches)
    epoch = np.empty((1, stream.steps, 32), np.int32)
    stream.fill_rows(epoch)
    assert epoch.shape == (1, 2, 32)
    assert all(len(np.unique(batch)) == 32 for batch in epoch[0])  # without replacement within a batch
    assert len(np.unique(epoch)) < 64  # some rows are in both


def test_a_saved_model_predicts_the_same_without_its_regularizer(tmp_path: Path) -> None:
    X, y = load_diabetes(return_X_y=True)
    model = NetworkRegressor([ReleasedCastle(5.0)], max_epochs=2, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="is not saved: ReleasedCastle objects can only be pickled"):
        save(model, tmp_path / "model.castle")
    with pytest.warns(UserWarning, match="does not contain the option regularizers"):
        loaded = load(tmp_path / "model.castle")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_subclass_of_castle_has_its_own_defaults() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = CastleRegressor(**released_options(reg_beta=0.7), max_epochs=2, random_state=0).fit(X, y)
    assert np.isfinite(model.history_["objective"]).all()


def test_released_start_is_alike_for_all_nodes() -> None:
    layout = Layout((*(Node() for _ in range(29)), Node(target=True)))
    released = released_start(layout, (32, 32), np.random.SeedSequence(0), tuple(range(30)))
    np.testing.assert_array_equal(released.input_weights[5, 0], released.input_weights[5, 1])
    assert np.std(released.output_weights) == pytest.approx(1.0, rel=0.1)
