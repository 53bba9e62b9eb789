"""Partial dependence, against scikit-learn's brute force and a plain mean."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import partial_dependence as by_scikit_learn

from castlereg import CastleClassifier, CastleMultiOutput, CastleRegressor, partial_dependence
from castlereg.causal.graph import CausalGraph

mpl.use("agg")


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=120), "b": rng.normal(size=120), "c": rng.choice(["x", "y"], 120)})
    return X, (2 * X["a"] + (X["c"] == "x") + 0.1 * rng.normal(size=120)).rename("t")


def test_numbers_are_those_of_scikit_learn(table: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = table
    model = CastleRegressor(max_epochs=10, random_state=0).fit(X, y)
    values = [-1.0, 0.5, 2.0]
    expected = by_scikit_learn(model, X, ["a"], custom_values={"a": np.array(values)}, method="brute", kind="average")
    np.testing.assert_allclose(partial_dependence(model, X, "a", values), expected["average"][0], rtol=1e-9)
    held = model.predict(X.assign(c="x")).mean()
    assert partial_dependence(model, X, "c", ["x"])[0] == pytest.approx(held)


def test_one_picture_has_all_three(table: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = table
    model = CastleRegressor(max_epochs=3, random_state=0).fit(X, y)
    edges = pd.DataFrame({"cause": ["a", "c"], "effect": ["t", "t"]})
    world = model.structural_model(CausalGraph.from_edges(edges, "t", [*X, "t"]), n_draws=2)
    for cause in ("a", "c"):
        effect = world.effect(cause, "t")
        ax = effect.plot(predicted=partial_dependence(model, X, cause, effect.values))
        labels = [text.get_text().split(":")[0] for text in ax.get_legend().get_texts()]
        assert sorted(labels) == ["associated", "caused", "predicted"]
    with pytest.raises(ValueError, match="predicted has 1 values, but the effect has"):
        effect.plot(predicted=np.zeros(1))


def test_classes_and_what_is_rejected(table: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = table
    high = np.where(y > 0, "high", "low")
    model = CastleClassifier(max_epochs=5, random_state=0).fit(X, high)
    likely = model.predict_proba(X.assign(a=1.0))[:, 0].mean()
    assert partial_dependence(model, X, "a", [1.0], level="high")[0] == pytest.approx(likely)
    with pytest.raises(ValueError, match="level='tall' is not one of the classes"):
        partial_dependence(model, X, "a", [1.0], level="tall")
    with pytest.raises(KeyError, match="X has no column 'A'; did you mean 'a'"):
        partial_dependence(model, X, "A", [1.0])
    with pytest.raises(ValueError, match="level='high' needs a model of classes"):
        partial_dependence(CastleRegressor(max_epochs=2, random_state=0).fit(X, y), X, "a", [1.0], level="high")
    both = CastleMultiOutput(max_epochs=2, random_state=0).fit(X, pd.DataFrame({"t": y, "u": -y}))
    with pytest.raises(ValueError, match="the model has 2 targets"):
        partial_dependence(both, X, "a", [1.0])
