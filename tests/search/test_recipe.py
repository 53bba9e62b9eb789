"""The stages of searches: what a pool consists of, and that the user's options hold in all of it."""

from __future__ import annotations

from typing import Any

import pytest

from castlereg.layout import Layout, Node
from castlereg.regularizers import L2, Castle, Dropout
from castlereg.regularizers.castle import castle_of
from castlereg.search.candidates import NetworkStage
from castlereg.search.recipe import Recipe, TrainingOptions, paper_grid, pool
from castlereg.target_losses import Huber

OPTIONS = TrainingOptions(
    hidden_layer_sizes=(5,),
    learning_rate=0.5,
    max_epochs=7,
    recipe=Recipe(patience=3, batch_size=9, embedding=0, schedule="constant"),
    castles=(Castle(reg_lambda=2.0), Castle(reg_lambda=3.0)),
    reg_betas=(0.2, 0.4),
    regularizers=(L2(0.3), Dropout(0.7)),
)


def layout(n_features: int, **target: Any) -> Layout:
    return Layout((*[Node()] * n_features, Node(target=True, **target)))


def networks(stages: list[Any]) -> list[NetworkStage]:
    return [stage for stage in stages if isinstance(stage, NetworkStage)]


def test_wide_tables_have_smaller_networks() -> None:
    narrow, wide = (networks(pool(TrainingOptions(), layout(d), 500)) for d in (10, 300))
    assert [stage.name for stage in narrow] == ["CASTLE", "embedded", "embedded, sparse", "refit"]
    assert [stage.name for stage in wide] == ["CASTLE", "wide", "wide, sparse", "refit"]
    assert castle_of(wide[0].candidates[0]).features_per_step == 8  # type: ignore[union-attr]
    assert wide[1].plan.embedding == 0 and wide[1].plan.max_epochs < narrow[1].plan.max_epochs
    assert [stage.refit for stage in wide] == [False, False, False, True]


@pytest.mark.parametrize("stages", [pool(OPTIONS, layout(10), 500), paper_grid(OPTIONS, layout(10))])
def test_options_hold_in_every_stage(stages: list[Any]) -> None:
    for stage in networks(stages):
        plan = stage.plan
        assert (plan.hidden_layer_sizes, plan.learning_rate, plan.max_epochs) == ((5,), 0.5, 7)
        assert (plan.patience, plan.batch_size, plan.embedding) == (3, 9, 0)
        assert plan.phases[-1].learning_rate is None  # constant
        assert all({L2(0.3), Dropout(0.7)} < set(candidate) for candidate in stage.candidates)
    castles = [castle_of(candidate) for candidate in networks(stages)[0].candidates]
    assert {(c.reg_beta, c.reg_lambda) for c in castles if c} == {(b, r) for b in (0.2, 0.4) for r in (2.0, 3.0)}


def test_linear_forms_are_left_out_where_they_would_break_a_promise() -> None:
    assert pool(TrainingOptions(), layout(3), 500)[0].name == "linear"
    for other in (layout(3, loss=Huber()), Layout((Node(monotone=1), Node(target=True)))):
        assert pool(TrainingOptions(), other, 500)[0].name == "CASTLE"


def test_a_refit_is_the_users_choice() -> None:
    for refit, in_pool, in_grid in ((None, True, False), (True, True, True), (False, False, False)):
        options = TrainingOptions(recipe=Recipe(refit=refit))
        found = [
            any(stage.refit for stage in make)
            for make in (pool(options, layout(3), 99), paper_grid(options, layout(3)))
        ]
        assert found == [in_pool, in_grid]
