"""The native engine: kernels of the package castlereg-kernels, which train on all cores without JAX.

The kernels do what :mod:`castlereg.training.program` does, for the regularizers and losses of this package. They take
one dict of arrays: sizes and layout, the table, the inputs of members, and their states, which they update in place.
"""

from __future__ import annotations

import threading
from functools import cache
from importlib import import_module
from typing import Any, Final

import jax
import joblib
import numpy as np
from numpy.typing import NDArray

from castlereg.acyclicity import log_determinant, trace_exponential
from castlereg.layout import Layout
from castlereg.losses import Huber, Poisson, Quantiles
from castlereg.monotone import weight_signs
from castlereg.network import WAVES, pack, unpack
from castlereg.regularizers import L1, L2, Autoencoder, Castle, Corruption, Dropout, InputNoise, MixUp
from castlereg.regularizers.castle import acyclicity_of, castle_of
from castlereg.training.state import EngineName, MemberInputs, MemberState, Setup, Shared, log_columns, terms

# Numbers of the enumerations in kernels/cpp/problem.h.
_LOSSES: Final[dict[Any, int]] = {"numeric": 0, "binary": 1, "categorical": 2, Huber: 3, Poisson: 4, Quantiles: 5}
_TERMS: Final = ("supervised", "reconstruction", "acyclicity", "sparsity", "capacity", "l1", "l2", "autoencoder")
_CHANGES: Final = (InputNoise, MixUp, Corruption)  # of the rows of a batch
_ACYCLICITY: Final[dict[Any, int]] = {None: 0, trace_exponential: 1, log_determinant: 2}
_SPARSITY: Final = {None: 0, "l1": 1, "group": 2}
_COVERED: Final = (Castle, L1, L2, Dropout, Autoencoder, *_CHANGES)
_RANDOM: Final = (Dropout, *_CHANGES)
_MOST_LAYERS: Final = 16
_MOST_OPERATIONS_ON_ONE_CORE: Final = 100_000_000  # of a step, such as that of 50 columns and two layers of 64


@cache
def kernels() -> Any:
    """Return the module of the kernels, or None if it is not installed or cannot be loaded here."""
    try:
        return import_module("castlereg_kernels")
    except ImportError:
        return None


def why_not_covered(setup: Setup) -> str | None:
    """Return why the native engine cannot train a stack, or None if it can."""
    if kernels() is None:
        return "castlereg-kernels is not installed"
    for regularizer in setup.regularizers:
        if type(regularizer) not in _COVERED:
            return f"{type(regularizer).__name__} is not supported"
    if acyclicity_of(setup.regularizers, setup.layout.n_nodes) not in _ACYCLICITY:
        return "a custom acyclicity function is not supported"
    if any(node.loss is not None and type(node.loss) not in _LOSSES for node in setup.layout.nodes):
        return "a custom loss is not supported"
    if len(setup.plan.hidden_layer_sizes) > _MOST_LAYERS:
        return f"it supports at most {_MOST_LAYERS} hidden layers"
    if setup.n_sampled is not None and len(setup.nodes) < setup.layout.n_nodes:
        return "features_per_step is set, but only the targets' sub-networks are trained"
    random = any(type(regularizer) in _RANDOM for regularizer in setup.regularizers)
    if random and setup.dtype != np.float32:
        return "its random numbers need float32"
    if random and not jax.config.jax_threefry_partitionable:  # type: ignore[attr-defined]
        return "jax_threefry_partitionable is off, so random numbers would differ from JAX's"
    return None


def is_faster(setup: Setup) -> bool:
    """Return whether the native engine is faster than JAX, which shares a single large member among the cores."""
    return len(setup.members) > 1 or setup.operations_per_step <= _MOST_OPERATIONS_ON_ONE_CORE


class NativeEngine:
    """Engine that trains the members of a stack in place, in NumPy arrays, as :class:`JaxEngine` does on a device.

    The kernels run in a separate thread. Python waits for it only to read the results; meanwhile it draws the next
    epochs and handles Ctrl-C.
    """

    name: EngineName = "native"
    states: MemberState  # C-contiguous NumPy arrays with a leading member axis, updated in place by ``run``

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.n_threads = joblib.cpu_count()  # within the limits of affinity, container and LOKY_MAX_CPU_COUNT
        self.members_per_worker = -(-len(setup.members) // self.n_threads)
        self._description = _description(setup)
        self._call: _Call | None = None

    def place(self, by_member: Any) -> Any:
        """Copy arrays."""
        return jax.tree.map(lambda a: np.array(a, order="C"), by_member)

    def read(self, placed: Any) -> Any:
        """Copy arrays, once the kernels have finished."""
        self.close()
        return jax.tree.map(np.array, placed)

    def share(self, shared: Shared) -> Shared:
        """Return the shared inputs unchanged."""
        return shared

    def run(self, inputs: MemberInputs, shared: Shared) -> NDArray[Any]:
        """Start epochs of all active members, and return the log that they fill."""
        self.close()
        shape = (*inputs.batches.shape[:2], len(log_columns(self.setup.regularizers)))
        log = np.full(shape, np.nan, self.setup.dtype)
        arrays = self._description | _shared(shared) | _inputs(inputs, shared) | _states(self.states, self.setup)
        arrays["log"] = log
        self._call = _Call(arrays, str(self.setup.dtype), self.n_threads)
        self._call.start()
        return log

    def close(self) -> None:
        """Wait for the kernels."""
        if self._call is not None:
            self._call.wait()
            self._call = None


class _Call:
    """One call of the kernels, in a thread.

    Ctrl-C may come at any moment, even between two lines of ``start``, and ``wait`` may then not know of the thread.
    The one that takes the turn first decides whether the kernels are called.
    """

    def __init__(self, arrays: dict[str, Any], dtype: str, n_threads: int) -> None:
        self._error: BaseException | None = None
        self._turn, self._finished, self._started = threading.Lock(), threading.Event(), False
        self._thread = threading.Thread(target=self._run, args=(arrays, dtype, n_threads), name="castlereg kernels")

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()
        self._started = True

    def _run(self, arrays: dict[str, Any], dtype: str, n_threads: int) -> None:
        if not self._turn.acquire(blocking=False):
            return
        try:
            kernels().train(arrays, dtype, n_threads)
        except BaseException as error:
            self._error = error
        finally:
            self._finished.set()

    def wait(self) -> None:
        """Wait for the kernels, also when Python exits: it must not exit while they run. Ctrl-C interrupts the wait."""
        if not self._started and self._turn.acquire(blocking=False):
            return
        while not self._finished.wait(0.1):
            pass
        if self._error is not None:
            raise self._error


def _description(setup: Setup) -> dict[str, Any]:
    """Describe layout, network and regularizers."""
    layout, plan, castle = setup.layout, setup.plan, castle_of(setup.regularizers)
    changes = [_CHANGES.index(type(r)) for r in setup.regularizers if isinstance(r, _CHANGES)]
    names = terms(setup.regularizers)
    embedded = layout.embedded_nodes
    described: dict[str, Any] = {
        "members": len(setup.members),
        "nodes": layout.n_nodes,
        "targets": len(layout.targets),
        "channels": layout.n_channels,
        "inputs": layout.n_inputs,
        "outputs": layout.output_width,
        "trained": len(setup.nodes),
        "layers": len(plan.hidden_layer_sizes),
        "widths": _int32(plan.hidden_layer_sizes),
        "silu": plan.activation == "silu",
        "batch": plan.batch_size,
        "sampled": setup.n_sampled or 0,
        "channel_node": _int32(layout.channel_nodes),
        "input_node": _int32(layout.input_nodes),
        "trained_node": _int32(setup.nodes),
        "clipped": layout.is_clipped.astype(np.uint8),
        "predicted_scaled": layout.is_squared[layout.channel_nodes].astype(np.uint8),
        "has_missing": layout.has_missing,
        "has_clipped": setup.measured[0].clip_center is not None,
        "embedded": len(embedded),
        "waves": WAVES,
        "mixed": layout.embedding,
        "embedded_channel": _int32(layout.output_channels[embedded, 0]),
        "castle": castle is not None,
        "batch_changes": len(changes),
        "terms": len(names),
        "term": _int32([_TERMS.index(name) for name in names]),
        **{f"change_{i}_kind": kind for i, kind in enumerate(changes)},
        **_losses(layout, setup.dtype),
    }
    if castle is not None:
        described |= {
            "reconstruction": castle.reconstruction,
            "graph": False,
            "capacity": castle.capacity,
            "acyclicity": _ACYCLICITY[acyclicity_of(setup.regularizers, layout.n_nodes)],
            "sparsity": _SPARSITY[castle.sparsity],
        }
    return described


def _losses(layout: Layout, dtype: Any) -> dict[str, Any]:
    """Describe the loss of every node."""
    levels = np.zeros((layout.n_nodes, layout.output_width), dtype)
    middle, delta = np.zeros(layout.n_nodes, np.int32), np.ones(layout.n_nodes, dtype)
    for k, node in enumerate(layout.nodes):
        if isinstance(node.loss, Quantiles):
            levels[k, : node.outputs], middle[k] = node.loss.levels, node.loss.middle
        if isinstance(node.loss, Huber):
            delta[k] = node.loss.delta
    losses = [_LOSSES[node.kind if node.loss is None else type(node.loss)] for node in layout.nodes]
    return {
        "node_loss": _int32(losses),
        "node_outputs": _int32([node.outputs for node in layout.nodes]),
        "node_channel": _int32(layout.output_channels[:, 0]),
        "node_numeric": layout.is_kind("numeric").astype(np.int32),
        "node_middle": middle,
        "node_delta": delta,
        "node_levels": levels,
    }


def _shared(shared: Shared) -> dict[str, Any]:
    """Name the inputs that all members share."""
    arrays: dict[str, Any] = {
        "rows": len(shared.inputs),
        "encoded": shared.inputs,
        "row_weight": shared.weight,
        "node_weight": shared.node_weight,
        "penalized": shared.penalized,
        **{name: int(getattr(shared, name)) for name in ("epochs", "max_epochs", "patience", "warmup")},
    }
    return {name: _contiguous(value) for name, value in arrays.items() if value is not None}


def _inputs(inputs: MemberInputs, shared: Shared) -> dict[str, Any]:
    """Name the inputs of members; numbers that are the same in all epochs are repeated for each."""
    n_members, padded_epochs, padded_steps = inputs.batches.shape[:3]
    ones = np.ones((n_members, padded_epochs), inputs.mean_weight.dtype)
    decays = {"averaging": shared.averaging, "weight_decay": shared.weight_decay}
    arrays: dict[str, Any] = {
        "room_epochs": padded_epochs,
        "room_steps": padded_steps,
        "validation": inputs.validation_rows.shape[1],
        "batches": inputs.batches,
        "sampled_nodes": inputs.sampled,
        "steps": inputs.steps,
        "validation_rows": inputs.validation_rows,
        "mean_weight": inputs.mean_weight,
        "edge_mask": inputs.edge_mask,
        "rate_factor": ones * shared.rate_factor,
        **{name: None if decay is None else ones[:, 0] * decay for name, decay in decays.items()},
        **inputs.standardization._asdict(),
    }
    changes = 0
    repeated = jax.tree.map(lambda strength: ones * strength[:, None], inputs.regularizers)
    for regularizer, drawn in zip(repeated, inputs.drawn, strict=True):
        match regularizer:
            case Castle():
                arrays |= {"reg_beta": regularizer.reg_beta, "reg_lambda": regularizer.reg_lambda}
                arrays["acyclicity_strength"] = ones  # a factor of the kernels; the paper has none
            case L1() | L2() | Autoencoder():
                arrays[type(regularizer).__name__.lower()] = regularizer.strength
            case Dropout():
                arrays |= {"dropout": regularizer.rate, "dropout_words": drawn}
            case _:
                (arrays[f"change_{changes}_strength"],) = jax.tree.leaves(regularizer)
                arrays["mixup_numbers" if isinstance(regularizer, MixUp) else f"change_{changes}_words"] = drawn
                changes += 1
    return {name: _contiguous(value) for name, value in arrays.items() if value is not None}


def _states(states: MemberState, setup: Setup) -> dict[str, Any]:
    """Name the arrays of the states, which the kernels update."""
    train, moments = states.train, states.train.moments
    arrays: dict[str, Any] = {
        "weights_input": train.weights.network.input_weights,
        "weights_rest": train.weights.network.rest,
        "best_input": states.best.input_weights,
        "best_rest": states.best.rest,
        "rate": states.rate,
        "best_loss": states.best_loss,
        "best_epoch": states.best_epoch,
        "epoch": states.epoch,
        "restarts": states.restarts,
        "active": states.active.view(np.uint8),
    }
    if train.average is not None:
        arrays |= {"average_input": train.average.input_weights, "average_rest": train.average.rest}
    if setup.n_sampled is None:
        arrays["count"] = moments.count
        others = (train.weights.regularizers, moments.mu.regularizers, moments.nu.regularizers)
        for order, moment in (("first", moments.mu), ("second", moments.nu)):
            arrays |= {f"{order}_input": moment.network.input_weights, f"{order}_rest": moment.network.rest}
    else:
        arrays |= {"count": moments.shared.count, "node_count": moments.nodes.count}
        others = (train.weights.regularizers, moments.shared.mu[1], moments.shared.nu[1])
        for order, node_moments, ((hidden, embedding), _) in (
            ("first", moments.nodes.mu, moments.shared.mu),
            ("second", moments.nodes.nu, moments.shared.nu),
        ):
            for name in ("input_weights", "input_bias", "output_weights", "output_bias"):
                arrays[f"{order}_{name}"] = getattr(node_moments, name)
            for layer, dense in enumerate(hidden, start=1):
                arrays |= {f"{order}_hidden_weights_{layer}": dense.weights, f"{order}_hidden_bias_{layer}": dense.bias}
            if embedding is not None:
                arrays |= {f"{order}_frequencies": embedding.frequencies, f"{order}_phases": embedding.phases}
                arrays[f"{order}_mixing"] = embedding.weights
    for number, regularizer in enumerate(setup.regularizers):
        if isinstance(regularizer, Autoencoder):
            for prefix, regularizer_states in zip(("", "first_", "second_"), others, strict=True):
                head = regularizer_states[number]
                arrays |= {f"{prefix}head_bias": head["bias"], f"{prefix}head_weights": head["weights"]}
    if setup.layout.is_monotone:  # the signs that weights must have, 0 for any
        network = unpack(jax.tree.map(lambda a: a[0], states.best), setup.plan.form, setup.layout)
        signs = pack(weight_signs(network, setup.layout))
        arrays |= {"input_signs": _contiguous(signs.input_weights), "rest_signs": _contiguous(signs.rest)}
    return {name: value for name, value in arrays.items() if value is not None}


def _int32(values: Any) -> NDArray[np.int32]:
    return np.ascontiguousarray(values, np.int32)


def _contiguous(value: Any) -> Any:
    return value if isinstance(value, int) else np.ascontiguousarray(value)
