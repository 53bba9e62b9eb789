"""The steps of one epoch of a member: those that train all sub-networks, and those that train some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from castlereg.layout import Layout
from castlereg.losses import Batch
from castlereg.network import Parameters, mask_inputs, pack, squared_adjacency, unpack
from castlereg.regularizers import Own, Regularizer
from castlereg.regularizers.castle import acyclicity_of
from castlereg.regularizers.engine import regularized_loss
from castlereg.regularizers.protocol import Cycles
from castlereg.training import sampled as sampling
from castlereg.training.batch import as_batch
from castlereg.training.state import MemberInputs, MemberState, Moving, Shared, Weights, adam, epoch_of

Rows = tuple[Array, Array]  # of some steps: their channels as encoded, and weights
Aux = tuple[dict[str, Array], tuple[Own, ...]]

# Steps whose rows are gathered together. Gathering for every step by itself was slower; a whole epoch's rows are a
# second table. Numbers of steps beyond the limit are multiples of the block, see ``castlereg.data.table.rounded_up``.
_BLOCK = 128
_MOST_AT_ONCE = 1024


def terms(regularizers: tuple[Regularizer, ...]) -> tuple[str, ...]:
    """Name the terms of the loss."""
    return ("supervised", *(name for regularizer in regularizers for name in regularizer.terms))


def run_steps(
    layout: Layout,
    hidden_layer_sizes: tuple[int, ...],
    epoch: Array,
    state: MemberState,
    inputs: MemberInputs,
    shared: Shared,
) -> tuple[Moving, Array]:
    """Take one epoch's steps; return what they changed and the mean of objective and terms."""
    regularizers, rate_factor = epoch_of(inputs, epoch)
    steps = _Steps(layout, hidden_layer_sizes, epoch, state.rate * rate_factor, regularizers, inputs, shared)
    totals = jnp.zeros(1 + len(terms(regularizers)), inputs.mean_weight.dtype)
    take = partial(_in_blocks, gather=steps.gather, room=inputs.batches.shape[1], steps=inputs.steps)
    if inputs.sampled is None:
        after, totals = take(steps.whole, carry=(state.moving, totals))
    else:
        kept = None
        if acyclicity_of(regularizers, layout.n_nodes) is not None:
            kept = sampling.keep_cycles(state.moving.weights.network.input_weights, layout)
        (after, totals), _ = take(steps.sampled, carry=((state.moving, totals), kept))
    return after, totals / inputs.steps


@dataclass(frozen=True)
class _Steps:
    layout: Layout
    hidden_layer_sizes: tuple[int, ...]
    epoch: Array
    rate: Array
    regularizers: tuple[Regularizer, ...]
    inputs: MemberInputs
    shared: Shared

    def gather(self, first: Any, size: int) -> Rows:
        """Collect the rows of some steps, and weights that make a sum over the rows of a step a mean."""
        rows = lax.dynamic_slice_in_dim(self.inputs.batches[self.epoch], first, size)
        weight = self.shared.weight[rows]
        present = jnp.maximum(jnp.sum(weight > 0, axis=-1, keepdims=True), 1)
        return self.shared.inputs[rows], weight / (present * self.inputs.mean_weight)

    def whole(self, rows: Rows, first: Any, i: Array, carry: tuple[Moving, Array]) -> tuple[Moving, Array]:
        """Train all sub-networks on the rows of step ``i``; the rows begin with step ``first``."""
        (weights, moments, running), totals = carry
        batch = self._batch(rows, i - first)
        value, (of_network, of_own) = self._gradient(self._unpacked(weights), weights.own, running, batch, i)
        updates, moments = adam.update(Weights(pack(of_network), of_own), moments)
        weights = self._moved(weights, updates, value[0])
        return Moving(weights, moments, _running(value[1])), totals + self._logged(value)

    def sampled(
        self, rows: Rows, first: Any, i: Array, carry: tuple[tuple[Moving, Array], sampling.KeptCycles | None]
    ) -> tuple[tuple[Moving, Array], sampling.KeptCycles | None]:
        """Train the sub-networks sampled for step ``i``, and leave the others as they are."""
        ((weights, moments, running), totals), kept = carry
        assert self.inputs.sampled is not None
        nodes = self.inputs.sampled[self.epoch, i]
        network = self._unpacked(weights)
        part, cycles = sampling.cut_out(network, nodes), None
        h = acyclicity_of(self.regularizers, self.layout.n_nodes)
        if kept is not None and h is not None:
            kept = sampling.refreshed(kept, i, nodes, h)
            cycles = Cycles(kept.value, kept.slope[:, nodes])
        batch = self._batch(rows, i - first)
        value, slope = self._gradient(part, weights.own, running, batch, i, sampled=nodes, cycles=cycles)
        updates, moments = sampling.update(adam, slope, moments, nodes)
        part, own = self._moved((part, weights.own), updates, value[0])
        if kept is not None:
            kept = sampling.moved(kept, nodes, squared_adjacency(part.input_weights, self.layout))
        weights = Weights(pack(sampling.put_back(network, nodes, part)), own)
        return (Moving(weights, moments, _running(value[1])), totals + self._logged(value)), kept

    def _gradient(
        self, network: Parameters, own: tuple[Any, ...], running: tuple[Any, ...], batch: Batch, i: Array, **some: Any
    ) -> tuple[tuple[Array, Aux], tuple[Parameters, Any]]:
        """Return objective, terms and the regularizers' states, and the gradient in the network and their arrays."""
        shared, inputs = self.shared, self.inputs

        def loss(trained: tuple[Any, tuple[Any, ...]]) -> tuple[Array, Aux]:
            return regularized_loss(
                trained[0],
                batch,
                self.regularizers,
                self.layout,
                node_weight=shared.node_weight,
                null_loss=inputs.standardization.null_loss,  # type: ignore[arg-type]
                penalized=shared.penalized,
                own=tuple(map(Own, trained[1], running)),
                drawn=jax.tree.map(lambda a: a[self.epoch, i], inputs.drawn),
                **some,
            )

        value, (of_network, of_own) = jax.value_and_grad(loss, has_aux=True)((network, own))
        # Weights of forbidden edges are zero from the start and stay so.
        mask = inputs.edge_mask[:, some["sampled"]] if some else inputs.edge_mask
        return value, (mask_inputs(of_network, mask), of_own)

    def _batch(self, rows: Rows, position: Array) -> Batch:
        return as_batch(rows[0][position], rows[1][position], self.inputs.standardization, self.layout)

    def _unpacked(self, weights: Weights) -> Parameters:
        return unpack(weights.network, self.hidden_layer_sizes, self.layout.output_width)

    def _moved(self, weights: Any, updates: Any, loss: Array) -> Any:
        """Take a step, none if the loss is not finite; known to come last, it needs no copy of the weights."""
        rate = jnp.where(jnp.isfinite(loss), self.rate, 0.0)
        return jax.tree.map(lambda w, u: w - rate * u, weights, updates)

    def _logged(self, value: tuple[Array, Aux]) -> Array:
        total, (by_name, _) = value
        return jnp.stack([total, *(by_name[name] for name in terms(self.regularizers))])


def _running(aux: Aux) -> tuple[Any, ...]:
    return tuple(own.running for own in aux[1])


def _in_blocks(
    step: Callable[[Any, Any, Array, Any], Any],
    gather: Callable[[Any, int], Any],
    room: int,
    steps: Array,
    carry: Any,
) -> Any:
    """Take steps one after the other, those of a long epoch in blocks, so that not all rows are gathered at once.

    ``step(gathered, first, i, carry)`` returns the carry after step ``i``, where the gathered ones begin with
    ``first``.
    """
    if room <= _MOST_AT_ONCE:
        return lax.fori_loop(0, steps, partial(step, gather(0, room), 0), carry)

    def block(number: Array, carry: Any) -> Any:
        first = number * _BLOCK
        last = jnp.minimum(first + _BLOCK, steps)
        return lax.fori_loop(first, last, partial(step, gather(first, _BLOCK), first), carry)

    return lax.fori_loop(0, -(-steps // _BLOCK), block, carry)
