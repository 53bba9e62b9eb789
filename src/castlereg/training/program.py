"""Training of one member as a JAX program: steps inside epochs.

The best weights are kept, patience is counted, and epochs whose loss is not finite are undone.
:class:`castlereg.training.engines.jax_engine.JaxEngine` compiles it for all members of a stack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from castlereg.acyclicity import Acyclicity
from castlereg.castle import supervised_loss
from castlereg.layout import Layout
from castlereg.losses import Batch, as_batch, cell_losses
from castlereg.monotone import keep_signs
from castlereg.network import Form, Packed, Parameters, mask_inputs, pack, squared_adjacency, target_outputs, unpack
from castlereg.regularizers import Own
from castlereg.regularizers.castle import acyclicity_of
from castlereg.regularizers.engine import regularized_loss
from castlereg.regularizers.protocol import Cycles
from castlereg.training.state import (
    MemberInputs,
    MemberState,
    SampledMoments,
    Shared,
    TrainState,
    Weights,
    adam,
    by_node,
    log_columns,
    terms,
)

# A member whose loss is no longer finite goes back one epoch and continues at a tenth of its rate, at most this often.
_MAX_RESTARTS = 5
RATE_AFTER_RESTART = 0.1

# Up to this many validation rows stay standardized while epochs run. More are standardized block by block each time;
# numbers of rows beyond the limit are multiples of the block, see ``castlereg.table.encoding.padded_size``.
_MOST_VALIDATION_ROWS = 65_536
_VALIDATION_BLOCK = 8192

# Steps whose rows are gathered together. Gathering for each step separately was slower, and the rows of a whole epoch
# are a second table. Numbers of steps beyond the limit are multiples of the block, see
# ``castlereg.table.encoding.padded_size``.
_BLOCK = 128
_MOST_AT_ONCE = 1024


class _KeptCycles(NamedTuple):
    """h(A) of the whole graph, kept from step to step."""

    adjacency: Array  # (nodes, nodes), current squared weights of all edges
    value: Array  # (), h(A), updated by its slope since it was last computed
    slope: Array  # (nodes, nodes), from the last time h(A) was computed


_Rows = tuple[Array, Array]  # encoded channels and weights of the rows of some steps
_Carry = tuple[TrainState, Array, _KeptCycles | None]  # from step to step; the array sums objective and terms


def train_member(
    layout: Layout, form: Form, state: MemberState, inputs: MemberInputs, shared: Shared
) -> tuple[MemberState, Array]:
    """Run epochs until they are done or the member stops; return its state and its log.

    The log has shape (epochs, columns), NaN for epochs that were not run.
    """
    shape: Any = inputs.batches.shape[0], len(log_columns(inputs.regularizers))
    loss_of = _validation_loss(layout, inputs, shared)

    def unfinished(carry: tuple[Array, MemberState, Array]) -> Array:
        return (carry[0] < shared.epochs) & carry[1].active

    def epoch(carry: tuple[Array, MemberState, Array]) -> tuple[Array, MemberState, Array]:
        i, before, log = carry
        rate = before.rate * shared.rate_factor[i]
        after, totals = _Epoch(layout, form, i, rate, inputs, shared).run(before.train)
        if before.train.average is not None:
            decay: Any = shared.averaging
            old, new = before.train.average, after.weights.network
            after = after._replace(average=jax.tree.map(lambda o, n: decay * o + (1 - decay) * n, old, new))
        network = unpack(after.weights.network if after.average is None else after.average, form, layout)
        for regularizer, *own in zip(inputs.regularizers, after.weights.regularizers, after.running, strict=True):
            network = regularizer.folded(network, Own(*own))
        loss = loss_of(network)
        finite = jnp.isfinite(totals[0]) & jnp.isfinite(loss)
        row = jnp.concatenate([totals, jnp.stack([loss, rate, finite.astype(totals.dtype)])])
        return i + 1, _end_epoch(before, after, pack(network), loss, finite, shared), log.at[i].set(row)

    start = jnp.zeros((), jnp.int32), state, jnp.full(shape, jnp.nan, inputs.mean_weight.dtype)
    _, state, log = lax.while_loop(unfinished, epoch, start)
    return state, log


def _end_epoch(
    before: MemberState, after: TrainState, network: Packed, validation_loss: Array, finite: Array, shared: Shared
) -> MemberState:
    """Keep the best network and count patience; if the loss is not finite, undo the epoch and lower the rate."""
    epoch = before.epoch + 1
    better = finite & (epoch > shared.warmup) & (validation_loss < before.best_loss)
    best_epoch = jnp.where(better, epoch, before.best_epoch)
    restarts = before.restarts + jnp.where(finite, 0, 1)
    waited = epoch - jnp.maximum(best_epoch, shared.warmup)
    # Adam's moments of an epoch that was undone start from zero.
    undone = before.train._replace(moments=jax.tree.map(jnp.zeros_like, after.moments))
    return MemberState(
        train=jax.tree.map(lambda new, old: jnp.where(finite, new, old), after, undone),
        rate=before.rate * jnp.where(finite, 1.0, RATE_AFTER_RESTART),
        best=jax.tree.map(lambda new, old: jnp.where(better, new, old), network, before.best),
        best_loss=jnp.where(better, validation_loss, before.best_loss),
        best_epoch=best_epoch,
        epoch=epoch,
        restarts=restarts,
        active=(epoch < shared.max_epochs) & (waited < shared.patience) & (restarts <= _MAX_RESTARTS),
    )


def _validation_loss(layout: Layout, inputs: MemberInputs, shared: Shared) -> Callable[[Parameters], Array]:
    """Return the function from a network to the mean loss of the member's validation rows."""
    targets, standardization, rows = jnp.asarray(layout.targets), inputs.standardization, inputs.validation_rows

    def loss(network: Parameters, batch: Batch) -> Array:
        outputs = target_outputs(network, batch.inputs, layout)
        null_loss: Any = standardization.null_loss
        return supervised_loss(cell_losses(outputs, batch, layout, targets, null_loss), batch)

    if rows.shape[0] <= _MOST_VALIDATION_ROWS:
        weight = shared.weight[rows]
        batch = as_batch(shared.inputs[rows], weight / jnp.sum(weight), standardization, layout)
        return lambda network: loss(network, batch)

    def in_blocks(network: Parameters) -> Array:
        def add(number: Array, total: Array) -> Array:
            block = lax.dynamic_slice_in_dim(rows, number * _VALIDATION_BLOCK, _VALIDATION_BLOCK)
            weight = shared.weight[block]
            size = jnp.sum(weight)
            batch = as_batch(shared.inputs[block], weight / jnp.where(size > 0, size, 1.0), standardization, layout)
            return total + jnp.stack([size * loss(network, batch), size])

        total = lax.fori_loop(0, rows.shape[0] // _VALIDATION_BLOCK, add, jnp.zeros(2, inputs.mean_weight.dtype))
        return total[0] / total[1]

    return in_blocks


@dataclass(frozen=True)
class _Epoch:
    """One epoch of a member."""

    layout: Layout
    form: Form
    number: Array  # in this call
    rate: Array
    inputs: MemberInputs
    shared: Shared

    def run(self, state: TrainState) -> tuple[TrainState, Array]:
        """Run the steps; return the arrays that they changed, and the means of objective and terms."""
        inputs, layout, kept = self.inputs, self.layout, None
        if inputs.sampled is not None and acyclicity_of(inputs.regularizers, layout.n_nodes) is not None:
            kept = _keep_cycles(state.weights.network.input_weights, layout)
        totals = jnp.zeros(1 + len(terms(inputs.regularizers)), inputs.mean_weight.dtype)
        step = self.step_of_all if inputs.sampled is None else self.step_of_sampled
        carry = _in_blocks(step, self.gather, inputs.batches.shape[1], inputs.steps, (state, totals, kept))
        return carry[0], carry[1] / inputs.steps

    def gather(self, first: Any, size: int) -> _Rows:
        """Collect the rows of some steps, with weights that turn a sum over the rows of a step into a mean."""
        rows = lax.dynamic_slice_in_dim(self.inputs.batches[self.number], first, size)
        weight = self.shared.weight[rows]
        present = jnp.maximum(jnp.sum(weight > 0, axis=-1, keepdims=True), 1)
        return self.shared.inputs[rows], weight / (present * self.inputs.mean_weight)

    def step_of_all(self, rows: _Rows, first: Any, i: Array, carry: _Carry) -> _Carry:
        """Train all sub-networks on the rows of step ``i``; the rows begin with step ``first``."""
        state, totals, _ = carry
        weights = state.weights
        network = unpack(weights.network, self.form, self.layout)
        logged, running, (gradient, *others) = self.gradient(
            network, state, (rows[0][i - first], rows[1][i - first]), i
        )
        updates, moments = adam.update(Weights(pack(gradient), *others), state.moments)
        weights = self.moved(weights, updates, logged[0])
        if self.layout.is_monotone:
            network = keep_signs(unpack(weights.network, self.form, self.layout), self.layout)
            weights = weights._replace(network=pack(network))
        return TrainState(weights, moments, running, state.average), totals + logged, None

    def step_of_sampled(self, rows: _Rows, first: Any, i: Array, carry: _Carry) -> _Carry:
        """Train the sub-networks that are sampled for step ``i``; the others stay unchanged."""
        (weights, moments, running, average), totals, kept = carry
        assert self.inputs.sampled is not None
        nodes, cycles = self.inputs.sampled[self.number, i], None
        network = unpack(weights.network, self.form, self.layout)
        h = acyclicity_of(self.inputs.regularizers, self.layout.n_nodes)
        if kept is not None and h is not None:
            kept = _refreshed(kept, i, nodes, h)
            cycles = Cycles(kept.value, kept.slope[:, nodes])
        part = _cut_out(network, nodes)
        step_rows = rows[0][i - first], rows[1][i - first]
        logged, running, gradient = self.gradient(part, carry[0], step_rows, i, nodes, cycles)
        updates, moments = _update(gradient, moments, nodes)
        part, others = self.moved((part, weights.regularizers), updates, logged[0])
        part = keep_signs(part, self.layout)
        if kept is not None:
            kept = _with_edges(kept, nodes, squared_adjacency(part.input_weights, self.layout))
        weights = Weights(pack(_put_back(network, nodes, part)), others)
        return TrainState(weights, moments, running, average), totals + logged, kept

    def gradient(
        self, network: Parameters, state: TrainState, rows: _Rows, i: Array, nodes: Any = None, cycles: Any = None
    ) -> tuple[Array, tuple[Any, ...], tuple[Parameters, Any]]:
        """Return objective and terms, the regularizers' running arrays, and the gradient in all that is trained.

        Of step ``i`` and its rows; and of some ``nodes``, with the cycles of the whole graph.
        """
        inputs, shared, layout = self.inputs, self.shared, self.layout
        batch = as_batch(*rows, inputs.standardization, layout)

        def loss(trained: tuple[Parameters, tuple[Any, ...]]) -> Any:
            return regularized_loss(
                trained[0],
                batch,
                inputs.regularizers,
                layout,
                node_weight=shared.node_weight,
                null_loss=inputs.standardization.null_loss,  # type: ignore[arg-type]
                penalized=shared.penalized,
                sampled=nodes,
                cycles=cycles,
                own=tuple(map(Own, trained[1], state.running)),
                drawn=jax.tree.map(lambda a: a[self.number, i], inputs.drawn),
            )

        (total, (by_name, own)), (gradient, others) = jax.value_and_grad(loss, has_aux=True)(
            (network, state.weights.regularizers)
        )
        # Weights of forbidden edges are zero from the start and stay zero.
        gradient = mask_inputs(gradient, inputs.edge_mask if nodes is None else inputs.edge_mask[:, nodes])
        logged = jnp.stack([total, *(by_name[name] for name in terms(inputs.regularizers))])
        return logged, tuple(o.running for o in own), (gradient, others)

    def moved(self, weights: Any, updates: Any, loss: Array) -> Any:
        """Take a step, or none if the loss is not finite: a rate of zero needs no copy of the weights."""
        rate, decay = jnp.where(jnp.isfinite(loss), self.rate, 0.0), self.shared.weight_decay
        if decay is None:
            return jax.tree.map(lambda w, u: w - rate * u, weights, updates)
        return jax.tree.map(lambda w, u: w - rate * (u + decay * w), weights, updates)


# --- steps that train only some sub-networks ---
# They are copied out, updated with their own moments, and written back: the cost of a step then depends on the sampled
# ones, not on the width of the table. Each counts its own steps, so that Adam's first steps of each are as large as its
# later ones.


def _keep_cycles(input_weights: Array, layout: Layout) -> _KeptCycles:
    """Start with a graph whose h(A) is not yet computed."""
    adjacency = squared_adjacency(input_weights, layout)
    return _KeptCycles(adjacency, jnp.zeros((), adjacency.dtype), jnp.zeros_like(adjacency))


def _refreshed(kept: _KeptCycles, step: Array, nodes: Array, h: Acyclicity) -> _KeptCycles:
    """Compute h(A) again after as many steps as it takes to sample every sub-network once.

    In between, a step changes few columns of the graph by little, and the slope gives the change of h. If all nodes are
    sampled, every step computes h(A).
    """
    every = max(1, len(kept.adjacency) // len(nodes))

    def recomputed(kept: _KeptCycles) -> _KeptCycles:
        value, slope = jax.value_and_grad(h)(kept.adjacency)
        return _KeptCycles(kept.adjacency, value, slope)

    return lax.cond(step % every == 0, recomputed, lambda kept: kept, kept)


def _with_edges(kept: _KeptCycles, nodes: Array, squares: Array) -> _KeptCycles:
    """Update the graph with new edges into some nodes, shape (nodes, nodes sampled)."""
    change = squares - kept.adjacency[:, nodes]
    value = jnp.maximum(kept.value + jnp.sum(kept.slope[:, nodes] * change), 0.0)
    return _KeptCycles(kept.adjacency.at[:, nodes].set(squares), value, kept.slope)


def _update(
    gradient: tuple[Parameters, Any], moments: SampledMoments, nodes: Array
) -> tuple[tuple[Parameters, Any], SampledMoments]:
    """Turn the gradient of some sub-networks into a step."""
    network, others = gradient
    shared_step, shared = adam.update(((network.hidden, network.embedding), others), moments.shared)
    node_moments = jax.tree.map(partial(_cut, nodes, axis=0), moments.nodes)
    step, node_moments = jax.vmap(adam.update)(by_node(network), node_moments)
    put = jax.tree.map(partial(_copy_slices, nodes, axis=0, into=True), moments.nodes, node_moments)
    (hidden, embedding), others = shared_step
    step = step._replace(input_weights=step.input_weights.swapaxes(0, 1), hidden=hidden, embedding=embedding)
    return (step, others), SampledMoments(put, shared)


def _put_back(parameters: Parameters, nodes: Array, sampled: Parameters) -> Parameters:
    """Write sampled sub-networks back into the network."""
    put = partial(_copy_slices, nodes, into=True)
    written = jax.tree.map(put, _of_nodes(parameters), _of_nodes(sampled), _axes(parameters))
    return written._replace(hidden=sampled.hidden, embedding=sampled.embedding)


def _cut_out(parameters: Parameters, nodes: Array) -> Parameters:
    """Copy sub-networks out of the network, as :func:`castlereg.network.select` does, but faster on a CPU core."""
    copied = jax.tree.map(partial(_cut, nodes), _of_nodes(parameters), _axes(parameters))
    return copied._replace(hidden=parameters.hidden, embedding=parameters.embedding)


def _cut(nodes: Array, array: Array, axis: int) -> Array:
    shape = (*array.shape[:axis], len(nodes), *array.shape[axis + 1 :])
    return _copy_slices(nodes, jnp.zeros(shape, array.dtype), array, axis, into=False)


def _copy_slices(nodes: Array, to: Array, source: Array, axis: int, *, into: bool) -> Array:
    """Copy slices one after the other, in place: a gather works cell by cell, and a scatter copies the array first."""

    def copy_slice(i: Array, to: Array) -> Array:
        position, origin = (nodes[i], i) if into else (i, nodes[i])
        return lax.dynamic_update_slice_in_dim(to, lax.dynamic_slice_in_dim(source, origin, 1, axis), position, axis)

    return lax.fori_loop(0, len(nodes), copy_slice, to)


def _of_nodes(parameters: Parameters) -> Parameters:
    return parameters._replace(hidden=(), embedding=None)


def _axes(parameters: Parameters) -> Parameters:
    """Return the axis of the nodes in the arrays that each sub-network has for itself."""
    output = None if parameters.output_weights is None else 0
    return Parameters(1, 0, (), output, output, None, parameters.activation)  # type: ignore[arg-type]


def _in_blocks(
    step: Callable[..., Any], gather: Callable[..., Any], padded_steps: int, steps: Array, carry: Any
) -> Any:
    """Run steps one after the other; those of a long epoch in blocks, so that not all rows are gathered at once.

    ``step(gathered, first, i, carry)`` returns the carry after step ``i``; the gathered steps begin with ``first``.
    """
    if padded_steps <= _MOST_AT_ONCE:
        return lax.fori_loop(0, steps, partial(step, gather(0, padded_steps), 0), carry)

    def block(number: Array, carry: Any) -> Any:
        first = number * _BLOCK
        last = jnp.minimum(first + _BLOCK, steps)
        return lax.fori_loop(first, last, partial(step, gather(first, _BLOCK), first), carry)

    return lax.fori_loop(0, -(-steps // _BLOCK), block, carry)
