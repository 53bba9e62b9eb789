"""partial_fit: every sentence of its docstring."""

from __future__ import annotations

import pickle
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import castlereg
from castlereg import (
    CastleClassifier,
    CastleRegressor,
    CausalGraph,
    EdgeConstraints,
    NetworkClassifier,
    NetworkRegressor,
    Recipe,
)
from castlereg.losses import Quantiles
from castlereg.regularizers import L2, Autoencoder, BatchNorm, Dropout
from castlereg.report import write_report

QUICK: dict[str, Any] = {"hidden_layer_sizes": (4,), "learning_rate": 0.01, "random_state": 0}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"area": rng.normal(80, 20, 90), "city": rng.choice(["Oslo", "Rome", "Lima"], 90)})
    frame["age"] = np.where(rng.random(90) < 0.1, np.nan, rng.normal(30, 9, 90))
    frame["rent"] = 10 * frame["area"] + 400 * (frame["city"] == "Oslo") + rng.normal(0, 50, 90)
    return frame


def X_y(frame: pd.DataFrame, rows: Any = slice(None)) -> tuple[pd.DataFrame, pd.Series]:
    part = frame.iloc[rows]
    return part[["area", "city", "age"]], part["rent"]


def weights(model: Any) -> Any:
    return model.model_.networks.parameters.input_weights


def assert_same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(weights(one), weights(other))
    pd.testing.assert_frame_equal(one.history_, other.history_)


# --- the first call, and the next ones -----------------------------------------------------------


def test_the_first_call_reads_columns_scales_and_starting_weights_as_fit_does(frame: pd.DataFrame) -> None:
    """A fit on the same rows, of which validation rows given apart take none away, begins with the same networks."""
    X, y = X_y(frame)
    still = {**QUICK, "learning_rate": 1e-30, "n_members": 2}
    first = CastleRegressor(**still).partial_fit(X, y)
    fitted = CastleRegressor(max_epochs=1, **still).fit(X, y, X_val=X[:1], y_val=y[:1])
    assert first.model_.preprocessing.schema == fitted.model_.preprocessing.schema
    assert list(first.feature_names_in_) == ["area", "city", "age"]
    np.testing.assert_allclose(weights(first), weights(fitted), atol=1e-28)
    for one, other in zip(first.model_.networks.standardization, fitted.model_.networks.standardization, strict=True):
        np.testing.assert_array_equal(one, other)


def test_columns_levels_and_scales_stay(frame: pd.DataFrame) -> None:
    model = NetworkRegressor(**QUICK).partial_fit(*X_y(frame, slice(0, 50)))
    before = model.model_
    X, y = X_y(frame, slice(50, None))
    model.partial_fit(X.assign(area=1e4 * X["area"]), 1e6 + y)
    assert model.model_.preprocessing is before.preprocessing
    assert model.model_.networks.standardization is before.networks.standardization
    assert not np.array_equal(weights(model), before.networks.parameters.input_weights)


@pytest.mark.parametrize(
    "model",
    [
        CastleRegressor(n_members=2, **QUICK),
        CastleRegressor(castle=castlereg.Castle(features_per_step=1), **QUICK),
        NetworkRegressor([BatchNorm(), Dropout(0.2), Autoencoder()], **QUICK),
        NetworkRegressor(
            [L2(0.1)], recipe=Recipe(schedule="cosine", averaging=0.5, embedding=2), max_epochs=4, **QUICK
        ),
    ],
    ids=["CASTLE", "sampled", "states", "recipe"],
)
def test_epochs_of_one_call_are_those_of_several_bit_for_bit(frame: pd.DataFrame, model: Any) -> None:
    X, y = X_y(frame)
    at_once = clone(model).partial_fit(X, y, epochs=3)
    in_turn = clone(model).partial_fit(X, y).partial_fit(X, y, epochs=1).partial_fit(X, y)
    assert_same(at_once, in_turn)
    np.testing.assert_array_equal(at_once.predict(X), in_turn.predict(X))
    assert list(at_once.history_.query("member == 0")["epoch"]) == [1, 2, 3]
    assert at_once.history_["validation_loss"].isna().all() and at_once.history_["objective"].notna().all()


def test_every_row_is_trained_on_and_nothing_else() -> None:
    """One step of plain gradients by hand: Adam's first moment is a tenth of the gradient over all rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = X @ [1.0, -2.0] + 0.1 * rng.normal(size=20)
    model = NetworkRegressor(hidden_layer_sizes=(), learning_rate=1e-30, random_state=0).partial_fit(X, y)
    ongoing = model.model_.ongoing
    assert ongoing is not None
    parameters, batch = model.standardized(X, y)
    inputs, truth = np.asarray(batch.inputs)[:, :2], np.asarray(batch.truth)[:, -1, 0]
    errors = inputs @ np.asarray(parameters.input_weights)[:2, 0, 0] + parameters.input_bias[0, 0] - truth
    gradient = 2 * inputs.T @ errors / 20
    moment = ongoing.states.moving.moments.mu.network.input_weights[0, :2, 0, 0]
    np.testing.assert_allclose(moment, 0.1 * gradient, rtol=1e-4)


def test_moments_and_the_number_of_epochs_go_on(frame: pd.DataFrame) -> None:
    X, y = X_y(frame)
    model = NetworkRegressor(**QUICK).partial_fit(X, y).partial_fit(X[:40], y[:40])
    ongoing = model.model_.ongoing
    assert ongoing is not None
    assert ongoing.states.moving.moments.count[0] == 3 + 2  # batches of at most 32 rows
    assert list(ongoing.states.epoch) == [2]


def test_the_order_of_rows_does_not_matter_and_whole_weights_are_copies(frame: pd.DataFrame) -> None:
    X, y = X_y(frame)
    weight = np.random.default_rng(0).integers(0, 3, 90)
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(90), weight))
    weighted, repeated = NetworkRegressor(**QUICK), NetworkRegressor(**QUICK)
    for _ in range(2):
        weighted.partial_fit(X, y, weight)
        repeated.partial_fit(X.iloc[copies], y.iloc[copies])
    assert_same(weighted, repeated)
    with pytest.raises(ValueError, match="at least one non-zero number"):
        weighted.partial_fit(X, y, np.zeros(90))


def test_other_weights_are_relative_to_their_mean(frame: pd.DataFrame) -> None:
    X, y = X_y(frame)
    weight = np.random.default_rng(0).random(90)
    one, ten = (NetworkRegressor(**QUICK).partial_fit(X, y, w).partial_fit(X, y, w) for w in (weight, 10 * weight))
    np.testing.assert_allclose(weights(one), weights(ten), rtol=1e-4, atol=1e-6)
    plain = NetworkRegressor(**QUICK).partial_fit(X, y).partial_fit(X, y)
    assert not np.allclose(weights(one), weights(plain), rtol=1e-3)


# --- what a model has ----------------------------------------------------------------------------


def test_the_last_weights_predict(frame: pd.DataFrame) -> None:
    X, y = X_y(frame)
    model = NetworkRegressor(**QUICK).partial_fit(X, y, epochs=2)
    state = model.model_.ongoing.states  # type: ignore[union-attr]
    np.testing.assert_array_equal(weights(model), state.moving.weights.network.input_weights)
    for name in ("validation_loss_", "feature_importances_"):
        with pytest.raises(AttributeError, match="partial_fit"):
            getattr(model, name)
    assert castlereg.evaluate(model, X, y).n_rows == 90


def test_the_graph_is_read_anew_with_the_rows_of_the_call(frame: pd.DataFrame) -> None:
    model = CastleRegressor(constraints=EdgeConstraints(forbidden=[("city", "rent")]), **QUICK)
    graphs = [model.partial_fit(*X_y(frame, slice(40 * k, 40 * k + 40))).graph_ for k in range(2)]
    assert not np.array_equal(graphs[0].learned_array, graphs[1].learned_array)
    norms = model.model_.networks.edge_weights().mean(axis=0)
    np.testing.assert_allclose(graphs[1].learned_array, norms)
    assert graphs[1].is_dag and norms[1, 3] == 0
    assert graphs[1].names == ("area", "city", "age", "rent")


def test_learning_gets_somewhere(frame: pd.DataFrame) -> None:
    model = NetworkRegressor(**QUICK | {"learning_rate": 0.05})
    for start in (0, 30):
        model.partial_fit(*X_y(frame, slice(start, start + 30)), epochs=40)
    assert model.score(*X_y(frame, slice(60, None))) > 0.8


# --- after a fit, from a file, copies ------------------------------------------------------------


def test_after_fit_training_goes_on_from_the_fitted_weights(frame: pd.DataFrame) -> None:
    X, y = X_y(frame)
    model = CastleRegressor(n_members=2, max_epochs=3, **QUICK).fit(X, y)
    fitted, history = weights(model), model.history_
    still = deepcopy(model).set_params(learning_rate=1e-30).partial_fit(X, y)
    np.testing.assert_allclose(weights(still), fitted, rtol=1e-6)
    model.partial_fit(X, y)
    assert len(model.history_) == len(history) + 2
    assert list(model.history_.query("member == 1")["epoch"]) == [1, 2, 3, 4]
    step = np.abs(weights(model) - fitted)
    assert 0 < step.max() < 3 * 0.01 * 1.01, "three steps with fresh moments, each of at most the rate"
    assert model.model_.rows is None


def test_regularizers_begin_their_state_anew_after_fit(frame: pd.DataFrame) -> None:
    X, y = X_y(frame)
    model = NetworkRegressor([BatchNorm(), Autoencoder()], max_epochs=2, **QUICK).fit(X, y).partial_fit(X, y)
    state = model.model_.ongoing.states  # type: ignore[union-attr]
    (running,) = (part for part in state.moving.running if part)
    assert running.seen[0][0] == 3  # batches of at most 32 rows
    assert np.isfinite(model.predict(X)).all()


def test_edges_that_fit_left_out_stay_out(frame: pd.DataFrame) -> None:
    X, y = X_y(frame)
    names = ["area", "city", "age", "rent"]
    edges = [("area", "rent"), ("city", "rent"), ("area", "age")]
    graph = CausalGraph.from_edges(pd.DataFrame(edges, columns=["cause", "effect"]), "rent", names)
    model = CastleRegressor(max_epochs=1, **QUICK).fit(X, y, graph=graph)
    for _ in range(2):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.model_.networks.edge_weights()[0] > 0, graph.weight_array > 0)


def test_files_hold_the_weights_and_copies_everything(frame: pd.DataFrame, tmp_path: Path) -> None:
    X, y = X_y(frame)
    model = CastleRegressor(**QUICK).partial_fit(X, y, epochs=2)
    castlereg.save(model, tmp_path / "model.castle")
    loaded = castlereg.load(tmp_path / "model.castle")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.model_.ongoing is None and np.isnan(loaded.model_.validation_loss)
    pickled, copied = pickle.loads(pickle.dumps(model)), deepcopy(model)
    for other in (model, pickled, copied, loaded):
        other.partial_fit(X, y)
    assert_same(model, pickled)
    assert_same(model, copied)
    assert list(loaded.history_["epoch"]) == [1, 2, 3]
    assert not np.array_equal(weights(loaded), weights(model)), "its moments were fresh"
    np.testing.assert_allclose(weights(loaded), weights(model), atol=0.1)


def test_fit_starts_anew(frame: pd.DataFrame) -> None:
    X, y = X_y(frame)
    plain, again = NetworkRegressor(max_epochs=2, **QUICK), NetworkRegressor(max_epochs=2, **QUICK).partial_fit(X, y)
    assert_same(plain.fit(X, y), again.fit(X, y))


def test_a_report_of_a_model_without_validation_loss(frame: pd.DataFrame, tmp_path: Path) -> None:
    X, y = X_y(frame)
    model = CastleRegressor(max_epochs=2, **QUICK).fit(X, y).partial_fit(X, y)
    write_report(model, X, y, tmp_path / "page.html", evaluate=False, what_if=False)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "trained for 3 epochs. The weights come from the last epoch (3)" in page
    assert "Validation loss" not in page


# --- classes -------------------------------------------------------------------------------------


def test_classes_that_come_later_are_named_in_the_first_call(frame: pd.DataFrame) -> None:
    X, _ = X_y(frame)
    y = np.repeat(["low", "high", "mid"], 30)
    fast = {**QUICK, "learning_rate": 0.05}
    model = CastleClassifier(**fast).partial_fit(X[:60], y[:60], classes=["low", "mid", "high"])
    assert list(model.classes_) == ["high", "low", "mid"]
    assert (model.predict_proba(X)[:, 2] > 0).all()
    model.partial_fit(X[60:], y[60:], epochs=20)
    assert set(model.predict(X[60:])) == {"mid"}
    model.partial_fit(X[:1], y[:1], classes=["high", "low", "mid"])
    with pytest.raises(ValueError, match=r"classes=\['high', 'low'\] are not those of the model"):
        model.partial_fit(X[:1], y[:1], classes=["high", "low"])
    with pytest.raises(ValueError, match="y has class 'huge', which is not in the training data"):
        model.partial_fit(X[:1], ["huge"])


def test_classes_of_several_targets(frame: pd.DataFrame) -> None:
    X, _ = X_y(frame)
    y = np.column_stack([np.arange(90) % 3, np.arange(90) % 2])
    model = NetworkClassifier(**QUICK).partial_fit(X, y, classes=[[0, 1, 2, 3], [0, 1]])
    assert [shares.shape[1] for shares in model.predict_proba(X)] == [4, 2]
    with pytest.raises(ValueError, match="classes has 1 lists for 2 targets"):
        NetworkClassifier(**QUICK).partial_fit(X, y, classes=[[0, 1, 2]])


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["a"], r"classes=\['a'\] has only one class"),
        (["a", "c"], r"y has class 'b', which is not in classes=\['a', 'c'\]"),
    ],
)
def test_bad_classes_raise(frame: pd.DataFrame, classes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NetworkClassifier(**QUICK).partial_fit(frame[["area"]], np.repeat(["a", "b"], 45), classes=classes)


# --- what does not go together -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (CastleRegressor(objective="graph"), "objective='graph' discovers its graph from all rows, but"),
        (NetworkRegressor(bootstrap=True), "bootstrap=True draws from all rows, but"),
        (CastleRegressor(recipe=Recipe(refit=True)), r"Recipe\(refit=True\) selects columns from all rows, but"),
        (NetworkClassifier(class_weight="balanced"), "class_weight='balanced' counts from all rows, but"),
    ],
)
def test_what_needs_all_rows_raises(frame: pd.DataFrame, model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.partial_fit(*X_y(frame))


def test_losses_and_directions_stay(frame: pd.DataFrame) -> None:
    X, y = frame[["area", "age"]].fillna(30), frame["rent"]
    quantiles, falls = Quantiles((0.1, 0.9)), {"area": -1}
    model = NetworkRegressor(loss=quantiles, monotone=falls, **QUICK).partial_fit(X, y, epochs=9)
    again = NetworkRegressor(loss=quantiles, monotone=falls, max_epochs=2, **QUICK).fit(X, y).partial_fit(X, y)
    for fitted in (model, again):
        low, high = fitted.predict_quantiles(X).T
        assert (low <= high).all()
        rising = fitted.predict(X.assign(area=np.linspace(0, 200, 90), age=30))
        assert (np.diff(rising) <= 0).all(), "the rent rises with the area, but may not"
    for change in ({"loss": "squared"}, {"monotone": None}):
        with pytest.raises(ValueError, match="loss or monotone has changed since the first call: reset it"):
            deepcopy(model).set_params(**change).partial_fit(X, y)


@pytest.mark.parametrize("change", [{"hidden_layer_sizes": (5,)}, {"n_members": 2}, {"regularizers": [Autoencoder()]}])
def test_what_shapes_the_networks_may_not_change(frame: pd.DataFrame, change: Any) -> None:
    X, y = X_y(frame)
    for model in (NetworkRegressor(**QUICK).partial_fit(X, y), NetworkRegressor(max_epochs=1, **QUICK).fit(X, y)):
        before = weights(model)
        model.set_params(**change)
        if "regularizers" in change and model.model_.ongoing is None:
            continue  # a new head may be trained with fitted weights
        with pytest.raises(ValueError, match="have changed and do not match the fitted networks"):
            model.partial_fit(X, y)
        assert weights(model) is before


def test_new_levels_and_columns(frame: pd.DataFrame) -> None:
    X, y = X_y(frame)
    model = NetworkRegressor(**QUICK).partial_fit(X, y)
    with pytest.warns(UserWarning, match="levels that are not in the training data: 'Bern' in column 'city'"):
        model.partial_fit(X[:9].assign(city="Bern"), y[:9])
    with pytest.warns(UserWarning, match="missing values in columns that had none in training: 9 in 'area'"):
        model.partial_fit(X[:9].assign(area=np.nan), y[:9])
    assert np.isfinite(weights(model)).all()
    before = vars(model).copy()
    for other in (X.rename(columns={"age": "years"}), X[["area", "city"]]):
        with pytest.raises(ValueError, match="feature names should match"):
            model.partial_fit(other, y)
    with pytest.raises(ValueError, match="epochs=0 must be a whole number of at least 1"):
        model.partial_fit(X, y, epochs=0)
    assert vars(model) == before


@pytest.mark.filterwarnings("ignore:network 0. the loss was not finite")
def test_epochs_that_are_not_finite_are_undone(frame: pd.DataFrame) -> None:
    X, y = X_y(frame)
    model = NetworkRegressor(**QUICK).partial_fit(X, y)
    before = weights(model)
    model.set_params(learning_rate=1e30).partial_fit(X, y)
    np.testing.assert_array_equal(weights(model), before)
    with pytest.raises(FloatingPointError, match="not finite in more than 5 epochs; lower learning_rate"):
        model.set_params(learning_rate=3e38).partial_fit(X, y, epochs=9)
