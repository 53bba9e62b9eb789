"""One function behind every fit: plain, cross-validated and from a file; the same request gives the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

from castlereg import CastleRegressor, CastleRegressorCV
from castlereg.fitted import FittedModel
from castlereg.layout import EdgeRules
from castlereg.regularizers import L2, Castle, Dropout
from castlereg.search import CrossValidation, FitRequest, fit
from castlereg.search.file_data import FileData
from castlereg.search.fit import TableData
from castlereg.table.reading import read_columns
from castlereg.table.rows import Rows
from castlereg.table.targets import ClassTarget
from castlereg.training import Phase, Plan

PLAN = Plan((8, 8), (Phase(4),))
CASTLE = (Castle(0.01),)


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(90, 3)), columns=list("abc"))
    return table.assign(y=table["a"] - table["b"] + 0.1 * rng.normal(size=90))


def rows_of(table: pd.DataFrame) -> Rows:
    return Rows(read_columns(table[["a", "b", "c"]]), (table["y"].to_numpy(),))


def in_memory(held_out: int = 0) -> TableData:
    validation = rows_of(frame()[:held_out]) if held_out else None
    return TableData(rows_of(frame()[held_out:]), validation, ["a", "b", "c", "y"], ["numbers"], [False] * 3)


def request(**options: Any) -> FitRequest:
    defaults = {"data": in_memory(), "plan": PLAN, "candidates": [CASTLE], "seed": np.random.SeedSequence(0)}
    return FitRequest(**(defaults | options))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    frame().to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def assert_same_bits(one: FittedModel, other: FittedModel) -> None:
    jax.tree.map(np.testing.assert_array_equal, one.networks.parameters, other.networks.parameters)
    pd.testing.assert_frame_equal(one.history, other.history)
    assert one.validation_loss == other.validation_loss
    assert one.graph is not None and other.graph is not None
    np.testing.assert_array_equal(one.graph.learned_array, other.graph.learned_array)
    assert one.graph.threshold == other.graph.threshold


@pytest.mark.parametrize("how", ["plain", "members", "validation rows", "folds", "file"])
def test_the_same_request_gives_the_same_bits(how: str, path: Path) -> None:
    options: dict[str, Any] = {
        "plain": {},
        "members": {"n_members": 3, "bootstrap": True},
        "validation rows": {"data": in_memory(20)},
        "folds": {"candidates": [CASTLE, (Castle(0.1),)], "cross_validation": CrossValidation(3, frame()["y"])},
        "file": {"data": FileData.opened(path, "y", None, None, target_kind="numbers")},
    }[how]
    asked = request(**options)
    assert_same_bits(fit(asked), fit(asked))
    other = fit(replace(asked, seed=np.random.SeedSequence(1)))
    assert not np.array_equal(other.networks.parameters.input_weights, fit(asked).networks.parameters.input_weights)


def test_a_plain_fit_is_the_estimators() -> None:
    estimator = CastleRegressor(0.01, hidden_layer_sizes=(8, 8), max_epochs=4, random_state=0)
    estimator.fit(frame()[["a", "b", "c"]], frame()["y"])
    assert_same_bits(fit(request()), estimator.model_)
    model = fit(request())
    assert model.folds is None
    assert model.networks.n_members == 1


def test_a_cross_validated_fit_is_the_estimators_and_leaves_a_book() -> None:
    betas = (0.01, 0.1)
    estimator = CastleRegressorCV(betas, cv=3, hidden_layer_sizes=(8, 8), max_epochs=4, random_state=0)
    estimator.fit(frame()[["a", "b", "c"]], frame()["y"])
    rules = CrossValidation(3, frame()["y"])
    model = fit(request(candidates=[(Castle(beta),) for beta in betas], cross_validation=rules))
    assert_same_bits(model, estimator.model_)
    assert model.folds is not None
    assert model.folds.seeds == estimator.fold_seeds_
    assert model.folds.regularizers == (Castle(betas[model.folds.best]),)


def test_a_score_may_choose_and_sees_the_users_rows() -> None:
    splitter = KFold(3)
    asked: list[np.ndarray] = []

    def against_the_loss(model: FittedModel, rows: np.ndarray) -> float:
        asked.append(rows)
        assert model.networks.n_members == 1
        return model.validation_loss

    rules = CrossValidation(splitter, frame()["y"], score=against_the_loss)
    model = fit(request(candidates=[CASTLE, (Castle(100.0),)], cross_validation=rules))
    assert model.folds is not None
    losses = model.folds.results["mean_validation_loss"]
    assert model.folds.best == np.argmax(losses)
    np.testing.assert_allclose(model.folds.results["mean_test_score"], losses, rtol=1e-6)
    for rows, (_, held) in zip(asked, [*splitter.split(frame())] * 2, strict=True):
        np.testing.assert_array_equal(rows, held)


def test_one_standard_error_chooses_the_strongest_that_is_as_good() -> None:
    candidates = [(L2(1e-7),), (L2(2e-7),), (L2(1e-8),)]
    for one_standard_error, expected in ((True, [1]), (False, [0, 1, 2])):
        rules = CrossValidation(3, frame()["y"], one_standard_error=one_standard_error)
        model = fit(request(candidates=candidates, cross_validation=rules))
        assert model.folds is not None
        assert model.folds.best in expected


def test_a_file_is_fitted_as_a_table_is(path: Path) -> None:
    data = FileData.opened(path, "y", None, ["a", "b"], target_kind="numbers")
    model = fit(request(data=data, plan=replace(PLAN, phases=(Phase(30),), learning_rate=0.01), n_members=2))
    assert [column.name for column in model.preprocessing.schema] == ["a", "b"]
    assert model.networks.n_members == 2
    assert model.graph is not None
    assert model.graph.nodes == ["a", "b", "y"]
    (predicted,) = model.predict(read_columns(frame()[["a", "b"]]))
    assert np.corrcoef(predicted, frame()["y"])[0, 1] > 0.95


@pytest.mark.parametrize("classes", [list("12A"), list("A12")])
def test_classes_that_become_text_in_a_later_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, classes: list[str]
) -> None:
    monkeypatch.setattr("castlereg.search.file_data._READ_ROWS", 10)
    table = frame()[["a"]].head(30).assign(y=np.repeat(classes, 10))
    table.to_csv(tmp_path / "t.csv", index=False)
    data = FileData.opened(tmp_path / "t.csv", "y", None, None, target_kind="classes")
    with data.prepared(request(data=data)) as rows:
        (target,) = rows.preprocessing.targets
    assert isinstance(target, ClassTarget)
    assert target.classes.tolist() == ["1", "2", "A"]


def test_without_all_sub_networks_there_is_no_graph() -> None:
    model = fit(request(candidates=[(Dropout(0.1),)]))
    assert model.graph is None
    assert not model.networks.has_all_nodes


def test_regularizers_and_edges_are_checked_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise AssertionError("training began")

    monkeypatch.setattr("castlereg.search.grid.train", fail)
    with pytest.raises(ValueError, match="Dropout acts on hidden layers"):
        fit(request(plan=replace(PLAN, hidden_layer_sizes=()), candidates=[(Dropout(),)]))
    constant = replace(in_memory(), rows=rows_of(frame().assign(c=1.0)))
    required = np.zeros((4, 4), bool)
    required[2, 3] = True
    with (
        pytest.warns(UserWarning, match="constant columns"),
        pytest.raises(ValueError, match="an edge of 'c' is required, but the column is constant"),
    ):
        fit(request(data=constant, edges=EdgeRules(np.ones((4, 4), bool), required)))
