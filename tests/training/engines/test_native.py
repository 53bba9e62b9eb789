"""The native engine against JAX, finite differences and itself; bad calls and Ctrl-C."""

from __future__ import annotations

import _thread
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import Phase as Part
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from castlereg.layout import EdgeRules, Layout, Node
from castlereg.losses import Huber, Poisson, Quantiles
from castlereg.regularizers import (
    L1,
    L2,
    Autoencoder,
    BatchNorm,
    Castle,
    Corruption,
    Dropout,
    InputNoise,
    MixUp,
    Regularizer,
)
from castlereg.table.encoding import Encoded
from castlereg.training import Control, Member, Phase, Plan, TrainedStack, phases_for, train
from castlereg.training.engines import native
from tests.training.engines.native_shapes import Problem, problem, quiet_train, recorded, rows_of, threads

kernels: Any = pytest.importorskip("castlereg_kernels")
calls: Any = pytest.importorskip("tests.training.engines.kernel_calls")

N_ROWS, N_VALIDATION = 100, 20


@dataclass(frozen=True)
class Case:
    """What both engines train: two members, 20 steps."""

    nodes: tuple[Node, ...] = (Node(), Node(), Node(), Node(target=True))
    regularizers: tuple[Regularizer, ...] = ()
    sizes: tuple[int, ...] = (8, 8)
    weight: bool = False
    edges: EdgeRules | None = None
    epochs: int = 10
    options: dict[str, Any] = field(default_factory=dict)

    def problem(self, engine: Any = "native", dtype: Any = np.float32, n_members: int = 2) -> Problem:
        rng, layout = np.random.default_rng(1), Layout(self.nodes)
        batch_size = self.options.get("batch_size", 40)
        n_rows = max(N_ROWS, 2 * batch_size + N_VALIDATION)
        weight = rng.uniform(0.2, 2, n_rows).astype(dtype) if self.weight else None
        table = Encoded(rows_of(layout, n_rows, dtype=dtype), layout, weight, edges=self.edges)
        validation, rest = np.split(np.arange(n_rows), [N_VALIDATION])
        members = [
            Member(rest[: 2 * batch_size], validation, np.random.SeedSequence(i), self.regularizers)
            for i in range(n_members)
        ]
        phases = phases_for(self.epochs, self.options.get("warmup", 0), self.options.get("schedule", "constant"))
        options = {name: value for name, value in self.options.items() if name not in ("warmup", "schedule")}
        return Problem(
            table,
            members,
            Plan(self.sizes, phases, engine=engine, **{"learning_rate": 3e-3, "batch_size": 40, **options}),
        )


MIXED = (Node(), Node("binary"), Node("categorical", 3), Node(target=True))
MISSING = (
    Node(missing=True, extra=1),
    Node("binary", missing=True),
    Node("categorical", 3, missing=True),
    Node("categorical", 4, target=True),
)
TWO_TARGETS = (Node(clipped=True), Node("binary"), Node(clipped=True), Node("binary", target=True), Node(target=True))
SEVEN = (*(Node() for _ in range(6)), Node(target=True))


def _rules(n: int) -> EdgeRules:
    allowed, required = np.ones((n, n), bool), np.zeros((n, n), bool)
    allowed[0, 1], required[1, 3] = False, True
    return EdgeRules(allowed, required)


def _of_target(loss: Any) -> tuple[Node, ...]:
    return (Node(monotone=1), Node(), Node(monotone=-1), Node(target=True, loss=loss))


CASES = {
    "plain": Case(),
    "linear": Case(regularizers=(Castle(),), sizes=()),
    "three layers, long batches": Case(
        MIXED, (Castle(),), (20, 33, 9), options={"batch_size": 150, "learning_rate": 1e-3}
    ),
    "one layer, short batches": Case(SEVEN, (Castle(acyclicity="logdet"), L1(0.01)), (17,), options={"batch_size": 7}),
    "missing cells, row weights": Case(MISSING, (Castle(),), weight=True),
    "clipped columns, two targets": Case(TWO_TARGETS, (Castle(), L2(0.1))),
    "edge rules": Case(MIXED, (Castle(0.1),), edges=_rules(4)),
    "group norm, capacity, edge rules": Case(MIXED, (Castle(0.1, sparsity="group", capacity=True),), edges=_rules(4)),
    "Huber, monotone": Case(_of_target(Huber()), (Castle(),)),
    "Poisson, monotone": Case(_of_target(Poisson()), (L1(), L2())),
    "quantiles, monotone": Case(_of_target(Quantiles((0.1, 0.3, 0.5, 0.9))), (Castle(),)),
    "dropout, noise": Case(MIXED, (Castle(), Dropout(0.3), InputNoise(0.1))),
    "mixed rows of missing cells": Case(MISSING, (MixUp(0.4), Castle()), weight=True),
    "corruption, autoencoder": Case(TWO_TARGETS, (Corruption(0.2), Autoencoder(), Dropout(0.1))),
    "embedding, silu, decay, average, cosine": Case(
        regularizers=(Castle(),),
        options={
            "embedding": 4,
            "activation": "silu",
            "weight_decay": 0.1,
            "averaging": 0.5,
            "schedule": "cosine",
            "warmup": 3,
        },
    ),
    "sampled": Case(SEVEN, (Castle(features_per_step=2),), options={"embedding": 3}),
    "sampled, mixed kinds": Case(
        MIXED[:3] * 2 + MIXED[3:], (Castle(features_per_step=2, sparsity="group"), L2(0.1)), options={"averaging": 0.5}
    ),
    "early stopping": Case(options={"learning_rate": 0.3, "patience": 2}, epochs=30),
}


def assert_close(one: TrainedStack, other: TrainedStack, most: float = 1e-5) -> None:
    """Compare all weights and the histories.

    The weights are compared as one vector: Adam divides a gradient by its own size, so that a weight whose gradient is
    nothing but rounding, such as that of a unit that no row reaches, moves by the learning rate in either direction.
    """
    first, second = (
        np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(stack.parameters)]) for stack in (one, other)
    )
    assert np.linalg.norm(first - second) <= most * np.linalg.norm(first)
    np.testing.assert_array_equal(one.best_epoch, other.best_epoch)
    np.testing.assert_allclose(one.validation_loss, other.validation_loss, rtol=most)
    assert list(one.history) == list(other.history)
    np.testing.assert_allclose(one.history, other.history, rtol=10 * most, atol=most)


def assert_same(one: TrainedStack, other: TrainedStack) -> None:
    for a, b in zip(jax.tree.leaves(one.parameters), jax.tree.leaves(other.parameters), strict=True):
        assert a.tobytes() == b.tobytes()
    assert one.history.equals(other.history)


@pytest.mark.parametrize("name", CASES)
def test_20_steps_are_those_of_jax(name: str) -> None:
    ours, theirs = (quiet_train(CASES[name].problem(engine)) for engine in ("native", "jax"))
    assert (ours.engine, theirs.engine) == ("native", "jax")
    assert_close(ours, theirs)


nodes = st.one_of(
    st.builds(Node, missing=st.booleans(), clipped=st.booleans(), extra=st.integers(0, 2)),
    st.builds(Node, st.just("binary"), missing=st.booleans()),
    st.builds(Node, st.just("categorical"), st.integers(2, 5), missing=st.booleans()),
)
targets = st.one_of(
    st.builds(Node, target=st.just(True), loss=st.sampled_from([None, Huber(), Quantiles((0.1, 0.5, 0.9))])),
    st.builds(Node, st.just("binary"), target=st.just(True)),
    st.builds(Node, st.just("categorical"), st.integers(2, 5), target=st.just(True)),
)
regularizers = st.tuples(
    st.builds(
        Castle,
        st.sampled_from([0.01, 0.1]),
        acyclicity=st.sampled_from(["expm", "logdet", None]),
        sparsity=st.sampled_from(["l1", "group", None]),
        capacity=st.booleans(),
    ),
    st.sampled_from([L1(0.01), L2(0.01), Autoencoder()]),
    st.sampled_from([Dropout(0.2), InputNoise(0.1), MixUp(0.4), Corruption(0.3)]),
)
cases = st.builds(
    Case,
    st.tuples(nodes, nodes, nodes, targets),
    st.permutations(range(3)).flatmap(lambda order: regularizers.map(lambda all_: tuple(all_[i] for i in order))),
    st.lists(st.sampled_from([1, 5, 16, 19]), min_size=1, max_size=3).map(tuple),
    st.booleans(),
    options=st.fixed_dictionaries({"batch_size": st.sampled_from([5, 31, 70]), "activation": st.just("silu")}),
)


@given(cases)
@settings(max_examples=3, derandomize=True, deadline=None, phases=[Part.generate])  # smaller ones take compiling
def test_any_20_steps_are_those_of_jax(case: Case) -> None:
    assert_close(quiet_train(case.problem("native")), quiet_train(case.problem("jax")))


@pytest.mark.parametrize("learning_rate", [1e8, 1e25])
def test_epochs_that_are_not_finite_are_undone_as_in_jax(learning_rate: float) -> None:
    """The lower rate becomes low enough, the higher one does not."""
    case = Case(MIXED, (Castle(), Autoencoder()), options={"learning_rate": learning_rate}, epochs=8)
    ours, theirs = list[str](), list[str]()
    for engine, seen in (("native", ours), ("jax", theirs)):
        with pytest.warns(ConvergenceWarning) as warned:
            try:
                train(*case.problem(engine))
            except FloatingPointError as error:
                assert learning_rate > 1e8
                seen.append(str(error))
        seen += [str(warning.message) for warning in warned]
    assert ours == theirs
    assert len(ours) > 2


# --- gradients -----------------------------------------------------------------------------------


def first_call(given: Problem) -> dict[str, Any]:
    """Return what the kernels are called with first."""
    with recorded() as made:
        quiet_train(given)
    return made[0][0]


SMOOTH = {
    "mixed kinds": Case(MIXED, (Castle(0.1), L1(0.1), L2(0.1)), (5, 3)),
    "missing cells": Case(MISSING, (Castle(0.1, acyclicity="logdet", sparsity="group", capacity=True),), (4,), True),
    "linear": Case(TWO_TARGETS, (Castle(0.1),), ()),
    "edge rules": Case(MIXED, (Castle(0.1),), (5, 3), edges=_rules(4)),
    "Huber": Case(_of_target(Huber()), (), (5, 3)),
    "Poisson": Case(_of_target(Poisson()), (), (5, 3)),
    "quantiles": Case(_of_target(Quantiles((0.1, 0.3, 0.5, 0.9))), (Castle(0.1),), (5, 3)),
    "embedding, silu": Case(
        regularizers=(Castle(0.1), Autoencoder()), sizes=(5, 4), options={"embedding": 2, "activation": "silu"}
    ),
    "two blocks of rows": Case(MIXED, (Castle(0.1),), (5, 3), True, options={"batch_size": 90}),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_finite_differences_of_the_objective(name: str) -> None:
    """Of Adam's first step, whose first moment is a tenth of the gradient."""
    given = SMOOTH[name].problem(dtype=np.float64, n_members=1)
    arrays = first_call(given)
    arrays["steps"][:], arrays["rate"][:], arrays["epochs"] = 1, 0.0, 1
    pieces = [key for key in ("input", "rest", "head_bias", "head_weights") if f"first_{key}" in arrays]
    weights = {key: arrays[key if "head" in key else f"weights_{key}"].ravel() for key in pieces}
    rng = np.random.default_rng(0)
    for key in pieces[1:]:  # with biases of zero, units of rows that no unit below reaches are at the kink of relu
        weights[key][weights[key] == 0] = rng.uniform(-0.1, 0.1, np.sum(weights[key] == 0))

    def objective() -> float:
        arrays["epoch"][:], arrays["active"][:], arrays["count"][:] = 0, 1, 0
        for key in pieces:
            arrays[f"first_{key}"][:] = arrays[f"second_{key}"][:] = 0.0
        kernels.train(arrays, "float64", 1)
        return float(arrays["log"].ravel()[0])

    objective()
    objective()  # at weights that have the signs of monotone columns now
    gradient = {key: 10 * arrays[f"first_{key}"].ravel() for key in pieces}
    width = len(weights["input"]) // arrays["edge_mask"].size
    free = np.repeat(arrays["edge_mask"].ravel() > 0, width)
    for key, values in weights.items():
        numeric, step = np.zeros(len(values)), 1e-6
        for i, value in enumerate(values.tolist()):
            values[i] = value + step
            above = objective()
            values[i] = value - step
            numeric[i] = (above - objective()) / (2 * step)
            values[i] = value
        compared = free if key == "input" else np.full(len(values), True)
        error = np.linalg.norm((gradient[key] - numeric)[compared])
        assert error <= 1e-6 * max(float(np.linalg.norm(numeric[compared])), 1e-2), key
    assert np.linalg.norm(gradient["input"]) > 1e-4
    assert not gradient["input"][~free].any()


def test_float64_is_trained_in_float64() -> None:
    case = CASES["group norm, capacity, edge rules"]
    wide = quiet_train(case.problem(dtype=np.float64))
    assert {leaf.dtype for leaf in jax.tree.leaves(wide.parameters)} == {np.dtype(np.float64)}
    assert_close(wide, quiet_train(case.problem()))


# --- the same bits -------------------------------------------------------------------------------


def test_same_seed_same_bits_with_any_number_of_threads() -> None:
    for name in ("dropout, noise", "sampled, mixed kinds"):
        given = CASES[name].problem(n_members=5)
        results = []
        for n_threads in (1, 2, 2, 7):
            with threads(n_threads):
                results.append(quiet_train(given))
        for result in results[1:]:
            assert_same(results[0], result)


def test_a_member_is_trained_alone_as_beside_others() -> None:
    given = CASES["missing cells, row weights"].problem(n_members=3)
    together, alone = quiet_train(given), quiet_train(given._replace(members=given.members[1:2]))
    assert_same(together.take(np.array([1])), alone)


@pytest.mark.parametrize(
    "name", ["three layers, long batches", "dropout, noise", "mixed rows of missing cells", "sampled"]
)
def test_all_instruction_sets_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for instructions in calls.available():
        monkeypatch.setenv("CASTLEREG_INSTRUCTION_SET", instructions)
        assert kernels.instruction_set() == instructions
        results.append(quiet_train(CASES[name].problem()))
    for result in results[1:]:
        assert_close(results[0], result)


def test_an_unknown_instruction_set_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASTLEREG_INSTRUCTION_SET", "MMX")
    with pytest.raises(RuntimeError, match="CASTLEREG_INSTRUCTION_SET=MMX, but this processor has"):
        kernels.instruction_set()


@pytest.mark.parametrize("seed", range(12))
def test_random_shapes(seed: int) -> None:
    """Random shapes, with fixed seeds."""
    given = problem(seed)
    if given.plan.learning_rate < 1:
        assert np.isfinite(quiet_train(given).validation_loss).all()


# --- what it does not cover, and calls that are wrong ----------------------------------------------


def test_what_is_not_covered_is_said() -> None:
    with pytest.raises(ValueError, match=r"BatchNorm is not supported\); use engine='auto'"):
        train(*Case(regularizers=(BatchNorm(),)).problem())
    with pytest.raises(ValueError, match="its random numbers need float32"):
        train(*Case(regularizers=(Dropout(0.1),)).problem(dtype=np.float64))
    with pytest.raises(ValueError, match="at most 16 hidden layers"):
        train(*Case(sizes=(2,) * 17).problem())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoded": None}, "encoded is missing"),
        ({"members": None}, "members is missing"),
        ({"members": "two"}, "members must be an integer"),
        ({"members": -1}, "members is out of range"),
        ({"nodes": 1 << 40}, "nodes is out of range"),
        ({"layers": 17}, "the sizes do not fit each other"),
        ({"widths": np.array([8, 0], np.int32)}, "widths has 0, which is out of range"),
        ({"row_weight": np.ones(5, np.float32)}, "row_weight has 5 numbers, not 128"),
        ({"shift": np.zeros((2, 6))}, "shift must be a contiguous array of float32"),
        ({"scale": [1.0] * 12}, "scale must be a contiguous array of float32"),
        ({"log": np.zeros((8, 2)).T}, "log must be a writable, contiguous array of float32"),
        ({"batches": 1000}, "batches has 1000, which is out of range"),
        ({"validation_rows": -1}, "validation_rows has -1, which is out of range"),
        ({"channel_node": 4}, "channel_node has 4, which is out of range"),
        ({"node_loss": 6}, "node_loss has 6, which is out of range"),
        ({"term": 8}, "term has 8, which is out of range"),
        ({"acyclicity": 3}, "acyclicity is out of range"),
        ({"change_0_kind": 7}, "change_0_kind is out of range"),
        ({"steps": 1 << 20}, "steps has 1048576, which is out of range"),
        ({"steps": 0}, "steps has 0, which is out of range"),
        ({"epochs": 1 << 20}, "more epochs than there is room for"),
        ({"batch_changes": 9}, "too many changes of a batch"),
        ({"sampled": 3}, "the sizes do not fit each other|sampled_nodes is missing"),
    ],
)
def test_wrong_calls_raise(change: dict[str, Any], message: str) -> None:
    """Numbers replace the last one of an array."""
    arrays = first_call(Case(MIXED, (Castle(), InputNoise(0.1))).problem())
    before = {name: value.copy() for name, value in arrays.items() if isinstance(value, np.ndarray)}
    for name, value in change.items():
        if isinstance(value, int) and isinstance(arrays[name], np.ndarray):
            arrays[name].ravel()[-1] = value
        elif value is None:
            del arrays[name]
        else:
            arrays[name] = value
    with pytest.raises(ValueError, match=message):
        kernels.train(arrays, "float32", 2)
    for name in before.keys() & arrays.keys() - change.keys():
        np.testing.assert_array_equal(arrays[name], before[name])


def test_wrong_precision_raises() -> None:
    arrays = first_call(Case().problem())
    with pytest.raises(ValueError, match="must be a contiguous array of float64"):
        kernels.train(arrays, "float64", 1)
    with pytest.raises(ValueError, match="dtype=int8 must be float32 or float64"):
        kernels.train(arrays, "int8", 1)
    with pytest.raises(TypeError):
        kernels.train(list(arrays), "float32", 1)


def test_what_is_only_read_may_be_read_only() -> None:
    given = Case(weight=True).problem()
    arrays = first_call(given)
    for name in ("encoded", "row_weight", "batches", "shift", "scale", "edge_mask"):
        arrays[name].flags.writeable = False
    kernels.train(arrays, "float32", 1)
    arrays["weights_input"].flags.writeable = False
    with pytest.raises(ValueError, match="weights_input must be a writable, contiguous array of float32"):
        kernels.train(arrays, "float32", 1)


# --- Ctrl-C ----------------------------------------------------------------------------------------


class Interrupting:
    """Kernels during whose second call Ctrl-C comes."""

    def __init__(self) -> None:
        self.n_calls, self.finished = 0, threading.Event()

    def train(self, *arguments: Any) -> None:
        self.n_calls += 1
        if self.n_calls == 2:
            _thread.interrupt_main()
            threading.Event().wait(0.2)  # the others wait for what is slow
        kernels.train(*arguments)
        if self.n_calls == 2:
            self.finished.set()


@pytest.fixture
def interrupting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Interrupting]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background may ignore it
    made = Interrupting()
    monkeypatch.setattr(native, "kernels", lambda: made)
    yield made
    signal.signal(signal.SIGINT, before)


def _long() -> Problem:
    given = Case(MIXED, (Castle(),)).problem()
    return given._replace(plan=replace(given.plan, phases=(Phase(5000),), patience=5000, learning_rate=1e-5))


def test_ctrl_c_raises(interrupting: Interrupting) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(*_long())
    assert interrupting.n_calls == 2
    assert interrupting.finished.wait(10)


def test_ctrl_c_keeps_the_best_so_far(interrupting: Interrupting) -> None:
    with pytest.warns(ConvergenceWarning, match="training was interrupted after"):
        result = train(*_long(), Control(on_interrupt="keep"))
    assert interrupting.finished.is_set()
    assert result.interrupted and result.engine == "native"
    n_epochs = result.history.groupby("member").size()
    assert (n_epochs == result.history.groupby("member")["epoch"].max()).all()
    assert np.isfinite(result.validation_loss).all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(result.parameters))


@pytest.mark.parametrize("runs", [False, True])
def test_ctrl_c_while_a_thread_starts(runs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The states are read once the kernels have finished; kernels that have not begun are never called."""
    started = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if runs:
            started(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start)
    given = Case().problem()
    if runs:
        with pytest.warns(ConvergenceWarning, match="interrupted after 10 of at most 10 epochs"):
            assert train(*given, Control(on_interrupt="keep")).interrupted
    else:
        with pytest.raises(KeyboardInterrupt, match="before every network had finished an epoch"):
            train(*given, Control(on_interrupt="keep"))


def test_python_ends_after_the_kernels() -> None:
    """A thread that Python does not wait for trains when the process ends."""
    code = """
import threading, time
import numpy as np
from tests.training.engines.native_shapes import Castle, Layout, Member, Node, Plan, Encoded, native, rows_of, train

layout = Layout((*(Node() for _ in range(40)), Node(target=True)))
members = [Member(np.arange(2500), np.arange(2500, 3000), np.random.SeedSequence(0), (Castle(),))]
given = Encoded(rows_of(layout, 3000), layout), members, Plan((64, 64), engine="native")
kernels, begun = native.kernels(), threading.Event()
native.kernels = lambda: begun.set() or kernels
threading.Thread(target=train, args=given, daemon=True).start()
assert begun.wait(60)
time.sleep(0.2)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_an_error_of_the_kernels_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def train(self, *arguments: Any) -> None:
            raise MemoryError

    monkeypatch.setattr(native, "kernels", Failing)
    with pytest.raises(MemoryError):
        train(*Case().problem())


def test_a_network_may_train_without_ever_stopping_early() -> None:
    given = Case(epochs=2).problem()
    assert train(given.table, given.members, replace(given.plan, patience=2**31 - 1)).engine == "native"
