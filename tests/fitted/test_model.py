"""The fitted model: immutable, and all that an estimator shows."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from castlereg import (
    CastleClassifier,
    CastleMultiOutput,
    CastleRegressorCV,
    NetworkClassifierCV,
    NetworkRegressor,
)
from castlereg.fitted import FittedModel
from castlereg.regularizers import L2
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
    both = pd.DataFrame({"size": y, "kind": np.array(["s", "m", "l"])[kinds]})
    return {
        "regression": NetworkRegressor(n_members=2, **QUICK).fit(X, y),
        "classification": CastleClassifier(**QUICK).fit(X, kinds),
        "several": CastleMultiOutput(**QUICK).fit(X, both),
        "folds": CastleRegressorCV((0.01, 0.1), cv=3, **QUICK).fit(X, y),
        "class folds": NetworkClassifierCV([[L2(0.1)]], cv=2, **QUICK).fit(X, kinds),
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
    if name == "several":
        np.testing.assert_array_equal(predicted[0], estimator.predict(X)["size"])
        np.testing.assert_array_equal(predicted[1], estimator.predict_proba(X)["kind"])
        return
    predict = estimator.predict_proba if hasattr(estimator, "predict_proba") else estimator.predict
    np.testing.assert_array_equal(predicted[0], predict(X))


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
    assert getattr(estimator, "graph_", None) is model.graph
    assert list(estimator.schema_.index) == [column.name for column in model.preprocessing.schema]
    assert (model.graph is None) == (not model.networks.has_all_nodes)
    assert (model.folds is None) == (not name.endswith("folds"))


@pytest.mark.parametrize(("name", "n_folds"), [("folds", 3), ("class folds", 2)])
def test_the_book_of_folds_is_consistent(fitted: dict[str, Any], name: str, n_folds: int) -> None:
    X, y = table()
    truth = y if name == "folds" else np.digitize(y, [-0.5, 0.5])
    model: FittedModel = fitted[name].model_
    book = model.folds
    assert book is not None
    assert len(book.folds) == len(book.seeds) == len(book.fold_of) == len(book.errors) == n_folds
    assert model.networks.n_members == n_folds
    np.testing.assert_array_equal(np.sort(np.concatenate([held for _, held in book.folds])), np.arange(60))
    (by_fold,) = model.predict_by_fold(read_columns(X))
    np.testing.assert_allclose(by_fold.mean(axis=0), model.predict(read_columns(X))[0], rtol=1e-12)
    for fold, (train, held) in enumerate(book.folds):
        assert not set(train) & set(held)
        if name == "folds":
            expected = np.abs(by_fold[fold][held] - truth[held])
        else:
            expected = 1 - by_fold[fold][held, truth[held]]
        np.testing.assert_allclose(np.sort(book.errors[fold][0]), np.sort(expected), rtol=1e-9)
    losses = -np.array([book.results[f"split{k}_test_score"][book.best] for k in range(n_folds)])
    assert model.validation_loss == pytest.approx(losses.mean(), rel=1e-6)


# --- errors about other rows ---------------------------------------------------------------------


@pytest.mark.parametrize("method", ["log_likelihood", "standardized"])
def test_errors_of_other_rows_name_what_was_given(fitted: dict[str, Any], method: str) -> None:
    X, y = table()
    kinds = np.digitize(y, [-0.5, 0.5])
    model = fitted["classification"]
    call = getattr(model, method)
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


def test_targets_of_other_rows_are_of_the_kinds_that_were_learned(fitted: dict[str, Any]) -> None:
    """Of few rows the values alone would say otherwise: a number may look like a class, and a class like a number."""
    X, y = table()
    several = fitted["several"]
    whole = pd.DataFrame({"size": [1, 2, 1, 2], "kind": ["s", "m", "m", "l"]})
    assert np.isfinite(several.log_likelihood(X[:4], whole))
    assert np.isfinite(several.score(X[:4], whole))
    with pytest.raises(ValueError, match="size has 's' in row 0, which is not a number"):
        several.score(X[:4], whole.assign(size=["s", "m", "m", "l"]))
    with pytest.raises(ValueError, match="y has 1 targets, but the model has 2"):
        several.score(X[:4], whole["size"])
    one = CastleMultiOutput(**QUICK).fit(X, np.digitize(y, [-0.5, 0.5]), X_val=X[:3], y_val=[0, 1, 2])
    assert one.model_.target_kinds == ["classes"]


@pytest.mark.parametrize("name", ["graph_", "history_", "schema_", "validation_loss_", "n_outputs_"])
def test_before_fit_there_is_nothing(name: str) -> None:
    model = CastleMultiOutput()
    assert not hasattr(model, name)
    with pytest.raises(NotFittedError, match="this CastleMultiOutput is not fitted yet: call fit"):
        getattr(model, name)
