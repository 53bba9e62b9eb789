"""The fitted model: immutable, and all that an estimator shows."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from castlereg import CastleClassifier, CastleClassifierCV, CastleRegressor, CastleRegressorCV, NetworkRegressor
from castlereg.search import FittedModel
from castlereg.search.model import _MOST_SAVED_ROWS
from castlereg.table.reading import read_columns

QUICK: dict[str, Any] = {"hidden_layer_sizes": (4,), "max_epochs": 3, "random_state": 0}


def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc")).assign(
        city=rng.choice(["Oslo", "Rome", "Lima"], 60)
    )
    X.loc[::7, "a"] = np.nan
    return X, X["b"].to_numpy() + 0.1 * rng.normal(size=60)


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    X, y = table()
    kinds = np.digitize(y, [-0.5, 0.5])
    both = pd.DataFrame({"kind": np.array(["s", "m", "l"])[kinds], "large": y > 0})
    return {
        "regression": NetworkRegressor(n_members=2, **QUICK).fit(X, y),
        "classification": CastleClassifier(**QUICK).fit(X, kinds),
        "several": CastleClassifier(**QUICK).fit(X, both),
        "folds": CastleRegressorCV((0.01, 0.1), search="paper", cv=3, **QUICK).fit(X, y),
        "class folds": CastleClassifierCV(cv=2, **QUICK).fit(X, kinds),
    }


NAMES = ["regression", "classification", "several", "folds", "class folds"]


@pytest.mark.parametrize("name", NAMES)
def test_it_cannot_be_changed(fitted: dict[str, Any], name: str) -> None:
    model = fitted[name].model_
    for part in (model, model.networks, model.preprocessing, *([] if model.folds is None else [model.folds])):
        for field in part.__dataclass_fields__:
            with pytest.raises(FrozenInstanceError):
                setattr(part, field, None)


@pytest.mark.parametrize("name", NAMES)
def test_predictions_are_the_estimators(fitted: dict[str, Any], name: str) -> None:
    X, _ = table()
    estimator = fitted[name]
    predicted = estimator.model_.predict(read_columns(X))
    assert len(predicted) == estimator.n_outputs_
    predict = estimator.predict_proba if hasattr(estimator, "predict_proba") else estimator.predict
    for one, other in zip(predicted, predict(X) if name == "several" else [predict(X)], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", NAMES)
def test_predictions_leave_it_as_it_was(fitted: dict[str, Any], name: str) -> None:
    X, _ = table()
    model: FittedModel = fitted[name].model_
    before = pickle.dumps(model.networks.parameters)
    first = model.predict(read_columns(X))
    with pytest.warns(UserWarning, match="not in the training data"):
        model.predict(read_columns(X.assign(city="Paris")))
    np.testing.assert_equal(model.predict(read_columns(X)), first)
    assert pickle.dumps(model.networks.parameters) == before


@pytest.mark.parametrize("name", NAMES)
def test_estimators_show_what_it_holds(fitted: dict[str, Any], name: str) -> None:
    estimator, model = fitted[name], fitted[name].model_
    history = estimator.history_
    pd.testing.assert_frame_equal(history, model.history)
    history["epoch"] = 0  # of a copy: what was learned stays as it is
    assert model.history["epoch"].min() == 1
    assert estimator.validation_loss_ == model.validation_loss
    assert getattr(estimator, "input_graph_", None) is model.input_graph
    assert list(estimator.schema_.index) == [column.name for column in model.preprocessing.schema]
    assert (model.input_graph is None) == (not model.networks.has_all_nodes)
    assert (model.folds is None) == (not name.endswith("folds"))


@pytest.mark.parametrize(("name", "n_folds"), [("folds", 3), ("class folds", 2)])
def test_the_record_of_folds_is_consistent(fitted: dict[str, Any], name: str, n_folds: int) -> None:
    X, y = table()
    truth = y if name == "folds" else np.digitize(y, [-0.5, 0.5])
    model: FittedModel = fitted[name].model_
    record = model.folds
    assert record is not None
    assert len(record.folds) == len(record.seeds) == len(record.fold_of) == len(record.errors) == n_folds
    assert model.networks.n_members == n_folds
    np.testing.assert_array_equal(np.sort(np.concatenate([held for _, held in record.folds])), np.arange(60))
    (by_fold,) = model.predict_by_fold(read_columns(X))
    np.testing.assert_allclose(by_fold.mean(axis=0), model.predict(read_columns(X))[0], rtol=1e-12)
    for fold, (train, held) in enumerate(record.folds):
        assert not set(train) & set(held)
        if name == "folds":
            expected = np.abs(by_fold[fold][held] - truth[held])
        else:
            expected = 1 - by_fold[fold][held, truth[held]]
        np.testing.assert_allclose(np.sort(record.errors[fold][0]), np.sort(expected), rtol=1e-9)
    if name == "folds":
        losses = -np.array([record.results[f"split{k}_test_score"][record.best] for k in range(n_folds)])
        assert model.validation_loss == pytest.approx(losses.mean(), rel=1e-6)


# --- errors about other rows ---------------------------------------------------------------------


def test_errors_of_other_rows_name_what_was_given(fitted: dict[str, Any]) -> None:
    X, y = table()
    kinds = np.digitize(y, [-0.5, 0.5])
    call = fitted["classification"].standardized
    for bad_X, bad_y, message in (
        (X.assign(b=np.inf), kinds, "^X contains infinity: inf in row 0 of column 'b'"),
        (X.assign(b="much"), kinds, "^X has text in column 'b'"),
        (X, kinds + 5, r"^y has class \d, which is not in the training data; known classes are \[0, 1, 2\]"),
        (X, np.c_[kinds, kinds], "^y has 2 targets, but the model has 1"),
        (X, np.where(kinds == 0, np.nan, kinds), "^y has .* missing values"),
    ):
        with pytest.raises(ValueError, match=message):
            call(bad_X, bad_y)
    with pytest.warns(UserWarning, match="^X has levels that are not in the training data"):
        call(X.assign(city="Paris"), kinds)


@pytest.mark.parametrize("name", ["graph_", "input_graph_", "history_", "schema_", "validation_loss_", "n_outputs_"])
def test_before_fit_there_is_nothing(name: str) -> None:
    model = CastleRegressor()
    assert not hasattr(model, name)
    with pytest.raises(NotFittedError, match="this CastleRegressor is not fitted yet: call fit"):
        getattr(model, name)


def test_pickles_have_few_rows_and_the_same_graph() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(_MOST_SAVED_ROWS + 300, 2)), columns=list("ab"))
    model = NetworkRegressor(**QUICK | {"max_epochs": 1}).fit(X, X["a"] + rng.normal(size=len(X))).model_
    assert model.rows is not None and len(model.rows) == len(X)
    sent = pickle.loads(pickle.dumps(model))
    assert sent.rows is not None and len(sent.rows) == _MOST_SAVED_ROWS and "graph" not in vars(sent)
    np.testing.assert_array_equal(sent.graph.confidence_array, model.graph.confidence_array)  # type: ignore[union-attr]
    without = model.for_file(rows=False)
    assert without.rows is None and without.graph is model.graph
    assert replace(without, known_graph=None).graph is None
