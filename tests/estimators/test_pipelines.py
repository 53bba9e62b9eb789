"""Together with the rest of scikit-learn: pipelines, searches, output containers, routing of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import VotingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_validate
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from castlereg import CastleClassifier, CastleRegressor, NetworkClassifier, NetworkRegressor, Recipe
from tests.estimators.test_real_tables import mixed_frame, with_gaps

OPTIONS: dict[str, Any] = {"max_epochs": 4, "random_state": 0}


def preparation(output: str) -> ColumnTransformer:
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    steps = [
        ("numbers", numbers, make_column_selector(dtype_include="number")),
        ("rest", "passthrough", ["city", "garden"]),
        ("built", FunctionTransformer(lambda column: column, feature_names_out="one-to-one"), ["built"]),
    ]
    return ColumnTransformer(steps, verbose_feature_names_out=False).set_output(transform=output)


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_a_pipeline_with_a_column_transformer_keeps_columns_whole(output: str) -> None:
    frame, rent = mixed_frame()
    model = Pipeline([("prepare", preparation("pandas")), ("castle", CastleRegressor(**OPTIONS))])
    if output == "polars":
        model.set_params(prepare__rest="drop", prepare__built="drop")
        model.set_output(transform="polars")
    model.fit(frame, rent)
    assert model.predict(frame).shape == (120,)
    names = ["area", "rooms"] if output == "polars" else ["area", "rooms", "city", "garden", "built"]
    assert list(model[-1].feature_names_in_) == names
    assert model[-1].graph_.nodes == [*names, "rent"]


def test_grid_search_over_a_pipeline_with_text_and_missing_values() -> None:
    frame, rent = mixed_frame()
    pipeline = make_pipeline(FunctionTransformer(), NetworkRegressor(**OPTIONS))
    recipes = [Recipe(), Recipe(scaling="robust")]
    grid = {"networkregressor__recipe": recipes, "networkregressor__learning_rate": [1e-9, 0.01]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(with_gaps(frame), rent)
    assert search.best_params_["networkregressor__learning_rate"] == 0.01
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(frame).shape == (120,)


def test_cross_validation_scores_and_predictions() -> None:
    frame, rent = mixed_frame()
    model = CastleRegressor(**{**OPTIONS, "max_epochs": 30, "learning_rate": 0.01})
    scores = cross_validate(model, frame, rent, cv=3, scoring=["r2", "neg_mean_squared_error"], error_score="raise")
    assert (scores["test_r2"] > 0.5).all()
    kind = (rent > 0).map({True: "dear", False: "cheap"})
    probabilities = cross_val_predict(NetworkClassifier(**OPTIONS), frame, kind, cv=2, method="predict_proba")
    assert probabilities.shape == (120, 2)


def test_other_meta_estimators() -> None:
    frame, rent = mixed_frame()
    logged = TransformedTargetRegressor(
        NetworkRegressor(**OPTIONS), func=np.exp, inverse_func=np.log, check_inverse=False
    )
    assert logged.fit(frame[["area", "rooms"]], rent).predict(frame[["area", "rooms"]]).shape == (120,)
    voting = VotingRegressor([("network", NetworkRegressor(**OPTIONS)), ("linear", LinearRegression())])
    assert voting.fit(frame[["area", "rooms"]], rent).predict(frame[["area", "rooms"]]).shape == (120,)
    several = MultiOutputRegressor(NetworkRegressor(**OPTIONS)).fit(frame, np.c_[rent, -rent])
    assert several.predict(frame).shape == (120, 2)


def test_weights_are_routed() -> None:
    """Through a pipeline, a search and its scorer."""
    frame, rent = mixed_frame()
    weight = np.random.default_rng(0).integers(1, 3, 120).astype(float)
    groups = np.arange(120) % 4
    with sklearn.config_context(enable_metadata_routing=True):
        network = NetworkRegressor(**OPTIONS).set_fit_request(sample_weight=True, groups=False)
        network.set_score_request(sample_weight=True)
        pipeline = make_pipeline(FunctionTransformer(), network)
        search = GridSearchCV(pipeline, {"networkregressor__learning_rate": [1e-3, 1e-2]}, cv=GroupKFold(2))
        search.fit(frame, rent, sample_weight=weight, groups=groups)
        scores = cross_validate(
            pipeline, frame, rent, cv=GroupKFold(2), params={"sample_weight": weight, "groups": groups}
        )
    direct = clone_with(search.best_estimator_[-1]).fit(frame, rent, sample_weight=weight)
    np.testing.assert_array_equal(search.predict(frame), direct.predict(frame))
    assert len(scores["test_score"]) == 2
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(Exception, match="sample_weight"):
        cross_validate(NetworkRegressor(**OPTIONS), frame, rent, cv=2, params={"sample_weight": weight})


def clone_with(model: Any) -> Any:
    return type(model)(**model.get_params())


# --- class weights -------------------------------------------------------------------------------


def unbalanced(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.1).astype(int)
    return rng.normal(size=(n, 2)) + y[:, None], y


def test_class_weights_are_row_weights() -> None:
    X, y = unbalanced()
    by_class = NetworkClassifier(class_weight={0: 1, 1: 2.5}, **OPTIONS).fit(X, y)
    by_row = NetworkClassifier(**OPTIONS).fit(X, y, sample_weight=np.where(y, 2.5, 1.0))
    np.testing.assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X), rtol=1e-5)


def test_balanced_is_what_scikit_learn_means() -> None:
    from sklearn.utils.class_weight import compute_class_weight

    X, y = unbalanced()
    factors = compute_class_weight("balanced", classes=np.array([0, 1]), y=y)
    balanced = NetworkClassifier(class_weight="balanced", **OPTIONS).fit(X, y)
    by_hand = NetworkClassifier(class_weight=dict(enumerate(factors)), **OPTIONS).fit(X, y)
    np.testing.assert_array_equal(balanced.predict_proba(X), by_hand.predict_proba(X))
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    factors = compute_class_weight("balanced", classes=np.array([0, 1]), y=np.repeat(y, weight))
    weighted = NetworkClassifier(class_weight="balanced", **OPTIONS).fit(X, y, weight)
    by_hand = NetworkClassifier(**OPTIONS).fit(X, y, weight * factors[y])
    np.testing.assert_allclose(weighted.predict_proba(X), by_hand.predict_proba(X), rtol=1e-5)


def test_balanced_classes_are_found_more_often() -> None:
    X, y = unbalanced(1000)
    plain, balanced = (
        CastleClassifier(class_weight=weight, learning_rate=0.01, random_state=0).fit(X, y)
        for weight in (None, "balanced")
    )
    recall = [float((model.predict(X)[y == 1] == 1).mean()) for model in (plain, balanced)]
    assert recall[0] < 0.6 < recall[1]


def test_class_weights_of_several_targets_are_multiplied() -> None:
    X, y = unbalanced()
    other = (X[:, 0] > 0).astype(int)
    both = NetworkClassifier(class_weight=[{1: 2.5}, {0: 0.5}], **OPTIONS).fit(X, np.c_[y, other])
    by_row = NetworkClassifier(**OPTIONS).fit(
        X, np.c_[y, other], sample_weight=np.where(y, 2.5, 1.0) * np.where(other, 1.0, 0.5)
    )
    for one, two in zip(both.predict_proba(X), by_row.predict_proba(X), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5)


def test_a_class_without_weight_is_known_but_not_learned() -> None:
    X, y = unbalanced()
    model = NetworkClassifier(class_weight={1: 0}, **OPTIONS).fit(X, y)
    assert list(model.classes_) == [0, 1]
    assert model.predict_proba(X)[:, 1].max() < 0.5


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ({7: 2.0}, "class_weight has class 7, which y does not have"),
        ({0: -1}, r"class_weight\[0\]=-1 must be at least 0"),
        ("balance", "class_weight='balance' must be None, 'balanced' or a dict"),
        (["balanced", "balanced"], "class_weight has 2 entries for 1 targets"),
    ],
)
def test_bad_class_weights_raise(weight: Any, message: str) -> None:
    X, y = unbalanced()
    with pytest.raises(ValueError, match=message):
        NetworkClassifier(class_weight=weight, **OPTIONS).fit(X, pd.Series(y, name="y"))
