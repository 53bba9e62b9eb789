"""Options: few, documented, cloned, searched, and never without effect."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
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
    EdgeConstraints,
    Recipe,
    estimators,
)
from castlereg.regularizers import L2

ALL = [getattr(estimators, name) for name in estimators.__all__]
OTHER_VALUES: dict[str, Any] = {
    **{"reg_beta": 0.5, "reg_lambda": 2.0, "reg_betas": (0.3,), "regularizers": [L2(0.1)]},
    **{"castle": Castle(sparsity="group"), "constraints": EdgeConstraints(forbidden=[("x0", "y")])},
    **{"recipe": Recipe(batch_size=7), "hidden_layer_sizes": (4,), "categorical_features": [2]},
    **{"learning_rate": 0.1, "max_epochs": 3, "n_members": 2, "bootstrap": True, "random_state": 1, "verbose": True},
    **{"loss": "huber", "monotone": {0: -1}, "class_weight": {0: 1, 1: 5}},
    **{"cv": 3, "scoring": "r2", "search": "paper"},
}


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(60, 2)), rng.integers(0, 3, 60)]
    return X, np.abs(X[:, 0]) + 0.3 * X[:, 2] + 0.1 * rng.normal(size=60)  # linear forms miss most of it


@pytest.mark.parametrize("kind", ALL)
def test_few_options_are_positional(kind: type[Any]) -> None:
    parameters = inspect.signature(kind).parameters.values()
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional in (["reg_beta", "reg_lambda"], ["regularizers"], ["reg_betas"])


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
        ("castle", [None, Castle(reconstruction=False)]),
        ("recipe", [None, Recipe(input_init="glorot")]),
    ],
)
def test_grid_search_reaches(table: Any, name: str, values: list[Any]) -> None:
    model = CastleRegressor(hidden_layer_sizes=(4,), max_epochs=12, learning_rate=0.02, random_state=0)
    search = GridSearchCV(model, {name: values}, cv=2, error_score="raise").fit(*table)
    assert search.best_params_[name] in values
    assert len(set(search.cv_results_["mean_test_score"])) == 2


# --- every option has an effect ------------------------------------------------------------------


BRIEF = {"max_epochs": 4, "learning_rate": 0.02, "random_state": 0}
LONG = {"max_epochs": 30, "learning_rate": 0.1}  # the validation loss rises again


def fitted(kind: type[Any], table: Any, **options: Any) -> Any:
    X, y = table
    is_search = "cv" in inspect.signature(kind).parameters
    return kind(**{**BRIEF, **({"cv": 2} if is_search else {}), **options}).fit(
        X, y if "loss" in inspect.signature(kind).parameters else (y > np.median(y)).astype(int)
    )


@pytest.fixture(scope="module")
def references(table: Any) -> dict[Any, Any]:
    return {}


def reference(kind: type[Any], table: Any, references: dict[Any, Any], **options: Any) -> Any:
    key = (kind, repr(options))
    if key not in references:
        references[key] = fitted(kind, table, **options)
    return references[key]


def outputs(model: Any, X: Any) -> Any:
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


WITHOUT_EFFECT_ON_PREDICTIONS = {"verbose", "scoring", "bootstrap"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [(k, n) for k in ALL for n in inspect.signature(k).parameters if n not in WITHOUT_EFFECT_ON_PREDICTIONS],
)
def test_every_option_changes_the_predictions(kind: type[Any], name: str, table: Any, references: Any) -> None:
    """Also in a pool, which is the default search."""
    model = fitted(kind, table, **{name: OTHER_VALUES[name]})
    before = reference(kind, table, references)
    assert not np.array_equal(outputs(model, table[0]), outputs(before, table[0]))


@pytest.mark.parametrize("kind", [k for k in ALL if "bootstrap" in inspect.signature(k).parameters])
def test_bootstrap_changes_the_rows(kind: type[Any], table: Any, references: Any) -> None:
    before = reference(kind, table, references, n_members=2)
    model = fitted(kind, table, n_members=2, bootstrap=True)
    assert not np.array_equal(outputs(model, table[0]), outputs(before, table[0]))


def test_a_scorer_changes_the_scores(table: Any, references: Any) -> None:
    for search in ("fast", "paper"):
        before = reference(CastleRegressorCV, table, references, search=search)
        model = fitted(CastleRegressorCV, table, search=search, scoring="neg_mean_absolute_error")
        assert not np.array_equal(model.cv_results_["mean_test_score"], before.cv_results_["mean_test_score"])


def test_verbose_shows_progress(table: Any, capfd: pytest.CaptureFixture[str]) -> None:
    for kind in (CastleRegressor, CastleRegressorCV):
        fitted(kind, table, verbose=True)
        assert "epoch" in capfd.readouterr().err
        fitted(kind, table)
        assert not capfd.readouterr().err


RECIPES = [
    *(Recipe(scaling="robust"), Recipe(input_init="glorot"), Recipe(patience=1), Recipe(warmup=29)),
    *(Recipe(batch_size=7), Recipe(batches="independent"), Recipe(schedule="cosine"), Recipe(activation="silu")),
    *(Recipe(averaging=0.5), Recipe(weight_decay=1.0), Recipe(embedding=2), Recipe(refit=True), Recipe(engine="jax")),
]
# Values that the stages of the pool have anyway, and their opposites.
IN_A_POOL = {"schedule": "constant", "refit": False}


@pytest.mark.parametrize(
    "recipe", RECIPES, ids=lambda r: next(f for f in r.__dataclass_fields__ if getattr(r, f) not in (None, "auto"))
)
def test_every_detail_of_a_recipe_has_an_effect_in_every_fit(recipe: Recipe, table: Any, references: Any) -> None:
    (name,) = [f for f in Recipe.__dataclass_fields__ if getattr(recipe, f) not in (None, "auto")]
    for search in (None, "paper", "fast"):
        kind: type[Any] = CastleRegressor if search is None else CastleRegressorCV
        options: dict[str, Any] = {**LONG, **({} if search is None else {"search": search})}
        used = Recipe(**{name: IN_A_POOL[name]}) if search == "fast" and name in IN_A_POOL else recipe
        if name == "batches":  # of a single batch there is only one kind
            options["recipe"], used = Recipe(batch_size=7), replace(used, batch_size=7)
        before, model = (
            reference(kind, table, references, **options),
            fitted(kind, table, **{**options, "recipe": used}),
        )
        if name == "engine":
            assert model.engine_ == "jax"
        elif name == "refit" and search == "fast":
            assert "refit" not in set(model.search_results_["stage"])
        elif name == "patience":
            assert len(model.history_) < len(before.history_)
        else:
            assert not np.array_equal(model.predict(table[0]), before.predict(table[0])), search


def test_grid_search_over_a_search_compares_like_with_like(table: Any) -> None:
    """Other epochs and learning rates are the same pool: the same candidates in the same stages."""
    grid = {"learning_rate": [1e-3, 2e-3], "max_epochs": [2, 5]}
    search = GridSearchCV(CastleRegressorCV(cv=2, random_state=0), grid, cv=2, error_score="raise").fit(*table)
    assert len(set(search.cv_results_["mean_test_score"])) == 4
    models = [clone(search.estimator).set_params(**params).fit(*table) for params in search.cv_results_["params"]]
    assert len({tuple(sorted(model.search_results_["candidate"])) for model in models}) == 1
    assert [int(model.history_["epoch"].max()) for model in models] == [2, 5, 2, 5]


def test_regularizers_are_in_every_network_of_a_pool(table: Any) -> None:
    model = CastleRegressorCV(regularizers=[L2(0.3)], cv=2, max_epochs=2, random_state=0).fit(*table)
    params = [
        p for p, stage in zip(model.cv_results_["params"], model.cv_results_["stage"], strict=True) if stage != "linear"
    ]
    assert len(params) >= 7 and all(p["L2.strength"] == 0.3 for p in params if "L2.strength" in p)
    assert "l2" in model.history_


# --- options without effect ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            CastleRegressor(castle=Castle(0.5)),
            "castle has reg_beta=0.5, but CastleRegressor has reg_beta=0.01: set reg_beta of CastleRegressor",
        ),
        (
            CastleClassifier(castle=Castle(reg_lambda=3.0)),
            "castle has reg_lambda=3.0, but .*: set reg_lambda of CastleClassifier instead",
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


def test_strengths_of_castle_are_searched_with_every_beta(table: Any) -> None:
    castles = [Castle(reg_lambda=strength) for strength in (0.3, 3.0)]
    model = CastleRegressorCV((0.01, 0.1), search="paper", castle=castles, cv=2, max_epochs=2, random_state=0)
    tried = [(p["reg_beta"], p["reg_lambda"]) for p in model.fit(*table).cv_results_["params"]]
    assert tried == [(0.01, 0.3), (0.01, 3.0), (0.1, 0.3), (0.1, 3.0)]


@pytest.mark.parametrize("estimator", [CastleRegressorCV, CastleRegressor])
def test_a_recipe_of_another_type_raises_and_says_what_it_must_be(estimator: Any) -> None:
    with pytest.raises(ValueError, match=r"recipe='fast' must be Recipe"):
        estimator(recipe="fast").fit(np.zeros((20, 2)), np.arange(20.0))
