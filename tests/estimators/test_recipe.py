"""The details of training."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from castlereg import NetworkRegressor, Recipe
from castlereg.network import initialize
from castlereg.search.recipe import PAPER, TrainingOptions
from castlereg.training import train


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, X[:, 0] + 0.1 * rng.normal(size=80)


def test_no_recipe_is_the_default_one(table: Any) -> None:
    models = [NetworkRegressor(recipe=recipe, max_epochs=3, random_state=0) for recipe in (None, Recipe())]
    first, second = (model.fit(*table).predict(table[0]) for model in models)
    np.testing.assert_array_equal(first, second)


def test_it_cannot_be_changed_but_replaced_compared_and_cloned() -> None:
    recipe = Recipe(scaling="robust", warmup=3)
    with pytest.raises(FrozenInstanceError):
        recipe.warmup = 4  # type: ignore[misc]
    assert replace(recipe, warmup=None) == Recipe(scaling="robust")
    assert clone(NetworkRegressor(recipe=recipe)).recipe == recipe


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scaling": "robst"}, "scaling='robst' is not one of 'standard', 'robust'; did you mean 'robust'"),
        ({"input_init": "large"}, "input_init='large' is not one of 'small', 'glorot'"),
        ({"validation_fraction": 0}, "validation_fraction=0 must be a fraction between 0 and 1"),
        ({"patience": True}, "patience=True must be a whole number"),
        ({"warmup": -1}, "warmup=-1 must be a whole number of at least 0"),
        ({"batches": "random"}, "batches='random' is not one of 'shuffle', 'independent'"),
    ],
)
def test_bad_details_raise_when_it_is_made(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recipe(**options)


@pytest.mark.parametrize(("fraction", "n_held_out"), [(0.1, 8), (0.4, 32)])
def test_the_share_of_validation_rows(
    table: Any, fraction: float, n_held_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[Any] = []

    def watched(rows: Any, members: Any, *arguments: Any, **options: Any) -> Any:
        trained.extend(members)
        return train(rows, members, *arguments, **options)

    monkeypatch.setattr("castlereg.search.candidates.train", watched)
    model = NetworkRegressor(recipe=Recipe(validation_fraction=fraction), n_members=2, max_epochs=1, random_state=0)
    model.fit(*table)
    assert [len(member.validation_rows) for member in trained] == [n_held_out] * 2
    assert [len(member.train_rows) for member in trained] == [80 - n_held_out] * 2


def test_warmup_epochs_count_for_nothing(table: Any) -> None:
    """Validation rows that contradict training are best at the first epoch that counts."""
    X, y = table
    options: dict[str, Any] = {"max_epochs": 12, "learning_rate": 0.01, "random_state": 0}
    lengths = []
    for warmup in (0, 5):
        model = NetworkRegressor(recipe=Recipe(warmup=warmup, patience=2), **options).fit(X, y, X_val=X, y_val=-y)
        lengths.append(len(model.history_))
        expected = model.history_["validation_loss"].iloc[warmup:].min()
        assert model.validation_loss_ == pytest.approx(expected, rel=1e-6)
    assert lengths[1] == lengths[0] + 5
    plan = TrainingOptions(max_epochs=5, recipe=Recipe(warmup=50)).plan((8, 8), 1e-3, 200, PAPER)
    assert (plan.max_epochs, plan.warmup) == (5, 4)


def test_independent_batches_are_other_batches(table: Any) -> None:
    X, y = table
    kinds: tuple[Any, ...] = ("shuffle", "independent")
    shuffled, independent = (
        NetworkRegressor(recipe=Recipe(batches=kind), max_epochs=3, random_state=0).fit(X, y).predict(X)
        for kind in kinds
    )
    assert not np.array_equal(shuffled, independent)


def test_a_function_may_draw_the_starting_weights(table: Any) -> None:
    def halved(layout: Any, sizes: Any, seed: Any, nodes: Any) -> Any:
        start = initialize(layout, sizes, seed, nodes=nodes)
        return start._replace(input_weights=start.input_weights / 2)

    starts = [
        NetworkRegressor(recipe=Recipe(input_init=start), max_epochs=1, learning_rate=1e-12, random_state=0)
        .fit(*table)
        .model_.networks.parameters.input_weights
        for start in ("small", halved)
    ]
    np.testing.assert_allclose(starts[1], np.asarray(starts[0]) / 2, rtol=1e-4, atol=1e-9)


def test_a_field_that_is_none_takes_the_value_of_the_search() -> None:
    assert Recipe(patience=3).filled(PAPER) == replace(PAPER, patience=3)
    assert Recipe().filled(PAPER) == PAPER
