"""Cross-validated choice: equal to one by one, any splitter, and what the folds left out."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from castlereg import (
    Castle,
    CastleClassifier,
    CastleClassifierCV,
    CastleRegressor,
    CastleRegressorCV,
    NetworkRegressor,
    Recipe,
)
from castlereg.callbacks import TimeLimit
from castlereg.regularizers import L2
from castlereg.search.model import class_sets, cv_plus
from tests.estimators.test_real_tables import mixed_frame, with_gaps

QUICK: dict[str, Any] = {"search": "paper", "cv": 3, "max_epochs": 6, "random_state": 0}
BETAS = (0.01, 0.5)


@pytest.fixture(scope="module")
def diabetes() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_diabetes(return_X_y=True)
    return X[:150], y[:150]


@pytest.fixture(scope="module")
def model(diabetes: Any) -> CastleRegressorCV:
    return CastleRegressorCV(BETAS, **QUICK).fit(*diabetes)


# --- the choice ----------------------------------------------------------------------------------


def test_the_batched_choice_equals_training_one_by_one(diabetes: Any, model: CastleRegressorCV) -> None:
    X, y = diabetes
    losses = np.empty((2, 3))
    fold_predictions = []
    for i, beta in enumerate(BETAS):
        for k, (train, held) in enumerate(model.folds_):
            plain = CastleRegressor(beta, max_epochs=6, random_state=model.fold_seeds_[k])
            plain.fit(X[train], y[train], X_val=X[held], y_val=y[held])
            losses[i, k] = plain.validation_loss_
            if i == model.best_index_:
                fold_predictions.append(plain.predict(X))
    batched = np.column_stack([model.cv_results_[f"split{k}_test_score"] for k in range(3)])
    np.testing.assert_allclose(-batched, losses, rtol=1e-5)
    assert model.best_index_ == losses.mean(axis=1).argmin()
    assert model.reg_beta_ == BETAS[model.best_index_]
    assert model.reg_lambda_ == 1.0
    np.testing.assert_allclose(model.predict(X), np.mean(fold_predictions, axis=0), rtol=1e-4)


def test_the_same_for_classes_and_mixed_tables() -> None:
    frame, rent = mixed_frame()
    frame, kind = with_gaps(frame, 0.1), np.digitize(rent, [-1, 1])
    chosen = CastleClassifierCV((0.1, 0.001), **QUICK).fit(frame, kind)
    train, held = chosen.folds_[0]
    one = CastleClassifier(0.001, max_epochs=6, random_state=chosen.fold_seeds_[0])
    one.fit(frame.iloc[train], kind[train], X_val=frame.iloc[held], y_val=kind[held])
    np.testing.assert_allclose(-chosen.cv_results_["split0_test_score"][1], one.validation_loss_, rtol=0.02)


def test_results_have_scikit_learns_shape(model: CastleRegressorCV) -> None:
    results = pd.DataFrame(model.cv_results_)
    assert list(results["param_reg_beta"]) == list(BETAS)
    assert set(results.columns) >= {
        *("mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time", "params"),
        *("mean_test_score", "std_test_score", "rank_test_score", "split0_test_score", "split2_test_score"),
    }
    np.testing.assert_allclose(
        results["mean_test_score"], results[[f"split{k}_test_score" for k in range(3)]].mean(axis=1)
    )
    assert results["rank_test_score"][model.best_index_] == 1
    assert model.best_score_ == results["mean_test_score"][model.best_index_]
    assert model.best_params_ == results["params"][model.best_index_]


def test_a_scorer_can_choose(diabetes: Any) -> None:
    X, y = diabetes
    by_score = CastleRegressorCV(BETAS, scoring="neg_mean_absolute_error", **QUICK).fit(X, y)
    train, held = by_score.folds_[1]
    plain = CastleRegressor(BETAS[0], max_epochs=6, random_state=by_score.fold_seeds_[1])
    plain.fit(X[train], y[train], X_val=X[held], y_val=y[held])
    expected = -np.abs(plain.predict(X[held]) - y[held]).mean()
    np.testing.assert_allclose(by_score.cv_results_["split1_test_score"][0], expected, rtol=1e-5)


def test_the_chosen_strengths_are_options_of_the_plain_estimator(diabetes: Any) -> None:
    X, y = diabetes
    castles = [Castle(reg_lambda=0.5), Castle(reg_lambda=2.0)]
    chosen = CastleRegressorCV(BETAS, castle=castles, regularizers=[L2(0.01)], **QUICK).fit(X, y)
    assert len(chosen.cv_results_["params"]) == 4
    assert list(chosen.cv_results_["param_reg_lambda"]) == [0.5, 2.0] * 2
    assert chosen.best_params_ == {"reg_beta": chosen.reg_beta_, "reg_lambda": chosen.reg_lambda_}
    one = CastleRegressor(**chosen.best_params_, regularizers=[L2(0.01)], max_epochs=6, random_state=0).fit(X, y)
    assert one.model_.networks.n_members == 1
    castle = chosen.best_regularizers_[0]
    assert isinstance(castle, Castle)
    assert (castle.reg_beta, castle.reg_lambda) == (one.reg_beta, one.reg_lambda)


def test_one_standard_error_takes_the_stronger(diabetes: Any) -> None:
    options = {**QUICK, "search": "one_standard_error"}
    assert CastleRegressorCV((1e-6, 1e-5), **options).fit(*diabetes).best_index_ == 1


def test_names_do_not_matter(diabetes: Any, model: CastleRegressorCV) -> None:
    X, y = diabetes
    other = CastleRegressorCV(BETAS, **QUICK).fit(pd.DataFrame(X, columns=list("jihgfedcba")), y)
    np.testing.assert_array_equal(other.predict(pd.DataFrame(X, columns=list("jihgfedcba"))), model.predict(X))


def test_clone_and_pickle(diabetes: Any, model: CastleRegressorCV) -> None:
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_interval(diabetes[0]), model.predict_interval(diabetes[0]))


# --- splitters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cv",
    [
        KFold(4),
        GroupKFold(3),
        TimeSeriesSplit(3),
        PredefinedSplit(np.arange(150) % 3 - 1),
        ShuffleSplit(2, random_state=0),
        "list",
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_any_splitter(diabetes: Any, cv: Any) -> None:
    X, y = diabetes
    groups = np.arange(150) // 10 if isinstance(cv, GroupKFold) else None
    splits = cv
    if cv == "list":
        splits = [(np.arange(100), np.arange(100, 150)), (np.arange(50, 150), np.arange(7))]  # of unequal size
    chosen = CastleRegressorCV(BETAS, search="paper", cv=splits, max_epochs=3, random_state=0).fit(X, y, groups=groups)
    expected = splits if cv == "list" else list(splits.split(X, y, groups))
    for (train, held), (own_train, own_held) in zip(expected, chosen.folds_, strict=True):
        np.testing.assert_array_equal(train, own_train)
        np.testing.assert_array_equal(held, own_held)
    assert chosen.model_.networks.n_members == len(expected)
    assert np.isfinite(chosen.predict(X)).all()


def test_classes_are_kept_in_proportion() -> None:
    X, y = load_iris(return_X_y=True)
    for cv in (5, StratifiedKFold(5)):
        chosen = CastleClassifierCV((0.01,), search="paper", cv=cv, max_epochs=2, random_state=0).fit(X, y)
        for _, held in chosen.folds_:
            np.testing.assert_array_equal(np.bincount(y[held]), [10, 10, 10])


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "cv=1 must be a whole number of at least 2"),
        (200, "cv=200 needs at least 200 rows, but there are 150: lower cv"),
        ([(np.arange(100), np.arange(100, 150))], "gives 1 fold"),
        ([(np.arange(1), np.arange(9))] * 2, "fold 0 .* has 1 training rows and 9 validation rows"),
        (GroupKFold(3), "groups"),
        ("ten", "cv|Expected"),
    ],
)
def test_bad_folds_raise(diabetes: Any, cv: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CastleRegressorCV(BETAS, cv=cv).fit(*diabetes)


def test_more_folds_than_a_class_has_rows() -> None:
    X, _ = load_iris(return_X_y=True)
    y = np.r_[np.zeros(100, int), np.ones(47, int), np.full(3, 2)]
    with pytest.warns(UserWarning, match="least populated class in y has only 3 members"):
        chosen = CastleClassifierCV((0.01,), search="paper", cv=5, max_epochs=2, random_state=0).fit(X, y)
    assert list(chosen.classes_) == [0, 1, 2]


def test_more_folds_than_every_class_has_rows_raise() -> None:
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match="cv=5 needs a class with at least 5 rows, but the largest class has 4"):
        CastleClassifierCV((0.01,), cv=5).fit(X, [0, 0, 0, 0, 1, 1, 1, 2, 2, 2])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (CastleRegressorCV(()), r"reg_betas=\(\) must be a sequence of numbers"),
        (CastleRegressorCV(0.1), "reg_betas=0.1 must be a sequence"),
        (CastleRegressorCV((-1,)), "each of reg_betas=-1 must be at least 0"),
        (CastleRegressorCV(castle="x"), r"castle='x' must be Castle\(\.\.\.\), a sequence of them, or None"),
        (CastleRegressorCV(castle=[]), r"castle=\[\] must be Castle"),
        (CastleRegressorCV(search="quick"), "search='quick' is not one of"),
        (CastleRegressorCV(castle=Castle(reg_beta=0.5)), "castle has reg_beta=0.5, which has no effect here"),
        (
            CastleRegressorCV(recipe=Recipe(validation_fraction=0.2)),
            "validation_fraction=0.2, but with cross-validation",
        ),
        (CastleRegressorCV(max_epochs=0), "max_epochs=0 must be a whole number"),
        (CastleRegressorCV(scoring=["r2"]), r"scoring=\['r2'\] must be the name of one scorer, a callable or None"),
    ],
)
def test_bad_options_raise(diabetes: Any, model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(*diabetes)


def test_rows_of_weight_zero_are_in_no_fold(diabetes: Any) -> None:
    X, y = diabetes
    weight = np.r_[np.zeros(30), np.ones(120)]
    for cv in (3, KFold(3)):
        options = {**QUICK, "cv": cv, "max_epochs": 2}
        weighted = CastleRegressorCV((0.01,), **options).fit(X, y, sample_weight=weight)
        for train, held in weighted.folds_:
            assert min(train.min(), held.min()) >= 30
    rest = CastleRegressorCV((0.01,), **{**QUICK, "max_epochs": 2}).fit(X[30:], y[30:])
    weighted = CastleRegressorCV((0.01,), **{**QUICK, "max_epochs": 2}).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(weighted.predict(X), rest.predict(X), rtol=1e-5)


# --- what the folds left out ---------------------------------------------------------------------


def test_cv_plus_by_hand(rng: np.random.Generator) -> None:
    values, off = rng.normal(size=(3, 5)), [np.abs(rng.normal(size=n)) for n in (20, 15, 14)]
    ends = cv_plus(values, off, 0.8)
    for row in range(5):
        lower = np.sort(np.concatenate([values[k, row] - off[k] for k in range(3)]))
        upper = np.sort(np.concatenate([values[k, row] + off[k] for k in range(3)]))
        assert ends[row, 0] == lower[9]  # floor(0.2 * 50) = 10th smallest
        assert ends[row, 1] == upper[39]  # ceil(0.8 * 50) = 40th smallest
    assert np.isinf(cv_plus(values, [np.ones(1)] * 3, 0.9)).all()


def test_intervals_cover_and_follow_the_coverage() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + (0.3 + 0.3 * (X[:, 1] > 0)) * rng.normal(size=600)
    chosen = CastleRegressorCV((0.001,), search="paper", cv=5, learning_rate=0.01, max_epochs=60, random_state=0)
    chosen.fit(X[:300], y[:300])
    widths = []
    for coverage in (0.5, 0.9):
        lower, upper = chosen.predict_interval(X[300:], coverage).T
        assert abs(((lower <= y[300:]) & (y[300:] <= upper)).mean() - coverage) < 0.07
        widths.append((upper - lower).mean())
    assert widths[0] < widths[1]
    single = chosen.predict_interval(X[300:301], 0.9)
    np.testing.assert_array_equal(single, chosen.predict_interval(X[300:], 0.9)[:1])


def test_class_sets_cover() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    y = np.digitize(X[:, 0] + 0.7 * rng.normal(size=900), [-0.6, 0.6])
    chosen = CastleClassifierCV((0.001,), search="paper", cv=5, learning_rate=0.01, max_epochs=60, random_state=0)
    chosen.fit(X[:400], y[:400])
    sizes = []
    for coverage in (0.6, 0.9):
        sets = chosen.predict_set(X[400:], coverage)
        assert sets.shape == (500, 3)
        assert abs(sets[np.arange(500), y[400:]].mean() - coverage) < 0.06
        sizes.append(sets.sum(axis=1).mean())
    assert sizes[0] < sizes[1]


def test_a_class_is_kept_when_truth_was_often_as_improbable() -> None:
    off = [np.array([0.1, 0.2, 0.3, 0.9])]
    probabilities = np.array([[[0.95, 0.75, 0.5, 0.05]]])
    np.testing.assert_array_equal(class_sets(probabilities, off, 0.6), [[[True, True, False, False]][0]])


def test_several_targets_have_intervals_each(diabetes: Any) -> None:
    X, y = diabetes
    chosen = CastleRegressorCV((0.01,), **QUICK).fit(X, np.c_[y, -y])
    intervals = chosen.predict_interval(X)
    assert intervals.shape == (150, 2, 2)
    with pytest.raises(ValueError, match=r"coverage=1.5 must be a fraction"):
        chosen.predict_interval(X, 1.5)


# --- members -------------------------------------------------------------------------------------


def test_bootstrap_members_see_rows_of_their_own(diabetes: Any) -> None:
    X, y = diabetes
    plain, replicas = (
        NetworkRegressor(n_members=3, bootstrap=bootstrap, max_epochs=3, random_state=0).fit(X, y)
        for bootstrap in (False, True)
    )
    shifts = [several.model_.networks.standardization.shift[:, 0] for several in (plain, replicas)]
    assert [len(np.unique(shift)) for shift in shifts] == [1, 3]
    with pytest.raises(ValueError, match="bootstrap='yes' must be True or False"):
        NetworkRegressor(bootstrap="yes").fit(X, y)  # type: ignore[arg-type]


def test_agreement_is_the_share_of_networks_with_the_edge(diabetes: Any) -> None:
    several = CastleRegressor(n_members=4, bootstrap=True, max_epochs=30, random_state=0).fit(*diabetes)
    graph = several.input_graph_
    assert graph.n_networks == 4
    assert set(np.unique(graph.agreement_array)) <= {0, 0.25, 0.5, 0.75, 1}
    assert graph.agreement_array.max() > 0
    assert np.isnan(CastleRegressor(max_epochs=3, random_state=0).fit(*diabetes).input_graph_.agreement_array).all()


def test_searched_details_of_the_penalty_are_in_the_params() -> None:
    X, y = load_diabetes(return_X_y=True)
    castles = [Castle(sparsity="group"), Castle(acyclicity="logdet")]
    search = CastleRegressorCV((0.01, 0.1), search="paper", castle=castles, cv=2, max_epochs=2, random_state=0).fit(
        X, y
    )
    assert len({repr(params) for params in search.cv_results_["params"]}) == 4
    single = CastleRegressor(**search.best_params_, max_epochs=2, random_state=0).fit(X, y)
    assert single.castle == search.best_regularizers_[0]


# --- the pool -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pool(diabetes: Any) -> CastleRegressorCV:
    return CastleRegressorCV(cv=3, max_epochs=8, random_state=0).fit(*diabetes)


def test_a_pool_predicts_with_the_weighted_mean_of_its_candidates(diabetes: Any, pool: CastleRegressorCV) -> None:
    blend = pool.model_.blend
    parts = [part.predict_values(diabetes[0])[0].mean(axis=0) for part in blend.parts]
    assert blend.weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(pool.predict(diabetes[0]), blend.weights @ parts, rtol=1e-9)
    results = pool.search_results_
    assert set(results["stage"]) >= {"linear", "CASTLE", "embedded", "embedded, sparse"}
    assert sorted(results["candidate"][results["weight"] > 0]) == sorted(blend.names)


def test_the_weights_of_a_pool_are_those_of_the_greedy_selection(diabetes: Any, pool: CastleRegressorCV) -> None:
    """Held-out rows, each predicted by the networks of its fold, decide; the model's own record has the result."""
    held_out = pool.model_.held_out
    assert held_out is not None
    residual = held_out.truth[0] - held_out.predicted[0]
    np.testing.assert_allclose(pool.validation_loss_, residual.var() / diabetes[1].var(), rtol=0.05)
    assert pool.validation_loss_ <= pool.search_results_["loss"].min() * 1.02


def test_a_scorer_blends_a_pool(diabetes: Any) -> None:
    """The scorer sees the held-out rows and their predictions, and its own favourite gets the weight."""
    seen = []

    def scorer(model: Any, X: Any, y: Any) -> float:
        seen.append(len(X))
        return -float(np.abs(model.predict(X) - y).mean())

    model = CastleRegressorCV((0.01,), scoring=scorer, cv=3, max_epochs=3, random_state=0).fit(*diabetes)
    assert {50, 150} == set(seen)
    assert model.best_score_ < 0
    assert "neg" not in str(model.cv_results_["mean_test_score"])


def test_time_ends_the_search_between_stages(diabetes: Any) -> None:
    model = CastleRegressorCV(cv=2, max_epochs=4, random_state=0).fit(*diabetes, callbacks=[TimeLimit(1e-9)])
    assert set(model.search_results_["stage"]) == {"linear", "CASTLE"}
