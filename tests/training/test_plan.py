"""Phases: strengths and learning rates by epoch, epochs that do not count, and actions between phases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from castlereg.acyclicity.cut import find_cycle
from castlereg.layout import EdgeRules, Layout
from castlereg.network import edge_weights, squared_adjacency
from castlereg.regularizers import L2, Castle, Own, Regularizer
from castlereg.regularizers.protocol import Pass
from castlereg.training import Member, Phase, Plan, phases_for, sources, train
from castlereg.training.plan import cut_cycles
from tests.training.cases import assert_same, members, plain, table


@dataclass(frozen=True)
class Watched(Regularizer):
    """Adds nothing; logs its strength and the number of input weights that are not zero."""

    strength: float = 1.0

    terms = ("strength", "n_weights")

    def penalty(self, seen: Pass, own: Own) -> tuple[Array | float, dict[str, Array]]:
        weights, dtype = seen.parameters.input_weights, seen.losses.dtype
        return 0.0, {"strength": jnp.asarray(self.strength, dtype), "n_weights": jnp.sum(weights != 0).astype(dtype)}


def watched(*strengths: float) -> list[Member]:
    pairs = zip(strengths, members(len(strengths)), strict=True)
    return [replace(member, regularizers=(*member.regularizers, Watched(strength))) for strength, member in pairs]


# --- strengths and rates -------------------------------------------------------------------------


@pytest.mark.parametrize("epochs_per_call", [1, 2, 16])
def test_strengths_and_rates_follow_the_phases(epochs_per_call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_MOST_EPOCHS_PER_CALL", epochs_per_call)
    grow = Phase(4, counts=False, ramps=(("strength", 0.1, 10.0),))
    fade = Phase(3, ramps=(("strength", 2.0, 0.25),), learning_rate=lambda done: 1 - done)
    plan = Plan((4,), (grow, Phase(2), fade), learning_rate=0.01, patience=100)
    history = train(table(), watched(1.0, 7.0), plan).history
    factors = [*(0.1 * 100 ** (np.arange(4) / 4)), 1, 1, *(2.0 * 0.125 ** (np.arange(3) / 3))]
    for member, strength in enumerate((1.0, 7.0)):
        epochs = history[history["member"] == member]
        np.testing.assert_allclose(epochs["strength"], strength * np.array(factors), rtol=1e-5)
        np.testing.assert_allclose(epochs["learning_rate"], 0.01 * np.array([1] * 6 + [1, 2 / 3, 1 / 3]), rtol=1e-6)
        np.testing.assert_array_equal(epochs["epoch"], np.arange(1, 10))


def test_the_scheduled_strength_is_the_one_that_trains() -> None:
    """A constant ramp is the same as another strength, and a rate of zero leaves the weights as they are."""
    first, second = (replace(members(1)[0], regularizers=(L2(strength),)) for strength in (0.05, 0.5))
    ramped = train(table(), [first], Plan((5,), (Phase(6, ramps=(("strength", 10.0, 10.0),)),)))
    assert_same(ramped, train(table(), [second], Plan((5,), (Phase(6),))), rtol=1e-6)
    still = Plan((5,), (Phase(3), Phase(4, learning_rate=lambda done: 0.0)), patience=100)
    held, short = (train(table(), [first], plan) for plan in (still, Plan((5,), (Phase(3),))))
    losses = held.history["validation_loss"].to_numpy()
    np.testing.assert_array_equal(losses[3:], losses[2])
    np.testing.assert_array_equal(losses[:3], short.history["validation_loss"])


def test_phases_of_equal_settings_are_one_phase() -> None:
    whole = train(table(), members(2), Plan((5,), (Phase(9),)))
    assert_same(train(table(), members(2), Plan((5,), (Phase(2), Phase(0), Phase(4), Phase(3)))), whole)


# --- epochs that count ---------------------------------------------------------------------------


def test_epochs_that_do_not_count_are_not_chosen_and_cost_no_patience() -> None:
    harder = Phase(10, ramps=(("reg_beta", 100.0, 1000.0),))  # the validation loss can only rise
    plan = Plan((8,), (Phase(20, counts=False), harder), learning_rate=0.02, patience=3)
    result = train(table(), [replace(members(1)[0], regularizers=(Castle(0.01),))], plan)
    losses = result.history["validation_loss"].to_numpy()
    assert losses.argmin() < 20, "an epoch that does not count should be the best"
    best = 20 + losses[20:].argmin()
    assert result.best_epoch[0] == best + 1
    assert result.validation_loss[0] == losses[best]
    assert len(losses) == best + 1 + 3


# --- actions -------------------------------------------------------------------------------------


def without_column(column: int) -> Any:
    def action(weights: Any, layout: Layout, rules: EdgeRules | None, linear: bool) -> Any:
        kept = np.ones((layout.n_nodes, weights.shape[1]), bool)
        kept[column] = False
        return kept

    return action


@pytest.mark.parametrize("features_per_step", [None, 2])
@pytest.mark.parametrize("sizes", [(), (5, 5)])
def test_edges_go_at_the_end_of_a_phase_and_stay_away(sizes: tuple[int, ...], features_per_step: int | None) -> None:
    """The action's edges have no weights, and Adam's moments do not bring them back."""
    phases = (
        Phase(3, counts=False),
        Phase(4, counts=False, at_end=without_column(1)),
        Phase(0, counts=False, at_end=without_column(3)),
        Phase(5),
    )
    regularizers = (Castle(0.01, features_per_step=features_per_step), Watched())
    chosen = [replace(member, regularizers=regularizers) for member in members(3)]
    result = train(table(), chosen, Plan(sizes, phases, learning_rate=0.02, patience=100))
    weights = np.asarray(result.parameters.input_weights)
    assert not weights[:, [1, 3]].any()
    assert np.abs(weights[:, [0, 2, 4]]).max() > 0.1
    n_weights = result.history["n_weights"].to_numpy().reshape(3, 12)
    n_run = 5 if features_per_step is None else 3  # a sub-network has an input from each of the four others
    width = sizes[0] if sizes else 1
    np.testing.assert_array_equal(n_weights[:, :7], 4 * n_run * width)
    assert (n_weights[:, 7:] < 3 * n_run * width).all()


def test_columns_of_a_plain_network_can_be_dropped_between_phases() -> None:
    phases = (Phase(4, counts=False, at_end=without_column(0)), Phase(4))
    result = train(table(), plain(2), Plan((5,), phases, learning_rate=0.02))
    weights = np.asarray(result.parameters.input_weights)
    assert weights.shape == (2, 5, 1, 5)
    assert not weights[:, 0].any()
    assert weights[:, 1:4].all()


def test_a_plan_of_ones_own() -> None:
    """Train, drop the columns that the target hardly uses, then let the penalty fade."""
    dropped = []

    def drop_weak_columns(weights: Any, layout: Layout, rules: EdgeRules | None, linear: bool) -> Any:
        into_target = edge_weights(weights, layout, linear=linear)[:4, -1]
        weak = np.argsort(into_target)[:2]
        dropped.append(weak)
        kept = np.ones((5, 5), bool)
        kept[weak], kept[:, weak] = False, False
        return kept

    phases = (
        Phase(4, counts=False),
        Phase(6, counts=False, ramps=(("reg_beta", 1.0, 4.0),), at_end=drop_weak_columns),
        Phase(8, ramps=(("reg_lambda", 1.0, 0.01),)),
    )
    chosen = [replace(member, regularizers=(Castle(0.05, 0.5),)) for member in members(2)]
    result = train(table(), chosen, Plan((6, 6), phases, learning_rate=0.02, patience=100))
    assert len(dropped) == 2
    for weights, weak in zip(result.parameters.input_weights, dropped, strict=True):
        edges = np.asarray(squared_adjacency(weights, table().layout)) > 0
        assert not edges[weak].any()
        assert not edges[:, weak].any()
        assert edges[np.setdiff1d(np.arange(4), weak), 4].all()
        assert set(weak) == {2, 3}  # the target is made of the first two columns
    assert (result.best_epoch > 10).all()
    history = result.history
    reg_lambda = 0.5 * np.where(history["epoch"] <= 10, 1.0, 0.01 ** ((history["epoch"] - 11) / 8))
    reg_beta = 0.05 * np.where((history["epoch"] > 4) & (history["epoch"] <= 10), 4 ** ((history["epoch"] - 5) / 6), 1)
    dag = history["reconstruction"] + history["acyclicity"] + reg_beta * history["sparsity"]
    np.testing.assert_allclose(history["objective"], history["supervised"] + reg_lambda * dag, rtol=1e-4)


# --- the phases of the regularizers ----------------------------------------------------------------


def test_phases_of_the_graph_objective() -> None:
    grow, rest = phases_for([L2(), Castle(objective="graph")], 100)
    assert (grow.epochs, grow.counts, grow.at_end) == (60, False, cut_cycles)
    assert (rest.epochs, rest.counts, rest.at_end) == (40, True, None)
    assert [grow.factor("acyclicity_strength", done) for done in (0.0, 0.5, 1.0)] == pytest.approx([0.1, 1.0, 10.0])
    assert rest.factor("acyclicity_strength", 0.3) == pytest.approx(10.0)
    assert grow.factor("reg_beta", 0.3) == 1.0


def test_other_objectives_have_one_phase_that_counts() -> None:
    assert phases_for([Castle()], 30) == phases_for([], 30) == (Phase(30),)
    assert phases_for([Castle()], 30, warmup=10) == (Phase(10, counts=False), Phase(20))
    assert phases_for([], 5, warmup=50) == (Phase(4, counts=False), Phase(1))
    assert phases_for([], 1, warmup=50) == (Phase(1),)


def test_the_graph_objective_ends_without_cycles_and_batched_equals_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, of_stack = table(), members(3, objective="graph")
    plan = Plan((5, 5), phases_for(of_stack[0].regularizers, 20), patience=5)
    together = train(data, of_stack, plan)
    monkeypatch.setattr(sources, "_MOST_EPOCHS_PER_CALL", 8)  # the cut at epoch 12 ends a call early
    for i, member in enumerate(of_stack):
        assert_same(together.take(np.array([i])), train(data, [member], plan), rtol=1e-5)
        edges = squared_adjacency(np.asarray(together.parameters.input_weights)[i], data.layout) > 0
        assert find_cycle(np.asarray(edges)) is None
        h = together.history.loc[together.history["member"] == i, "acyclicity"].to_numpy()
        assert (h[:12] > 0).all()  # three fifths of the epochs
        assert (h[12:] == 0).all()
        assert together.best_epoch[i] > 12


@pytest.mark.parametrize("sizes", [(), (5,)])
@pytest.mark.parametrize("max_epochs", [1, 2, 3])
def test_few_epochs_are_enough_to_end_without_cycles(max_epochs: int, sizes: tuple[int, ...]) -> None:
    of_stack = members(2, objective="graph")
    result = train(table(), of_stack, Plan(sizes, phases_for(of_stack[0].regularizers, max_epochs)))
    for weights in result.parameters.input_weights:
        edges = np.asarray(squared_adjacency(weights, table().layout)) > 0
        assert edges.sum() == 10  # of every pair of nodes, one direction
        assert find_cycle(edges) is None


# --- plans that make no sense ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Phase(-1), "epochs=-1 must be a whole number of at least 0"),
        (lambda: Phase(3, ramps=(("reg_beta", 0.0, 1.0),)), "ramp of 'reg_beta' goes from 0.0 to 1.0; both must be"),
        (lambda: Phase(3, at_end=cut_cycles), "a phase with at_end cannot count: .* set counts=False"),
        (lambda: Plan((), ()), "phases that count must come last, and at least one is needed"),
        (lambda: Plan((), (Phase(3, counts=False),)), "phases that count must come last, and at least one is needed"),
        (lambda: Plan((), (Phase(3), Phase(3, counts=False))), "phases that count must come last"),
    ],
)
def test_bad_plans_are_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_ramp_of_a_strength_that_nobody_has_is_an_error() -> None:
    plan = Plan((4,), (Phase(3, ramps=(("reg_lamda", 1.0, 0.1),)),))
    with pytest.raises(ValueError, match=r"ramp of 'reg_lamda', but the strengths are .*reg_beta, reg_lambda"):
        train(table(), members(1), plan)
    with pytest.raises(ValueError, match="ramp of 'reg_lamda', but the strengths are none"):
        train(table(), plain(1), plan)
