"""Stages of candidates: the same as one by one, in parts, interrupted; and linear forms against scikit-learn's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, LogisticRegression

from castlereg.layout import EdgeRules, Layout, Node
from castlereg.network import forward, initialize
from castlereg.regularizers import L2, Castle, Dropout
from castlereg.search import candidates
from castlereg.search.candidates import (
    LinearStage,
    NetworkStage,
    Result,
    _clearly_worse,
    _free_memory,
    _member_bytes,
    strengths_of,
)
from castlereg.table.encoding import Encoded, standardize
from castlereg.training import Control, Phase, Plan, train
from tests.training.cases import assert_same, table
from tests.training.test_callbacks import Notes

PLAN = Plan((4,), (Phase(3),))
GRID = tuple((Castle(beta),) for beta in (0.01, 0.1, 1.0))
SEEDS = [np.random.SeedSequence(i) for i in range(3)]
FOLDS = [(np.delete(np.arange(60), np.arange(k, 60, 3)), np.arange(k, 60, 3)) for k in range(3)]
DATA = table(60, 3)


def trained(
    of: tuple[Any, ...] = GRID, data: Encoded = DATA, control: Control = Control(), **options: Any
) -> list[Result]:
    return NetworkStage("grid", PLAN, of, **options).train(data, FOLDS, SEEDS, control)


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set the number of networks that fit into memory together."""

    def set_most(n: int) -> None:
        size = _member_bytes(DATA.layout, 60, (4,), GRID[0])
        monkeypatch.setattr(candidates, "_free_memory", lambda: 2 * n * size)  # half of which may be used

    return set_most


@pytest.mark.optimized
@pytest.mark.parametrize("n", [1, 2, 4, 100])
def test_parts_change_nothing(n: int, most: Any) -> None:
    whole = trained()
    most(n)
    for part, of_whole in zip(trained(), whole, strict=True):
        assert part[:2] == of_whole[:2]
        assert_same(part.stack, of_whole.stack)
        np.testing.assert_array_equal(part.stack.history, of_whole.stack.history)


def test_candidates_of_different_kinds_are_trained_side_by_side() -> None:
    """With all sub-networks or only the target's."""
    mixed = ((), (L2(0.1),), (Castle(0.1),), (Dropout(0.2),), (L2(0.01),))
    together = trained(mixed)
    assert [result.regularizers for result in together] == list(mixed)
    for result, candidate in zip(together, mixed, strict=True):
        (alone,) = trained((candidate,))
        assert_same(result.stack, alone.stack)
        assert result.stack.validation_loss.shape == (3,)
    assert [result.stack.parameters.input_weights.shape[2] for result in together] == [1, 1, 4, 1, 1]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_folds_that_failed_are_known() -> None:
    """A value that only the second fold holds out is too large for float32 once it is standardized."""
    inputs = DATA.inputs.copy()
    inputs[FOLDS[1][1][0], 0] = 1e38
    (result,) = trained(((Castle(),),), Encoded(inputs, DATA.layout))
    np.testing.assert_array_equal(np.isfinite(result.stack.validation_loss), [True, False, True])


def test_an_interrupted_stage_keeps_what_is_done(most: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def interrupted(*arguments: Any) -> Any:
        calls.append(arguments)
        return replace(train(*arguments), interrupted=len(calls) == 2)

    monkeypatch.setattr(candidates, "train", interrupted)
    most(3)
    with pytest.warns(UserWarning, match="interrupted: 2 of 3 candidates were trained"):
        results = trained(control=Control(on_interrupt="keep"))
    assert [result.regularizers for result in results] == list(GRID[:2])
    assert len(calls) == 2


@pytest.mark.parametrize("at", [1, 3])
def test_ctrl_c_in_the_first_epoch_of_a_part_keeps_the_parts_before(
    at: int, most: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def interrupted(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == at:
            raise KeyboardInterrupt
        return train(*arguments)

    monkeypatch.setattr(candidates, "train", interrupted)
    most(3)
    keep = Control(on_interrupt="keep")
    if at == 1:
        with pytest.raises(KeyboardInterrupt, match="before any candidate was trained on all folds"):
            trained(control=keep)
        return
    with pytest.warns(UserWarning, match="interrupted: 2 of 3 candidates were trained"):
        assert len(trained(control=keep)) == 2
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        trained()


def test_callbacks_know_the_stage_and_the_networks(most: Any) -> None:
    notes = Notes()
    most(5)
    trained(control=Control((notes,)))
    seen = {epoch.stage: list(epoch.members) for epoch in notes.epochs}
    names = [f"reg_beta={beta}, fold {fold}" for beta in ("0.01", "0.1", "1") for fold in range(3)]
    assert seen == {"grid, part 1 of 2": names[:5], "grid, part 2 of 2": names[5:]}


def test_strengths_are_named() -> None:
    strengths = {"reg_beta": 0.1, "reg_lambda": 0.5, "Dropout.rate": 0.3}
    assert strengths_of([Castle(0.1, 0.5), Dropout(0.3)]) == strengths
    assert strengths_of([]) == {}


def test_clearly_worse_needs_a_margin_and_agreement() -> None:
    best = np.array([0.5, 0.5, 0.5, 0.5])
    losses = np.array([best, best + 0.03, [0.9, 0.2, 0.8, 0.5], [0.6, 0.7, 0.6, 0.6], best + np.inf])
    # The last one has no finite loss yet, which it may still reach.
    np.testing.assert_array_equal(_clearly_worse(losses), [False, False, False, True, False])


def test_halving_stops_clearly_worse_candidates_on_all_folds() -> None:
    hopeless, good = (Castle(100.0, acyclicity=None),), (Castle(0.001, acyclicity=None),)
    of, plan = table(120), Plan((8,), (Phase(40),), learning_rate=0.02, patience=100)
    folds = [(np.delete(np.arange(120), np.arange(k, 120, 3)), np.arange(k, 120, 3)) for k in range(3)]
    results = NetworkStage("pool", plan, (hopeless, good), halving=True).train(of, folds, SEEDS, Control())
    epochs = [result.stack.history.groupby("member")["epoch"].max().to_list() for result in results]
    assert epochs == [[10] * 3, [40] * 3]


# --- memory --------------------------------------------------------------------------------------


def test_parts_are_as_large_as_memory_allows_for_each_kind_of_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """CASTLE's networks are larger than plain ones, and neither decides for the other."""
    data = table(60, 30)
    castle, plain = (_member_bytes(data.layout, 60, (4,), chosen) for chosen in ([Castle()], []))
    assert castle > 3 * plain
    monkeypatch.setattr(candidates, "_free_memory", lambda: 4 * castle)
    sizes = []

    def counted(rows: Any, members: Any, *arguments: Any) -> Any:
        sizes.append((len(members[0].regularizers), len(members)))
        return train(rows, members, *arguments)

    monkeypatch.setattr(candidates, "train", counted)
    for mixed in (((), (Castle(0.1),), (Castle(1.0),)), ((Castle(0.1),), (), (Castle(1.0),))):
        sizes.clear()
        trained(mixed, data)
        assert sorted(sizes) == [(0, 3), (1, 2), (1, 2), (1, 2)]


@pytest.mark.parametrize("sizes", [(4,), (5, 3), ()])
def test_the_memory_of_a_network_includes_its_weights(sizes: tuple[int, ...]) -> None:
    layout = Layout((Node(), Node("categorical", 3), Node(target=True)))
    weights = sum(leaf.size for leaf in jax.tree.leaves(initialize(layout, sizes, seed=0)))
    assert 7 * 4 * weights < _member_bytes(layout, 1, sizes, [Castle()]) < 10 * 4 * weights + 1000
    assert _free_memory() > 0


# --- linear forms --------------------------------------------------------------------------------

HALVES = [(np.arange(90), np.arange(90, 120)), (np.arange(30, 120), np.arange(30))]


def solved(data: Encoded, folds: Any = HALVES) -> dict[str, Any]:
    """Return the stack of every form by its name."""
    return {name: stack for name, _, stack in LinearStage().train(data, folds, [], Control())}


def standardized(data: Encoded, stack: Any, fold: int, rows: np.ndarray) -> np.ndarray:
    return np.asarray(standardize(data.inputs[rows].astype(np.float64), stack.standardization.take(fold), data.layout))


@pytest.mark.parametrize(("strength", "share"), [(0.03, 0.9), (0.3, 0.1)])
def test_numbers_are_an_elastic_net(strength: float, share: float) -> None:
    data = table()
    stack = solved(data)[f"linear, strength {strength}, l1 share {share}"]
    for fold, (rows_of_fold, held) in enumerate(HALVES):
        rows = standardized(data, stack, fold, rows_of_fold)
        net = ElasticNet(alpha=strength, l1_ratio=share, fit_intercept=False, tol=1e-8).fit(rows[:, :4], rows[:, 4])
        np.testing.assert_allclose(stack.parameters.input_weights[fold, :4, 0, 0], net.coef_, atol=2e-3)
        left_out = standardized(data, stack, fold, held)
        error = np.square(left_out[:, :4] @ stack.parameters.input_weights[fold, :4, 0, 0] - left_out[:, 4]).mean()
        assert stack.validation_loss[fold] == pytest.approx(error, rel=1e-4)


@pytest.mark.parametrize("kind", ["binary", "categorical"])
def test_classes_are_a_logistic_regression(kind: str) -> None:
    data = table(kind=kind)
    stack = solved(data)["linear, strength 0.01, l1 share 0"]
    rows_of_fold, held = HALVES[0]
    rows = standardized(data, stack, 0, rows_of_fold)
    codes = data.inputs[rows_of_fold, 4:]
    codes = codes.argmax(axis=1) if kind == "categorical" else codes[:, 0].astype(int)
    peer = LogisticRegression(C=1 / (0.01 * len(rows)), tol=1e-8, max_iter=1000).fit(rows[:, :4], codes)
    network = jax.tree.map(lambda a: a[0], stack.parameters)
    x = standardized(data, stack, 0, held)
    logits = np.asarray(forward(network, x.astype(np.float32)))[:, 0]  # type: ignore[arg-type]
    wanted = peer.decision_function(x[:, :4])
    shift = 0 if kind == "binary" else logits.mean(axis=1, keepdims=True) - wanted.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(logits[:, 0] if kind == "binary" else logits - shift, wanted, atol=0.03)


def test_a_class_without_training_rows_is_improbable() -> None:
    data = table(kind="categorical")
    without = np.flatnonzero(data.inputs[:, 4] == 0)
    stack = solved(data, [(without, np.arange(20))])["linear, strength 0.01, l1 share 0"]
    bias = stack.parameters.input_bias[0, 0]
    assert bias[0] == -10 and np.abs(bias[1:]).max() < 5


@pytest.mark.parametrize("only", [0, 1])
def test_a_fold_of_a_single_class_is_sure_of_it(only: int) -> None:
    data = table(kind="categorical")
    rows = np.flatnonzero(data.inputs[:, 4 + only] == 1)
    stack = solved(data, [(rows, np.arange(20))])["linear, strength 0.01, l1 share 0"]
    bias = stack.parameters.input_bias[0, 0]
    assert bias[only] == 10 and (np.delete(bias, only) == -10).all()


def test_forbidden_columns_have_no_weight() -> None:
    data = table()
    allowed = np.ones((5, 5), bool)
    allowed[0, 4] = False
    data = Encoded(data.inputs, data.layout, edges=EdgeRules(allowed, np.zeros((5, 5), bool)))
    for stack in solved(data).values():
        assert not stack.parameters.input_weights[:, 0].any()
        assert not stack.parameters.input_weights[:, 4].any()
