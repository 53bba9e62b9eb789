"""Options: few, documented, cloned, searched, and never without effect."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from castlereg import (
    Castle,
    CastleClassifier,
    CastleRegressor,
    CastleRegressorCV,
    NetworkRegressorCV,
    Recipe,
    estimators,
)
from castlereg.paper import released_options
from castlereg.regularizers import L2

ALL = [getattr(estimators, name) for name in estimators.__all__]
OTHER_VALUES: dict[str, Any] = {
    **{"reg_beta": 0.5, "reg_lambda": 2.0, "reg_betas": (0.3,), "candidates": [[L2(0.1)]], "regularizers": [L2(0.1)]},
    **{"objective": "graph", "castle": Castle(sparsity="group"), "constraints": None, "recipe": Recipe(warmup=2)},
    **{"hidden_layer_sizes": (4,), "categorical_features": [0], "learning_rate": 0.1},
    **{"max_epochs": 3, "n_members": 2, "bootstrap": True, "random_state": 1, "verbose": True},
    **{"unusable_columns": "drop", "loss": "huber", "monotone": {0: 1}},
    **{"class_weight": "balanced", "cv": 3, "scoring": "r2", "search": "one_standard_error", "time_limit": 60},
}


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, X[:, 0] + 0.1 * rng.normal(size=60)


@pytest.mark.parametrize("kind", ALL)
def test_few_options_are_positional(kind: type[Any]) -> None:
    parameters = inspect.signature(kind).parameters.values()
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional in (["reg_beta", "reg_lambda"], ["regularizers"], ["reg_betas"], ["candidates"])


def described(kind: type[Any]) -> set[str]:
    """Return the options that a class's own docstring describes, each with a sentence."""
    parts = re.split(r"\n\n(?=\w+\n-{4,}\n)", inspect.getdoc(kind) or "")
    section = next((part for part in parts if part.startswith("Parameters\n")), "")
    entries = re.findall(r"^([\w, ]+) : .+\n((?:    .+\n?)+)", section, flags=re.M)
    return {name for names, text in entries if text.strip().endswith(".") for name in names.split(", ")}


@pytest.mark.parametrize("kind", ALL)
def test_every_option_is_documented(kind: type[Any]) -> None:
    """By the class itself, or by one that it refers to."""
    options = set(inspect.signature(kind).parameters)
    assert described(kind) <= options
    pending, read = [kind], set()
    documented: set[str] = set()
    while pending:
        current = pending.pop()
        read.add(current)
        documented |= described(current)
        summary = (inspect.getdoc(current) or "").split("\nParameters\n")[0].split("\nExamples\n")[0]
        named = {getattr(estimators, name) for name in re.findall(r":class:`(\w+)`", summary)}
        pending += named - read
    assert options <= documented


@pytest.mark.parametrize("kind", ALL)
def test_options_are_stored_cloned_and_set(kind: type[Any]) -> None:
    names = inspect.signature(kind).parameters
    given = {name: OTHER_VALUES[name] for name in names}
    model = kind(**given)
    assert model.get_params(deep=False) == given == {name: getattr(model, name) for name in names}
    assert clone(model).get_params(deep=False) == given
    assert kind().set_params(**given).get_params(deep=False) == given
    assert vars(kind()).keys() == set(names)  # a constructor stores its options, and nothing more


def test_options_differ_between_objects() -> None:
    one, other = CastleRegressor(0.1), CastleRegressor(0.2)
    assert (one.reg_beta, other.reg_beta, CastleRegressor().reg_beta) == (0.1, 0.2, 0.01)
    assert one != other and hash(one) != hash(other)  # estimators are compared by identity


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("reg_beta", [0.001, 10.0]),
        ("objective", ["prediction", "graph"]),
        ("castle", [None, Castle(reconstruction=False)]),
        ("recipe", [None, Recipe(input_init="glorot")]),
    ],
)
def test_grid_search_reaches(table: Any, name: str, values: list[Any]) -> None:
    model = CastleRegressor(hidden_layer_sizes=(4,), max_epochs=12, learning_rate=0.02, random_state=0)
    search = GridSearchCV(model, {name: values}, cv=2, error_score="raise").fit(*table)
    assert search.best_params_[name] in values
    assert len(set(search.cv_results_["mean_test_score"])) == 2


# --- options without effect ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            CastleRegressor(castle=Castle(0.5)),
            "castle has reg_beta=0.5, but CastleRegressor has reg_beta=0.01; set reg_beta of CastleRegressor",
        ),
        (
            CastleClassifier(castle=Castle(reg_lambda=3.0)),
            "castle has reg_lambda=3.0, but .* set reg_lambda of CastleClassifier instead",
        ),
        (
            CastleRegressor(castle=Castle(objective="graph")),
            "castle has objective='graph', but .* has objective='prediction'",
        ),
        (
            CastleRegressorCV((0.1,), castle=Castle(0.5)),
            "castle has reg_beta=0.5, which has no effect here: pass reg_betas",
        ),
    ],
)
def test_a_castle_that_contradicts_the_options_raises(table: Any, model: Any, message: str) -> None:
    X, y = table
    with pytest.raises(ValueError, match=message):
        model.fit(X, y > 0 if isinstance(model, CastleClassifier) else y)


def test_the_estimators_own_options_replace_the_defaults_of_castle(table: Any) -> None:
    options: dict[str, Any] = {"hidden_layer_sizes": (4,), "max_epochs": 3, "random_state": 0}
    X, y = table
    plain = CastleRegressor(0.3, 2.0, **options).fit(X, y).predict(X)
    for castle in (Castle(), Castle(0.3), Castle(0.3, 2.0)):
        np.testing.assert_array_equal(CastleRegressor(0.3, 2.0, castle=castle, **options).fit(X, y).predict(X), plain)


def test_a_subclass_of_castle_has_its_own_defaults(table: Any) -> None:
    model = CastleRegressor(**released_options(reg_beta=0.7), max_epochs=2, random_state=0).fit(*table)
    assert np.isfinite(model.history_["objective"]).all()


def test_strengths_of_castle_are_searched_with_every_beta(table: Any) -> None:
    castles = [Castle(reg_lambda=strength) for strength in (0.3, 3.0)]
    model = CastleRegressorCV((0.01, 0.1), castle=castles, cv=2, hidden_layer_sizes=(4,), max_epochs=2, random_state=0)
    tried = [(p["reg_beta"], p["reg_lambda"]) for p in model.fit(*table).cv_results_["params"]]
    assert tried == [(0.01, 0.3), (0.01, 3.0), (0.1, 0.3), (0.1, 3.0)]


@pytest.mark.parametrize("estimator", [CastleRegressorCV, NetworkRegressorCV])
def test_a_recipe_of_another_type_raises_and_says_what_it_must_be(estimator: Any) -> None:
    with pytest.raises(ValueError, match=r"recipe='fast' must be Recipe"):
        estimator(recipe="fast").fit(np.zeros((20, 2)), np.arange(20.0))
