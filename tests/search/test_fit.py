"""One function behind every fit: the same bits, the choice of a grid, the blend of a pool, and reasons to doubt it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import KFold

from castlereg import CastleClassifierCV, CastleRegressor, CastleRegressorCV, EdgeConstraints, NetworkRegressor
from castlereg.layout import EdgeRules
from castlereg.losses import Quantiles
from castlereg.notices import FitWarning
from castlereg.regularizers import L2, Castle, Dropout
from castlereg.search import FitRequest, FittedModel, Recipe, TrainingOptions, fit
from castlereg.search.fit import _end_of_grid, _few_rows, _no_skill, _rare_classes, _Run, choose, greedy_weights
from castlereg.search.held_out import RowLosses
from castlereg.search.model import HeldOutPredictions
from castlereg.table.encoding import Rows
from castlereg.table.reading import read_columns
from castlereg.table.targets import ClassTarget, NumericTarget
from tests.fitted_models import short_pools
from tests.training.test_callbacks import Notes

OPTIONS = TrainingOptions((8, 8), max_epochs=4)
QUICK: dict[str, Any] = {"hidden_layer_sizes": (8, 8), "max_epochs": 4, "random_state": 0}


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(90, 3)), columns=list("abc"))
    return table.assign(y=table["a"] - table["b"] + 0.1 * rng.normal(size=90))


def rows_of(table: pd.DataFrame) -> Rows:
    return Rows(read_columns(table[["a", "b", "c"]]), (table["y"].to_numpy(),))


def request(**options: Any) -> FitRequest:
    candidates = () if "search" in options else [(Castle(0.01),)]
    asked = {"rows": rows_of(frame()), "options": OPTIONS, "candidates": candidates, "categorical": [False] * 3}
    seed = np.random.SeedSequence(0)
    return FitRequest(**{"target_names": ["y"], "target_kinds": ["numbers"], "seed": seed} | asked | options)


def assert_same_bits(one: FittedModel, other: FittedModel) -> None:
    jax.tree.map(np.testing.assert_array_equal, one.networks.parameters, other.networks.parameters)
    np.testing.assert_array_equal(one.blend.weights, other.blend.weights)
    pd.testing.assert_frame_equal(one.history, other.history)
    assert one.validation_loss == other.validation_loss
    assert one.input_graph is not None and other.input_graph is not None
    np.testing.assert_array_equal(one.input_graph.learned_array, other.input_graph.learned_array)
    assert one.input_graph.threshold == other.input_graph.threshold


ASKED: dict[str, dict[str, Any]] = {
    "plain": {},
    "members": {"n_members": 3, "bootstrap": True},
    "validation rows": {"rows": rows_of(frame()[20:]), "validation": rows_of(frame()[:20])},
    "grid": {"search": "paper", "cv": 3, "options": replace(OPTIONS, reg_betas=(0.01, 0.1))},
    "pool": {"search": "fast", "cv": 3},
}


@pytest.mark.parametrize("how", ASKED)
def test_the_same_request_gives_the_same_bits(how: str) -> None:
    asked = request(**ASKED[how])
    assert_same_bits(fit(asked), fit(asked))
    other = fit(replace(asked, seed=np.random.SeedSequence(1)))
    assert not np.array_equal(other.networks.parameters.input_weights, fit(asked).networks.parameters.input_weights)


@pytest.mark.parametrize("how", ["plain", "grid", "pool"])
def test_it_is_the_fit_of_the_estimators(how: str) -> None:
    estimator = {
        "plain": CastleRegressor(0.01, **QUICK),
        "grid": CastleRegressorCV((0.01, 0.1), search="paper", cv=3, **QUICK),
        "pool": CastleRegressorCV(cv=3, **QUICK),
    }[how].fit(frame()[["a", "b", "c"]], frame()["y"])
    model = fit(request(**ASKED[how]))
    assert_same_bits(model, estimator.model_)
    if how == "plain":
        assert model.folds is None and model.networks.n_members == 1
    else:
        assert model.folds is not None and model.folds.seeds == estimator.fold_seeds_
    assert len(model.blend.parts) == 1 or how == "pool"


def test_only_the_targets_sub_networks_have_no_input_graph() -> None:
    model = fit(request(candidates=[(Dropout(0.1),)]))
    assert model.input_graph is None and not model.networks.has_all_nodes
    assert model.graph is not None and model.graph.nodes == ["a", "b", "c", "y"]


def test_regularizers_and_edges_are_checked_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise AssertionError("training began")

    monkeypatch.setattr("castlereg.search.candidates.train", fail)
    linear = replace(OPTIONS, hidden_layer_sizes=())
    with pytest.raises(ValueError, match="Dropout acts on hidden layers"):
        fit(request(options=linear, candidates=[(Dropout(),)]))
    required = np.zeros((4, 4), bool)
    required[2, 3] = True
    constant = rows_of(frame().assign(c=1.0))
    with (
        pytest.warns(UserWarning, match="constant columns"),
        pytest.raises(ValueError, match="an edge of 'c' is required, but the column is constant"),
    ):
        fit(request(rows=constant, edges=EdgeRules(np.ones((4, 4), bool), required)))


# --- choice and weights ---------------------------------------------------------------------------


def test_choice_by_mean_and_by_one_standard_error() -> None:
    scores = np.array([[-1.0, -1.4, -1.2], [-1.05, -1.4, -1.25], [-3.0, -3.0, -3.0], [np.nan, 0.0, 0.0]])
    strengths = [(0.001,), (0.01,), (1.0,), (10.0,)]
    assert choose(scores) == 0
    assert choose(scores, strengths) == 1
    assert choose(scores[:, :1], strengths) == 0  # one fold has no standard error


@pytest.mark.parametrize("strengths", [None, [(0.01,), (0.1,), (1.0,)]])
def test_when_every_candidate_has_a_failed_fold_the_one_with_fewest_is_chosen(strengths: Any) -> None:
    failed = -np.inf
    assert choose(np.array([[failed, failed, -1.0], [failed, -2.0, -3.0], [-2.5, -2.6, failed]]), strengths) == 1
    assert choose(np.array([[failed, -5.0], [np.nan, -4.0], [failed, failed]]), strengths) == 1


def mean_loss(truth: np.ndarray) -> Any:
    losses = RowLosses([NumericTarget("y", 0.0, 1.0)], [truth])
    return lambda predicted: float(losses(predicted).mean())


def test_the_greedy_selection_finds_the_best_mixture_of_two(rng: np.random.Generator) -> None:
    truth = rng.normal(size=300)
    first, second = truth + rng.normal(size=300), truth + 0.7 * rng.normal(size=300)
    loss = mean_loss(truth)
    weights = greedy_weights([[first], [second]], loss, leaders=0, rounds=100)
    shares = np.linspace(0, 1, 101)
    best = shares[np.argmin([loss([s * first + (1 - s) * second]) for s in shares])]
    assert weights[0] == pytest.approx(best, abs=0.02)
    assert weights.sum() == pytest.approx(1)


def test_half_of_the_weight_goes_to_the_best_candidates_alike(rng: np.random.Generator) -> None:
    truth = rng.normal(size=50)
    predictions = [[truth + spread * rng.normal(size=50)] for spread in (0.1, 3.0, 0.2, 5.0)]
    both, greedy = (greedy_weights(predictions, mean_loss(truth), leaders=leaders) for leaders in (2, 0))
    np.testing.assert_allclose(both, greedy / 2 + [0.25, 0, 0.25, 0])


# --- pools ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X.iloc[:120, :5], y[:120]


def pooled(data: Any, *arguments: Any, **options: Any) -> Any:
    with short_pools():
        return CastleRegressorCV(random_state=0, **options).fit(*data, *arguments)


@pytest.fixture(scope="module")
def model(data: tuple[Any, Any]) -> CastleRegressorCV:
    return pooled(data)


@pytest.mark.parametrize("estimator", [CastleRegressorCV, CastleClassifierCV])
def test_the_global_random_state_is_left_alone(data: Any, estimator: Any) -> None:
    """scikit-learn's solvers draw from it unless they have their own seed."""
    before = np.random.get_state()
    with short_pools():
        estimator(cv=2, random_state=0).fit(data[0], data[1] > 140)
    np.testing.assert_equal(np.random.get_state(), before)


def test_the_loss_of_a_pool_is_that_of_its_blend_on_held_out_rows(model: CastleRegressorCV) -> None:
    held_out = model.model_.held_out
    assert held_out is not None
    loss = RowLosses(model.model_.targets, held_out.truth)(held_out.predicted).mean()
    assert model.validation_loss_ == pytest.approx(loss)
    assert loss <= model.search_results_["loss"].min() + 0.02
    assert model.search_results_["loss"].is_monotonic_increasing


def test_the_picture_of_a_search_has_a_bar_per_candidate(model: CastleRegressorCV) -> None:
    axes = model.plot_search()
    results = model.search_results_
    assert [bar.get_width() for bar in axes.patches] == list(results["loss"])[::-1]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(results["candidate"])[::-1]
    shown = {text.get_text().strip() for text in axes.texts}
    assert {f"{100 * weight:.0f} %" for weight in results["weight"] if weight > 0} | {"together"} == shown


def test_the_input_graph_is_that_of_the_best_castle_networks(model: CastleRegressorCV) -> None:
    results = model.search_results_
    assert model.input_graph_.n_networks == 5 and model.reg_beta_ in (0.001, 0.01, 0.1)
    best = results[results["stage"] == "CASTLE"]["candidate"].iloc[0]
    assert best == f"CASTLE, beta {model.reg_beta_:g}" == model.cv_results_["candidate"][model.best_index_]
    assert set(model.selected_features_) <= set(model.feature_names_in_)


def test_intervals_are_those_of_the_blend(model: CastleRegressorCV, data: Any) -> None:
    lower, upper = model.predict_interval(data[0], coverage=0.8).T
    predicted = model.predict(data[0])
    assert ((lower < predicted) & (predicted < upper)).all()
    assert ((lower <= data[1]) & (data[1] <= upper)).mean() > 0.7


def test_every_stage_reports_to_callbacks_and_stays_as_it_is(model: CastleRegressorCV, data: Any) -> None:
    notes = Notes()
    with short_pools():
        watched = CastleRegressorCV(random_state=0).fit(*data, callbacks=[notes])
    stages = list(dict.fromkeys(epoch.stage for epoch in notes.epochs))
    assert stages == ["CASTLE", "embedded", "embedded, sparse", "refit"]
    assert [epoch.number for epoch in notes.epochs if epoch.stage == "CASTLE"] == [1, 2, 3]
    assert list(notes.epochs[0].members[4:6]) == ["reg_beta=0.001, fold 4", "reg_beta=0.01, fold 0"]
    np.testing.assert_array_equal(watched.predict(data[0]), model.predict(data[0]))
    np.testing.assert_array_equal(watched.input_graph_.weight_array, model.input_graph_.weight_array)


def test_a_forbidden_column_changes_nothing(data: Any) -> None:
    model = pooled(data, constraints=EdgeConstraints(forbidden=[("bmi", "target")]))
    np.testing.assert_array_equal(model.predict(data[0].assign(bmi=9.0)), model.predict(data[0]))
    assert "bmi" not in model.input_graph_.parents("target") and "bmi" not in model.selected_features_


def test_weights_count_when_candidates_are_chosen(data: Any) -> None:
    """Weights in another unit are the same weights, and rows with more weight are predicted better."""
    weight = np.where(np.arange(120) % 3, 1, 9)
    models = [pooled(data, weight * unit) for unit in (1, 2.0)]
    np.testing.assert_allclose(*(model.predict(data[0]) for model in models), rtol=1e-4)
    heavy = np.where(data[1] > 200, 99.0, 1.0)
    assert (pooled(data, heavy).predict(data[0]) > models[0].predict(data[0])).mean() > 0.9


def test_a_scorer_may_ask_for_quantiles(data: Any) -> None:
    def scorer(model: Any, X: Any, y: Any) -> float:
        return -mean_pinball_loss(y, model.predict_quantiles(X)[:, 1], alpha=0.9)

    for search in ("fast", "paper"):
        model = pooled(data, search=search, scoring=scorer, loss=Quantiles((0.5, 0.9)), max_epochs=3)
        assert model.best_score_ < 0


def test_a_scorer_that_gives_nan_is_told_of(data: Any) -> None:
    for search in ("fast", "paper"):
        with pytest.warns(UserWarning, match="scoring gives NaN for (24|120) held-out rows"):
            model = pooled(data, search=search, cv=5, scoring=lambda *_: np.nan, max_epochs=1)
        assert np.isneginf(model.cv_results_["mean_test_score"]).all() and set(
            model.cv_results_["rank_test_score"]
        ) == {1}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("monotone", [None, {"bmi": 1}])
def test_a_pool_needs_a_network_with_finite_losses(data: Any, monotone: Any) -> None:
    """Linear forms, which are left out for monotone columns, do not make a model by themselves."""
    with pytest.raises(FloatingPointError, match="no epoch with a finite loss at learning rates from 1e\\+30"):
        pooled(data, cv=2, learning_rate=1e30, monotone=monotone)


def test_columns_that_are_all_constant_predict_the_mean(data: Any) -> None:
    X, y = data
    with short_pools(), pytest.warns(UserWarning, match="constant"):
        model = pooled((0 * X, y))
        classes = CastleClassifierCV(random_state=0).fit(0 * X, y > 100)
    assert model.predict(X) == pytest.approx(y.mean(), rel=0.05)
    assert classes.predict_proba(X)[:, 1] == pytest.approx((y > 100).mean(), abs=0.05)


def test_a_refit_needs_columns_to_leave_out(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def used(networks: Any, _: Any) -> Any:
        return networks.target_edge_weights() > 0

    monkeypatch.setitem(_Run.train.__globals__, "selected_columns", used)  # ``castlereg.search.fit`` is the function
    with pytest.warns(UserWarning, match="constant"):
        model = pooled((data[0].assign(flat=1.0), data[1]))
    assert "refit" not in set(model.search_results_["stage"])
    assert "refit" not in set(pooled(data, recipe=Recipe(refit=False)).search_results_["stage"])


@pytest.mark.parametrize("cv", [None, KFold(3)])
def test_best_has_two_sets_of_folds_or_trains_those_of_a_splitter_twice(data: Any, cv: Any) -> None:
    best, fast = pooled(data, search="best", cv=cv), pooled(data, cv=cv)
    half = len(fast.folds_)
    assert len(best.folds_) == 2 * half
    for part in (best.folds_[:half], best.folds_[half:]):
        np.testing.assert_array_equal(np.sort(np.concatenate([held for _, held in part])), np.arange(120))
    for one, other in zip(best.folds_[:half], fast.folds_, strict=True):
        np.testing.assert_array_equal(one[1], other[1])
    assert np.array_equal(best.folds_[0][1], best.folds_[half][1]) == (cv is not None)
    weights = best.model_.networks.parameters.input_weights
    assert not np.array_equal(weights[0], weights[half])


def test_classes_and_weights(data: Any) -> None:
    X, y = data
    weight = np.where(np.arange(120) % 3 == 0, 2.0, 1.0)
    with short_pools():
        model = CastleClassifierCV(class_weight="balanced", random_state=0)
        model.fit(X, np.where(y > 140, "high", "low"), weight)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.predict_set(X).any(axis=1).mean() > 0.8


# --- warnings ---------------------------------------------------------------------------------------

TINY: dict[str, Any] = {"hidden_layer_sizes": (4,), "max_epochs": 1, "random_state": 0}
NUMBER, CLASSES = NumericTarget("y", 0.0, 1.0), ClassTarget("kind", np.array(list("abcde")))


def said(model: Any, X: Any, y: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert all("\n" not in str(warning.message) for warning in caught)
    assert {warning.filename for warning in caught} <= {__file__}  # they point at the user's line
    return [str(warning.message) for warning in caught if warning.category is FitWarning]


def test_nothing_is_said_of_an_ordinary_table() -> None:
    X, y = load_diabetes(return_X_y=True)
    assert said(NetworkRegressor(max_epochs=2, random_state=0), X, y) == []


def test_few_rows_and_no_skill_are_said_once_for_all_networks(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
    few = said(NetworkRegressor(n_members=3, **TINY), X[:45], y[:45])
    assert len(few) == 1 and few[0].startswith("45 rows for 3 columns are few: ")
    wild = said(NetworkRegressor(n_members=3, learning_rate=1.0, **TINY), X, y)
    assert len(wild) == 1 and wild[0].startswith("predictions of 'y' on held-out rows are no better than the mean")


def test_a_class_that_a_fold_does_not_train_on(rng: np.random.Generator) -> None:
    y = np.repeat(["a", "b", "c"], [30, 24, 6])
    model = CastleClassifierCV((0.01,), search="paper", cv=KFold(2), **TINY)
    notes = said(model, rng.normal(size=(60, 3)), pd.Series(y, name="kind"))
    assert notes[:2] == [
        "'kind' has rare classes, 'c' (6 rows): they are hard to learn and to score; merge them or collect more rows",
        "fold 0 has no training rows of class 'a' of 'kind', so it cannot predict it: use a stratified splitter",
    ]
    assert len(notes) == len(set(notes))


@pytest.mark.parametrize(
    ("rows", "columns", "few"), [(49, 2, True), (50, 2, False), (109, 100, True), (110, 100, False)]
)
def test_few_rows(rows: int, columns: int, few: bool) -> None:
    assert (_few_rows(rows, columns) is not None) == few


def test_rare_classes_are_named_rarest_first() -> None:
    assert _rare_classes(CLASSES, np.array([10, 11, 99, 50, 20])) is None
    assert "'b' (1 row), 'e' (3 rows), 'a' (4 rows) and 1 more:" in str(
        _rare_classes(CLASSES, np.array([4, 1, 9, 50, 3]))
    )


def test_a_beta_at_the_end_of_its_grid(rng: np.random.Generator) -> None:
    grid = [(Castle(beta, reg_lambda=strength),) for beta in (0.1, 1.0) for strength in (1.0, 2.0)]
    better = np.repeat([[-1.0], [-0.5]], 2, axis=0) + rng.normal(0, 0.01, (4, 5))
    assert str(_end_of_grid(grid, better, 3)).startswith(
        "reg_beta=1 is the largest value tried and clearly better than 0.1:"
    )
    assert str(_end_of_grid(grid, better[::-1], 0)).startswith(
        "reg_beta=0.1 is the smallest value tried and clearly better than 1: try smaller"
    )
    noisy = better + np.outer([0, 1, 0, -1], [1, -1, 2, -1, -1])
    assert _end_of_grid(grid, noisy, 3) is None  # not clearly
    assert _end_of_grid(grid, better, 0) is None  # chosen as the smallest, but not better
    assert _end_of_grid(grid[2:], better[2:], 0) is None  # one beta
    assert _end_of_grid([(Castle(0.0),), (Castle(0.1),)], -better[[0, 2]], 0) is None  # nothing is smaller
    assert _end_of_grid([(L2(0.1),), (L2(1.0),)], better[[0, 2]], 1) is None
    failed = np.where(np.arange(5) == 2, -np.inf, better)
    assert _end_of_grid(grid, failed, 3) is None


def test_a_beta_is_compared_within_candidates_that_are_alike_otherwise(rng: np.random.Generator) -> None:
    scores = np.repeat([[-1.0], [-0.5]], 5, axis=1) + rng.normal(0, 0.01, (2, 5))
    assert _end_of_grid([(Castle(0.1), L2(5.0)), (Castle(1.0), L2(5.0))], scores, 1) is not None
    assert _end_of_grid([(Castle(0.1), L2(0.1)), (Castle(1.0), L2(5.0))], scores, 1) is None


def test_no_skill_names_the_targets_that_are_not_predicted(rng: np.random.Generator) -> None:
    y, kinds = rng.normal(size=40), np.array(list("abcde") * 8)
    right, wrong = y + 0.1, -y
    shares, sure = np.full((40, 5), 0.2), 0.1 + 0.5 * np.eye(5)[np.arange(40) % 5]

    def said_of(number: Any, classes: Any) -> str:
        return str(_no_skill(HeldOutPredictions([y, kinds], [number, classes]), [NUMBER, CLASSES]))

    assert said_of(right, sure) == "None"
    assert "predictions of 'y' on held-out rows are no better than the mean (R² below 0):" in said_of(wrong, sure)
    assert "predictions of 'kind' on held-out rows are no better than the class shares:" in said_of(right, shares)
    assert "than the mean (R² below 0) and the class shares:" in said_of(wrong, shares)
