"""Searches over a pool: what predicts, what is selected, how they end early, and that seeds decide everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

from castlereg import (
    CastleClassifierCV,
    CastleRegressor,
    CastleRegressorCV,
    EdgeConstraints,
    NetworkRegressorCV,
    Recipe,
)
from castlereg.fitted.row_losses import RowLosses
from castlereg.fitted.thresholds import into_targets
from castlereg.layout import Layout, Node
from castlereg.search import pooled
from castlereg.search.fit import fit
from castlereg.search.grid import clearly_worse
from castlereg.search.pool import pool
from castlereg.search.pooled import PoolRun
from castlereg.table.reading import read_columns
from castlereg.training.stack import Stack
from tests.fitted_models import short_pools
from tests.training.test_callbacks import Notes

pytestmark = pytest.mark.xdist_group("pools")


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X.iloc[:120, :5], y[:120]


@pytest.fixture(scope="module")
def model(data: tuple[Any, Any]) -> CastleRegressorCV:
    with short_pools():
        return CastleRegressorCV(search="fast", random_state=0).fit(*data)


def layout(n_features: int) -> Layout:
    return Layout((*[Node()] * n_features, Node(target=True)))


def test_stages_of_a_pool() -> None:
    narrow = pool(layout(10), 500)
    assert [stage.name for stage in narrow] == ["CASTLE", "embedded", "embedded, sparse", "refit"]
    without = pool(layout(10), 500, causal=False)
    assert not any(part.needs_all_nodes for stage in without for candidate in stage.candidates for part in candidate)
    wide = pool(layout(300), 500)
    assert wide[0].candidates[0][0].features_per_step == 8  # type: ignore[union-attr]
    assert wide[1].plan.embedding == 0 and wide[1].plan.max_epochs < narrow[1].plan.max_epochs


def test_the_prediction_is_the_weighted_mean_of_the_candidates(model: CastleRegressorCV, data: Any) -> None:
    X = data[0]
    blend = model.model_.blend
    assert blend is not None
    cells = model.model_.preprocessing.cells
    parts = [part.predict(cells(read_columns(X)))[0].mean(axis=0) for part in blend.parts]
    np.testing.assert_allclose(model.predict(X), blend.weights @ parts, rtol=1e-12)
    results = model.search_results_
    assert results["weight"].sum() == pytest.approx(1)
    assert set(results.loc[results["weight"] > 0, "candidate"]) == set(blend.names)
    assert results["loss"].is_monotonic_increasing
    held_out = model.model_.held_out
    assert held_out is not None
    loss = RowLosses(model.model_.targets, held_out.truth)(held_out.predicted).mean()
    assert model.validation_loss_ == pytest.approx(loss)
    assert loss <= results["loss"].min() + 0.02


def test_the_picture_of_a_search_has_a_bar_per_candidate(model: CastleRegressorCV) -> None:
    axes = model.plot_search()
    results = model.search_results_
    assert [bar.get_width() for bar in axes.patches] == list(results["loss"])[::-1]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(results["candidate"])[::-1]
    shown = {text.get_text().strip() for text in axes.texts}
    assert {f"{100 * weight:.0f} %" for weight in results["weight"] if weight > 0} | {"together"} == shown


def test_the_graph_is_that_of_the_castle_networks(model: CastleRegressorCV) -> None:
    assert model.graph_.is_dag
    assert model.graph_.agreement_of.startswith("15 CASTLE networks")  # three strengths on five folds
    assert model.reg_beta_ in (0.001, 0.01, 0.1)
    assert set(model.selected_features_) <= set(model.feature_names_in_)


def test_intervals_are_those_of_the_blend(model: CastleRegressorCV, data: Any) -> None:
    lower, upper = model.predict_interval(data[0], coverage=0.8).T
    predicted = model.predict(data[0])
    assert ((lower < predicted) & (predicted < upper)).all()
    assert ((lower <= data[1]) & (data[1] <= upper)).mean() > 0.7


def test_the_same_seed_gives_the_same_bits(model: CastleRegressorCV, data: Any) -> None:
    order = np.random.default_rng(0).permutation(120)
    with short_pools():
        again = CastleRegressorCV(search="fast", random_state=0).fit(data[0].iloc[order], data[1].iloc[order])
    np.testing.assert_array_equal(again.predict(data[0]), model.predict(data[0]))
    np.testing.assert_array_equal(again.graph_.weight_array, model.graph_.weight_array)


def test_every_stage_reports_to_callbacks_and_stays_as_it_is(model: CastleRegressorCV, data: Any) -> None:
    notes = Notes()
    with short_pools():
        watched = CastleRegressorCV(search="fast", random_state=0).fit(*data, callbacks=[notes])
    stages = list(dict.fromkeys(epoch.stage for epoch in notes.epochs))
    assert stages == ["CASTLE", "embedded", "embedded, sparse", "refit"]
    assert [epoch.number for epoch in notes.epochs if epoch.stage == "CASTLE"] == [1, 2, 3]
    assert list(notes.epochs[0].members[4:6]) == ["reg_beta=0.001, fold 4", "reg_beta=0.01, fold 0"]
    np.testing.assert_array_equal(watched.predict(data[0]), model.predict(data[0]))
    np.testing.assert_array_equal(watched.graph_.weight_array, model.graph_.weight_array)


def test_a_forbidden_column_changes_nothing(data: Any) -> None:
    X, y = data
    known = EdgeConstraints(forbidden=[("bmi", "target")])
    with short_pools():
        model = CastleRegressorCV(search="fast", constraints=known, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X.assign(bmi=9.0)), model.predict(X))
    assert "bmi" not in model.graph_.parents("target") and "bmi" not in model.selected_features_


def test_a_time_limit_ends_with_what_there_is(data: Any) -> None:
    with short_pools():
        model = CastleRegressorCV(search="best", time_limit=1e-3, random_state=0).fit(*data)
    assert set(model.search_results_["stage"]) == {"linear", "CASTLE"}
    assert model.graph_.is_dag and np.isfinite(model.predict(data[0])).all()
    with pytest.raises(AttributeError, match="has no selected columns"):
        _ = model.selected_features_


def test_an_interrupted_search_keeps_what_there_is(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    train = PoolRun._train

    def interrupted(self: PoolRun, table: Any, stage: Any, *arguments: Any) -> bool:
        if stage.name != "CASTLE":
            raise KeyboardInterrupt
        return train(self, table, stage, *arguments)

    monkeypatch.setattr(PoolRun, "_train", interrupted)
    with short_pools():
        with pytest.raises(KeyboardInterrupt):
            CastleRegressorCV(search="fast", random_state=0).fit(*data)
        with pytest.warns(UserWarning, match="the search was interrupted: the 15 candidates"):
            model = CastleRegressorCV(search="fast", random_state=0).fit(*data, on_interrupt="keep")
    assert set(model.search_results_["stage"]) == {"linear", "CASTLE"}


def test_ctrl_c_inside_a_stage_ends_the_whole_search(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    record, calls = Stack.record, []

    def interrupted(self: Stack, log: Any) -> None:
        record(self, log)
        calls.append(self)
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Stack, "record", interrupted)
    with short_pools(), pytest.warns(UserWarning, match="interrupted"):
        model = CastleRegressorCV(search="fast", random_state=0).fit(*data, on_interrupt="keep")
    assert set(model.search_results_["stage"]) == {"linear", "CASTLE"}
    assert model.reg_beta_ in (0.001, 0.01, 0.1)


def test_a_refit_that_is_interrupted_leaves_the_networks_before_it(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setitem(fit.__globals__, "_refitted", interrupted)
    model = CastleRegressor(recipe=Recipe(refit=True), max_epochs=2, random_state=0)
    with pytest.warns(UserWarning, match="the refit was interrupted"):
        model.fit(*data, on_interrupt="keep")
    assert model.model_.blend is None
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)


def test_weights_count_when_candidates_are_chosen(data: Any) -> None:
    X, y = data
    times = np.where(np.arange(120) % 3, 1, 9)
    with short_pools():
        whole, scaled = (
            CastleRegressorCV(search="fast", random_state=0).fit(X, y, sample_weight=w * times) for w in (1, 1.1)
        )
    linear = [model.search_results_.set_index("candidate").filter(like="linear", axis=0) for model in (whole, scaled)]
    # Copies and weights differ only in the folds' rows.
    np.testing.assert_allclose(*(frame["loss"].sort_index() for frame in linear), rtol=0.03)


def test_columns_that_are_all_constant_predict_the_mean(data: Any) -> None:
    X, y = data
    with short_pools(), pytest.warns(UserWarning, match="constant"):
        model = CastleRegressorCV(search="fast", random_state=0).fit(0 * X, y)
        classes = CastleClassifierCV(search="fast", random_state=0).fit(0 * X, y > 100)
    assert model.predict(X) == pytest.approx(y.mean(), rel=0.05)
    assert classes.predict_proba(X)[:, 1] == pytest.approx((y > 100).mean(), abs=0.05)


def test_a_refit_needs_columns_to_leave_out(data: Any) -> None:
    X, y = data
    used_all = PoolRun._selected

    def all_columns(self: PoolRun) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pooled, "selected_columns", lambda networks, _: into_targets(networks) > 0)
            return used_all(self)

    with short_pools(), pytest.MonkeyPatch.context() as patch, pytest.warns(UserWarning, match="constant"):
        patch.setattr(PoolRun, "_selected", all_columns)
        model = CastleRegressorCV(search="fast", random_state=0).fit(X.assign(flat=1.0), y)
    assert "refit" not in set(model.search_results_["stage"])


def test_best_with_a_splitter_trains_every_fold_twice(data: Any) -> None:
    with short_pools():
        model = CastleRegressorCV(search="best", cv=KFold(3), random_state=0).fit(*data)
    assert len(model.folds_) == 6
    np.testing.assert_array_equal(model.folds_[0][1], model.folds_[3][1])
    blend = model.model_.blend
    assert blend is not None
    first = blend.of_members(np.array([0, 3])).predict(model.model_.cells(read_columns(data[0])))[0]
    assert not np.array_equal(*first)


def test_without_castle_there_is_no_graph(data: Any) -> None:
    with short_pools():
        model = NetworkRegressorCV(search="fast", random_state=0).fit(*data)
    with pytest.raises(AttributeError, match="has no graph"):
        _ = model.graph_
    assert len(model.selected_features_) <= 5


def test_best_has_two_sets_of_folds(data: Any, model: CastleRegressorCV) -> None:
    with short_pools():
        best = CastleRegressorCV(search="best", random_state=0).fit(*data)
    assert len(best.folds_) == 10
    for half in (best.folds_[:5], best.folds_[5:]):
        np.testing.assert_array_equal(np.sort(np.concatenate([held for _, held in half])), np.arange(120))
    for one, other in zip(best.folds_[:5], model.folds_, strict=True):
        np.testing.assert_array_equal(one[1], other[1])


def test_classes_and_weights(data: Any) -> None:
    X, y = data
    classes = np.where(y > 140, "high", "low")
    weight = np.where(np.arange(120) % 3 == 0, 2.0, 1.0)
    with short_pools():
        model = CastleClassifierCV(search="fast", class_weight="balanced", random_state=0).fit(X, classes, weight)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert model.predict_set(X).any(axis=1).mean() > 0.8


def test_clearly_worse_needs_a_margin_and_agreement() -> None:
    best = np.array([0.5, 0.5, 0.5, 0.5])
    losses = np.array([best, best + 0.03, [0.9, 0.2, 0.8, 0.5], [0.6, 0.7, 0.6, 0.6], best + np.inf])
    # The last one has no finite loss yet, which it may still reach.
    np.testing.assert_array_equal(clearly_worse(losses), [False, False, False, True, False])
