"""The linear form against scikit-learn's estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, LogisticRegression

from castlereg.layout import EdgeRules
from castlereg.network import forward
from castlereg.search.linear import LinearForm, linear_forms, solve_linear
from castlereg.table.table import Table, standardize
from tests.training.cases import table

FOLDS = [(np.arange(90), np.arange(90, 120)), (np.arange(30, 120), np.arange(30))]


def standardized(data: Table, stack: object, fold: int, rows: np.ndarray) -> np.ndarray:
    by = stack.standardization.of_member(fold)  # type: ignore[attr-defined]
    return np.asarray(standardize(data.inputs[rows].astype(np.float64), by, data.layout))


@pytest.mark.parametrize("form", [LinearForm(0.03, 0.9), LinearForm(0.3, 0.1)])
def test_numbers_are_an_elastic_net(form: LinearForm) -> None:
    data = table()
    (stack,) = solve_linear(data, FOLDS, [form])
    for fold, (train, held) in enumerate(FOLDS):
        rows = standardized(data, stack, fold, train)
        net = ElasticNet(alpha=form.strength, l1_ratio=form.l1_share, fit_intercept=False, tol=1e-8)
        net.fit(rows[:, :4], rows[:, 4])
        np.testing.assert_allclose(stack.parameters.input_weights[fold, :4, 0, 0], net.coef_, atol=2e-3)
        left_out = standardized(data, stack, fold, held)
        error = np.square(left_out[:, :4] @ stack.parameters.input_weights[fold, :4, 0, 0] - left_out[:, 4]).mean()
        assert stack.validation_loss[fold] == pytest.approx(error, rel=1e-4)


@pytest.mark.parametrize("kind", ["binary", "categorical"])
def test_classes_are_a_logistic_regression(kind: str) -> None:
    data, form = table(kind=kind), LinearForm(0.01, 0.0)
    (stack,) = solve_linear(data, FOLDS, [form])
    train, held = FOLDS[0]
    rows = standardized(data, stack, 0, train)
    codes = data.inputs[train, 4:].argmax(axis=1) if kind == "categorical" else data.inputs[train, 4].astype(int)
    peer = LogisticRegression(C=1 / (form.strength * len(train)), tol=1e-8, max_iter=1000).fit(rows[:, :4], codes)
    network = stack.parameters._replace(
        input_weights=stack.parameters.input_weights[0], input_bias=stack.parameters.input_bias[0]
    )
    x = standardized(data, stack, 0, held)
    logits = np.asarray(forward(network, x.astype(np.float32)))[:, 0]  # type: ignore[arg-type]
    wanted = peer.decision_function(x[:, :4])
    shift = 0 if kind == "binary" else logits.mean(axis=1, keepdims=True) - wanted.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(logits[:, 0] if kind == "binary" else logits - shift, wanted, atol=0.03)


def test_a_class_without_training_rows_is_improbable() -> None:
    data = table(kind="categorical")
    without = np.flatnonzero(data.inputs[:, 4] == 0)
    (stack,) = solve_linear(data, [(without, np.arange(20))], [LinearForm(0.01, 0.0)])
    bias = stack.parameters.input_bias[0, 0]
    assert bias[0] == -10 and np.abs(bias[1:]).max() < 5


@pytest.mark.parametrize("only", [0, 1])
def test_a_fold_of_a_single_class_is_sure_of_it(only: int) -> None:
    data = table(kind="categorical")
    rows = np.flatnonzero(data.inputs[:, 4 + only] == 1)
    (stack,) = solve_linear(data, [(rows, np.arange(20))], [LinearForm(0.01, 0.0)])
    bias = stack.parameters.input_bias[0, 0]
    assert bias[only] == 10 and (np.delete(bias, only) == -10).all()


def test_forbidden_columns_have_no_weight() -> None:
    data = table()
    allowed = np.ones((5, 5), bool)
    allowed[0, 4] = False
    data = Table(data.inputs, data.layout, edges=EdgeRules(allowed, np.zeros((5, 5), bool)))
    for stack in solve_linear(data, FOLDS, linear_forms(data.layout)):
        assert not stack.parameters.input_weights[:, 0].any()
        assert not stack.parameters.input_weights[:, 4].any()
