"""A stack in training: the states of its members in an engine, and the host's record of each member."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.monotone import with_signs
from castlereg.network import initialize, mask_inputs, pack, unpack
from castlereg.random_streams import OfNetwork, named_stream
from castlereg.training import sampled
from castlereg.training.engines.protocol import Engine
from castlereg.training.plan import EdgeAction
from castlereg.training.setup import Setup
from castlereg.training.state import MemberInputs, MemberState, Moving, Weights, adam

# Epochs of each member before a call, and the log of the call: (members, epochs, columns), NaN for epochs that were not
# run.
Log = tuple[NDArray[np.int64], NDArray[np.float32]]


class Stack:
    """Members in training: their states in an engine, and the host's record of each member."""

    def __init__(self, setup: Setup, engine: Engine, states: MemberState | None = None) -> None:
        n = len(setup.members)
        states = initial_states(setup) if states is None else states
        self.setup, self.engine = setup, engine
        self.active, self.epoch, self.best_loss = np.ones(n, bool), np.array(states.epoch, int), np.full(n, np.inf)
        # Edges that each member may have, shape (members, inputs, trained nodes).
        self.masks = setup.edge_masks()
        self.logs: list[Log] = []  # of every call of the program
        engine.states = engine.place(states)

    def inputs(self, drawn: tuple[Any, Any, Any], steps: Any, epochs: int) -> MemberInputs:
        """Collect the inputs of the next call; ``epochs`` is the length of their epoch axis."""
        setup = self.setup
        regularizers, rates = setup.schedule(int(self.epoch[self.active].min()), epochs)
        weight: Any = setup.mean_weight
        masks: Any = self.masks
        rows, by = setup.validation_rows(), setup.standardization
        extras: list[Any] = [
            None if value is None else np.full(len(setup.members), value, setup.dtype)
            for value in (setup.plan.averaging, setup.plan.weight_decay)
        ]
        return MemberInputs(*drawn, regularizers, rates, steps, rows, by, weight, masks, *extras)

    def record(self, log: NDArray[np.float32]) -> None:
        """Update the record of the members after a call and its log."""
        states = self.engine.states
        epoch, self.best_loss, self.active = self.engine.read((states.epoch, states.best_loss, states.active))
        self.logs.append((self.epoch.copy(), log))
        self.epoch = epoch.astype(np.int64)

    def stop(self, members: NDArray[np.bool_]) -> None:
        """End the training of some members; they keep their best weights."""
        if not (members & self.active).any():
            return
        self.active = self.active & ~members
        self.engine.states = self.engine.states._replace(active=self.engine.place(self.active))

    def keep_edges(self, action: EdgeAction) -> None:
        """Keep only the edges that an action chooses for each member."""
        layout, rules, linear = self.setup.layout, self.setup.table.edges, not self.setup.plan.hidden_layer_sizes
        states = self.engine.read(self.engine.states)
        for mask, weights in zip(self.masks, states.moving.weights.network.input_weights, strict=True):
            mask *= action(weights, layout, rules, linear)[layout.input_nodes]
        moments = states.moving.moments
        if self.setup.n_sampled is None:
            of_inputs = [moment.network.input_weights for moment in (moments.mu, moments.nu)]
        else:  # laid out by node
            of_inputs = [moment.input_weights.swapaxes(1, 2) for moment in (moments.own.mu, moments.own.nu)]
        averaged = () if states.moving.average is None else (states.moving.average.input_weights,)
        for array in (states.moving.weights.network.input_weights, *averaged, *of_inputs):
            array *= self.masks[..., None]
        self.engine.states = self.engine.place(states)


def initial_states(setup: Setup) -> MemberState:
    """Return the states of all members before the first step, with random starting weights."""
    plan, layout, nodes, n = setup.plan, setup.layout, setup.nodes, len(setup.members)
    sizes = plan.hidden_layer_sizes
    starts = []
    for member, mask in zip(setup.members, setup.edge_masks(), strict=True):
        if callable(plan.input_init):
            network = plan.input_init(layout, sizes, member.seed, nodes)
        else:
            start, activation = plan.input_init, plan.activation
            network = initialize(layout, sizes, member.seed, nodes=nodes, input_init=start, activation=activation)
        own = [
            r.start(layout, sizes, len(nodes), named_stream(member.seed, OfNetwork.REGULARIZER_START, type(r).__name__))
            for r in member.regularizers
        ]
        weights = Weights(pack(with_signs(mask_inputs(network, mask), layout)), tuple(state.trained for state in own))
        starts.append((weights, tuple(state.running for state in own)))
    weights, running = jax.tree.map(lambda *arrays: np.stack(arrays).astype(setup.dtype), *starts)

    def moments_of(weights: Weights) -> Any:
        if setup.n_sampled is None:
            return adam.init(weights)
        return sampled.start_moments(adam, unpack(weights.network, plan.form, layout), weights.own)

    shapes = jax.eval_shape(moments_of, jax.tree.map(lambda a: a[0], weights))

    def zeros(moment: Any) -> NDArray[Any]:
        is_count = np.issubdtype(moment.dtype, np.integer)  # others have the table's precision, also natively
        return np.zeros((n, *moment.shape), moment.dtype if is_count else setup.dtype)

    moments = jax.tree.map(zeros, shapes)
    fields: dict[str, Any] = {
        "moving": Moving(weights, moments, running, None if plan.averaging is None else weights.network),
        "rate": np.full(n, plan.learning_rate, setup.dtype),
        "best": weights.network,
        "best_loss": np.full(n, np.inf, setup.dtype),
        "active": np.ones(n, bool),
    }
    fields |= {name: np.zeros(n, np.int32) for name in ("best_epoch", "epoch", "restarts")}
    return MemberState(**fields)
