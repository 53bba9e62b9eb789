"""Flat options reach the estimator that they mean."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from castlereg import CastleRegressor, Recipe
from castlereg.estimators.base import checked_plan
from castlereg.integrations.flat_options import estimator_options, usual_options
from castlereg.regularizers import L2, Dropout


def test_options_of_the_estimator_stay() -> None:
    flat = {"reg_beta": 0.3, "learning_rate": 0.01, "random_state": 5, "hidden_layer_sizes": (3,)}
    assert estimator_options(flat) == flat


def test_every_detail_of_training_can_be_given() -> None:
    details = asdict(Recipe(schedule="cosine", embedding=3, weight_decay=0.1, patience=7))
    options = estimator_options({"max_epochs": 2, **details})
    assert options == {"max_epochs": 2, "recipe": Recipe(**details)}


def test_layers_and_dropout() -> None:
    options = estimator_options({"width": 16, "depth": 3, "dropout": 0.25, "regularizers": (L2(0.1),)})
    assert options == {"hidden_layer_sizes": (16, 16, 16), "regularizers": (L2(0.1), Dropout(0.25))}
    assert estimator_options({"width": 16, "dropout": 0}) == {"hidden_layer_sizes": (16, 16)}
    assert estimator_options({"width": 16, "depth": 0}) == {"hidden_layer_sizes": ()}


def test_depth_without_width_raises() -> None:
    with pytest.raises(ValueError, match="depth=3 needs width"):
        estimator_options({"depth": 3})


def test_an_unknown_option_raises() -> None:
    with pytest.raises(TypeError, match="reg_betta"):
        CastleRegressor(**estimator_options({"reg_betta": 0.1}))


@pytest.mark.parametrize("n_rows", [100, 5_000, 50_000])
def test_usual_options_are_valid_and_long_tables_get_fewer_epochs(n_rows: int) -> None:
    plan, longer = (
        checked_plan(CastleRegressor(**estimator_options(usual_options(n))), n_features=5)
        for n in (n_rows, 10 * n_rows)
    )
    assert plan.hidden_layer_sizes == (32, 32)
    assert plan.batch_size <= longer.batch_size
    assert plan.max_epochs >= longer.max_epochs
