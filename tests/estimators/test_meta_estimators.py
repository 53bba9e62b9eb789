"""Inside scikit-learn's searches, stacks and calibration: the result is that of the same fits by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import StackingClassifier, StackingRegressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  # lets HalvingGridSearchCV be imported
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer, mean_absolute_error
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from castlereg import CastleClassifier, CastleRegressor, CastleRegressorCV
from tests.estimators.test_real_tables import mixed_frame

QUICK: dict[str, Any] = {"hidden_layer_sizes": (8,), "learning_rate": 0.01, "max_epochs": 4, "random_state": 0}
ROWS = 126  # so many that all folds below, and folds of folds, share one compiled program
THIRDS = KFold(3, shuffle=True, random_state=0)
OF_CLASSES = StratifiedKFold(3, shuffle=True, random_state=0)


def regressor(**options: Any) -> CastleRegressor:
    return CastleRegressor(**{**QUICK, **options})


def classifier(**options: Any) -> CastleClassifier:
    return CastleClassifier(**{**QUICK, **options})


@pytest.fixture(scope="module")
def flats() -> tuple[pd.DataFrame, pd.Series]:
    """Numbers and text, with missing values in every fold."""
    frame, rent = mixed_frame(ROWS)
    frame = frame[["area", "rooms", "city"]]
    frame.loc[::4, "area"] = np.nan
    frame.loc[::5, "city"] = None
    return frame, rent


@pytest.fixture(scope="module")
def kinds(flats: Any) -> tuple[pd.DataFrame, pd.Series]:
    """The same rows in three classes."""
    return flats[0], pd.cut(flats[1], [-np.inf, -1, 1, np.inf], labels=["cheap", "fair", "dear"]).astype(str)


@pytest.fixture(scope="module")
def weight() -> np.ndarray:
    return np.random.default_rng(0).uniform(0.5, 3, ROWS)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# --- searches ------------------------------------------------------------------------------------


def test_halving_gives_the_last_candidates_all_epochs(flats: Any) -> None:
    """Epochs are the resource; the scores of the last round are those of plain cross-validation."""
    resources = {"resource": "max_epochs", "min_resources": 2, "max_resources": 4, "factor": 2}
    search = HalvingGridSearchCV(
        regressor(), {"reg_beta": [0.01, 0.1, 1.0, 10.0]}, cv=THIRDS, **resources, random_state=0, error_score="raise"
    ).fit(*flats)
    assert search.n_resources_ == [2, 4]
    assert search.n_candidates_ == [4, 2]
    results = pd.DataFrame(search.cv_results_)
    for row in results[results["iter"] == 1].itertuples():
        scores = cross_val_score(regressor(**row.params), *flats, cv=THIRDS)
        np.testing.assert_allclose(row.mean_test_score, scores.mean(), rtol=1e-12)
    by_hand = regressor(**search.best_params_).fit(*flats)
    np.testing.assert_array_equal(search.predict(flats[0]), by_hand.predict(flats[0]))


def test_a_search_over_a_pipeline_with_a_column_transformer(flats: Any) -> None:
    encode = ColumnTransformer(
        [
            ("levels", OneHotEncoder(sparse_output=False), ["city"]),
            ("numbers", SimpleImputer(), make_column_selector(dtype_include="number")),
        ],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    pipeline = Pipeline([("encode", encode), ("castle", regressor())])
    grid = [{"castle__reg_beta": [0.01]}, {"castle__reg_beta": [1.0], "encode__numbers__strategy": ["median"]}]
    search = GridSearchCV(pipeline, grid, cv=THIRDS, error_score="raise").fit(*flats)
    assert "city_Oslo" in search.best_estimator_[-1].graph_.nodes
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        assert score == cross_val_score(clone(pipeline).set_params(**params), *flats, cv=THIRDS).mean()


def test_cross_validate_returns_the_models_of_the_folds(flats: Any) -> None:
    frame, rent = flats
    scored = cross_validate(
        regressor(), frame, rent, cv=THIRDS, return_estimator=True, return_indices=True, error_score="raise"
    )
    for model, train, test, score in zip(
        scored["estimator"], scored["indices"]["train"], scored["indices"]["test"], scored["test_score"], strict=True
    ):
        by_hand = regressor().fit(frame.iloc[train], rent.iloc[train])
        np.testing.assert_array_equal(model.predict(frame), by_hand.predict(frame))
        assert score == by_hand.score(frame.iloc[test], rent.iloc[test])


# --- around one model or several -----------------------------------------------------------------


def test_a_transformed_target_is_fitted_on_the_transformed_values(flats: Any, weight: np.ndarray) -> None:
    frame, rent = flats
    price = np.exp(rent / 4)
    model = TransformedTargetRegressor(regressor(), func=np.log, inverse_func=np.exp)
    model.fit(frame, price, sample_weight=weight)
    by_hand = regressor().fit(frame, np.log(price.to_numpy()), sample_weight=weight)
    np.testing.assert_allclose(model.predict(frame), np.exp(by_hand.predict(frame)), rtol=1e-12)


def test_a_stack_learns_from_predictions_of_left_out_rows(flats: Any) -> None:
    frame, rent = flats
    base = [("weak", regressor(reg_beta=0.01)), ("strong", regressor(reg_beta=1.0))]
    stack = StackingRegressor(base, LinearRegression(), cv=THIRDS).fit(frame, rent)
    left_out = np.column_stack([cross_val_predict(model, frame, rent, cv=THIRDS) for _, model in base])
    final = LinearRegression().fit(left_out, rent)
    full = np.column_stack([clone(model).fit(frame, rent).predict(frame) for _, model in base])
    np.testing.assert_allclose(stack.predict(frame), final.predict(full), rtol=1e-10)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("frozen", [False, True])
def test_calibration_is_isotonic_regression_of_our_probabilities(frozen: bool, kinds: Any, weight: np.ndarray) -> None:
    """Of two classes, with weights: as fitted by hand on the same rows."""
    frame, dear = kinds[0], kinds[1] == "dear"
    train, test = slice(0, 84), slice(84, ROWS)
    model = classifier().fit(frame[train], dear[train], sample_weight=weight[train])
    if frozen:
        calibrated = CalibratedClassifierCV(FrozenEstimator(model), method="isotonic")
        calibrated.fit(frame[test], dear[test], sample_weight=weight[test])
    else:
        split = [(np.arange(84), np.arange(84, ROWS))]
        network = classifier().set_fit_request(sample_weight=True)
        calibrated = CalibratedClassifierCV(network, method="isotonic", cv=split)
        calibrated.fit(frame, dear, sample_weight=weight)
    by_hand = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    by_hand.fit(model.predict_proba(frame[test])[:, 1], dear[test], sample_weight=weight[test])
    expected = by_hand.predict(model.predict_proba(frame)[:, 1])
    np.testing.assert_allclose(calibrated.predict_proba(frame)[:, 1], expected, atol=1e-6)


def test_calibration_of_several_classes_fits_on_all_rows_in_the_end(kinds: Any) -> None:
    frame, kind = kinds
    calibrated = CalibratedClassifierCV(classifier(), cv=OF_CLASSES, ensemble=False).fit(frame, kind)
    assert list(calibrated.classes_) == ["cheap", "dear", "fair"]
    np.testing.assert_allclose(calibrated.predict_proba(frame).sum(axis=1), 1)
    (inside,) = calibrated.calibrated_classifiers_
    by_hand = classifier().fit(frame, kind)
    np.testing.assert_array_equal(inside.estimator.predict_proba(frame), by_hand.predict_proba(frame))


# --- metadata routing ----------------------------------------------------------------------------


@pytest.mark.usefixtures("routing")
def test_a_stack_of_a_searched_classifier_with_routed_weights(kinds: Any, weight: np.ndarray) -> None:
    """Weights reach the fits of the search, its scorer, and the final estimator."""
    frame, kind = kinds
    fifth = StratifiedShuffleSplit(1, test_size=0.2, random_state=0)
    network = classifier().set_fit_request(sample_weight=True)
    scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
    search = GridSearchCV(network, {"reg_beta": [0.01, 1.0]}, cv=fifth, scoring=scorer, error_score="raise")
    final = LogisticRegression().set_fit_request(sample_weight=True)
    stack = StackingClassifier([("searched", search)], final, cv=OF_CLASSES).fit(frame, kind, sample_weight=weight)

    def searched(rows: np.ndarray) -> CastleClassifier:
        """Search by hand."""
        X, y, w = frame.iloc[rows], kind.iloc[rows], weight[rows]
        ((train, test),) = fifth.split(X, y)
        scores = []
        for beta in (0.01, 1.0):
            model = classifier(reg_beta=beta).fit(X.iloc[train], y.iloc[train], sample_weight=w[train])
            scores.append(accuracy_score(y.iloc[test], model.predict(X.iloc[test]), sample_weight=w[test]))
        best = (0.01, 1.0)[int(np.argmax(scores))]
        return classifier(reg_beta=best).fit(X, y, sample_weight=w)

    left_out = np.empty((ROWS, 3))
    for train, test in OF_CLASSES.split(frame, kind):
        left_out[test] = searched(train).predict_proba(frame.iloc[test])
    by_hand = LogisticRegression().fit(left_out, kind, sample_weight=weight)
    full = searched(np.arange(ROWS)).predict_proba(frame)
    np.testing.assert_allclose(stack.predict_proba(frame), by_hand.predict_proba(full), rtol=1e-10)


@pytest.mark.usefixtures("routing")
def test_groups_and_weights_are_routed_to_our_search(flats: Any, weight: np.ndarray) -> None:
    """Through a pipeline, inside an outer split by the same groups."""
    frame, rent = flats
    groups = np.arange(ROWS) % 6

    def search() -> CastleRegressorCV:
        return CastleRegressorCV((0.01,), search="paper", cv=GroupKFold(2), **QUICK)

    own = search().set_fit_request(groups=True, sample_weight=True).set_score_request(sample_weight=True)
    scored = cross_validate(
        make_pipeline(FunctionTransformer(), own),
        frame,
        rent,
        cv=GroupKFold(3),
        params={"groups": groups, "sample_weight": weight},
        return_estimator=True,
        return_indices=True,
        error_score="raise",
    )
    train, test = scored["indices"]["train"][0], scored["indices"]["test"][0]
    assert not set(groups[train]) & set(groups[test])
    model = scored["estimator"][0][-1]
    by_hand = search().fit(frame.iloc[train], rent.iloc[train], sample_weight=weight[train], groups=groups[train])
    for fold, expected in zip(model.folds_, GroupKFold(2).split(groups[train], groups=groups[train]), strict=True):
        np.testing.assert_array_equal(np.concatenate(fold), np.concatenate(expected))
    np.testing.assert_array_equal(model.predict(frame), by_hand.predict(frame))
    assert scored["test_score"][0] == by_hand.score(frame.iloc[test], rent.iloc[test], sample_weight=weight[test])


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("search", ["paper", "fast"])
def test_the_scorer_of_our_search_gets_the_weights_it_requests(flats: Any, weight: np.ndarray, search: Any) -> None:
    """Those of the rows that it scores: the left-out rows of a fold, and in a pool also all of them."""
    weight_of = dict(zip(flats[1], weight, strict=True))
    seen: list[frozenset[float]] = []
    requested: bool | None = True

    def error(y: Any, predicted: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
        seen.append(frozenset(y))
        if requested:
            np.testing.assert_array_equal(sample_weight, [weight_of[value] for value in y])
        assert (sample_weight is not None) == requested
        return float(mean_absolute_error(y, predicted, sample_weight=sample_weight))

    expected = {frozenset(flats[1].iloc[test]) for _, test in THIRDS.split(weight)}
    expected |= {frozenset(flats[1])} if search == "fast" else set()
    for requested in (True, False):
        scorer = make_scorer(error, greater_is_better=False).set_score_request(sample_weight=requested)
        options = QUICK | {"max_epochs": 2, "scoring": scorer}
        seen.clear()
        CastleRegressorCV((0.01,), search=search, cv=THIRDS, **options).fit(*flats, sample_weight=weight)
        assert set(seen) == expected
    scorer = make_scorer(error, greater_is_better=False).set_score_request(sample_weight=None)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        CastleRegressorCV((0.01,), search=search, cv=THIRDS, scoring=scorer, **QUICK).fit(*flats, sample_weight=weight)


@pytest.mark.usefixtures("routing")
def test_weights_that_nobody_requests_are_not_dropped_in_silence(flats: Any, weight: np.ndarray) -> None:
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        StackingRegressor([("castle", regressor())], cv=2).fit(*flats, sample_weight=weight)
