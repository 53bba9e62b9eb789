"""Permutation importance: the closed form of a linear world, scikit-learn's function, odd columns and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge

import castlereg
from castlereg import CastleMultiOutput, CastleRegressor, NetworkClassifier, explain
from tests.explanation.conftest import QUICK, linear_table, mixed_table


def test_of_a_linear_world_they_have_a_closed_form(linear_model: Any) -> None:
    """Permuting a column raises the squared error by twice the square of its coefficient."""
    X, y = linear_table(5000, seed=1)
    explanation = explain(linear_model, X, y)
    a, b, noise = explanation.increases.mean(axis=1) * y.var()
    assert a == pytest.approx(2 * 2**2, rel=0.06)
    assert b == pytest.approx(2 * 1**2, rel=0.06)
    assert abs(noise) < 0.02
    np.testing.assert_allclose(explanation.importances, [1.6, 0.4, 0], atol=0.08)
    assert explanation.loss == pytest.approx(1 - linear_model.score(X, y))


def test_scikit_learn_measures_the_same(linear_model: Any) -> None:
    X, y = linear_table(300, seed=2)
    ours = explain(linear_model, X, y, n_repeats=4, random_state=3)
    seed = int(np.random.SeedSequence(3).generate_state(1)[0])
    theirs = permutation_importance(linear_model, X, y, scoring="r2", n_repeats=4, random_state=seed)
    np.testing.assert_allclose(ours.increases, theirs.importances, atol=1e-9)


def test_the_same_seed_gives_the_same_bits(linear_model: Any) -> None:
    X, y = linear_table(100)
    state = np.random.get_state()[1].copy()  # type: ignore[union-attr, index]
    first, again, other = (explain(linear_model, X, y, random_state=seed).increases for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # type: ignore[index]


def test_text_dates_and_missing_values_are_permuted_as_columns() -> None:
    X, targets = mixed_table(400)
    model = CastleMultiOutput(**QUICK).fit(X, targets)
    frame = explain(model, X, targets).to_frame()
    assert set(frame["column"][:2]) == {"city", "tiny"}
    assert list(frame.columns) == ["column", "importance", "std", "loss_increase"]
    assert (frame["loss_increase"].diff()[1:] <= 0).all()
    classifier = NetworkClassifier(**QUICK).fit(X, targets["kind"])
    assert explain(classifier, X, targets["kind"]).importances.argmax() in (0, 3)


def test_polars_arrays_and_loaded_models_are_explained_alike(linear_model: Any, tmp_path: Path) -> None:
    X, y = linear_table(80)
    castlereg.save(linear_model, tmp_path / "model.castle")
    expected = explain(linear_model, X, y).increases
    np.testing.assert_array_equal(explain(linear_model, pl.DataFrame(X.to_dict("list")), y).increases, expected)
    np.testing.assert_array_equal(explain(castlereg.load(tmp_path / "model.castle"), X, y).increases, expected)


def test_rows_without_a_target_are_left_out(linear_model: Any) -> None:
    X, y = linear_table(80)
    missing = pd.Series(y)
    missing[:30] = np.nan
    np.testing.assert_array_equal(
        explain(linear_model, X, missing).increases, explain(linear_model, X[30:], y[30:]).increases
    )
    with pytest.raises(ValueError, match="every row of y has a missing value"):
        explain(linear_model, X, np.full(80, np.nan))


def test_a_model_that_explains_nothing_of_the_rows_has_zeros(linear_model: Any) -> None:
    X, y = linear_table(50)
    explanation = explain(linear_model, X, -y)
    assert explanation.loss > 1
    np.testing.assert_array_equal(explanation.importances, 0)
    assert explanation.increases.any()


def test_it_is_drawn_and_printed(linear_model: Any) -> None:
    mpl.use("agg")
    explanation = explain(linear_model, *linear_table(60))
    ax = explanation.plot(most=2)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], explanation.importances[:2])
    assert ax.get_title(loc="right") == "the first 2 of 3 columns"
    _, given = plt.subplots()
    assert explanation.plot(given) is given
    plt.close("all")
    assert str(explanation).splitlines()[1].split()[0] == "a"


def test_errors_say_what_is_wrong(linear_model: Any) -> None:
    X, y = linear_table(20)
    with pytest.raises(ValueError, match="y is missing"):
        explain(linear_model, X)
    with pytest.raises(ValueError, match="background has no effect"):
        explain(linear_model, X, y, background=10)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="method='lime'"):
        explain(linear_model, X, y, method="lime")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="n_repeats=0"):
        explain(linear_model, X, y, n_repeats=0)
    with pytest.raises(TypeError, match="Ridge is not an estimator of castlereg"):
        explain(Ridge().fit(X, y), X, y)
    with pytest.raises(NotFittedError):
        explain(CastleRegressor(), X, y)
