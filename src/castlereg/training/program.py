"""The compiled program: some epochs of every member of a stack.

:func:`_train_member` is one member's training: steps inside epochs, with the best
weights kept, patience counted and bad epochs undone. :func:`compiled` lays it over the
members of a device and over the devices of a mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jax.sharding import Mesh

from castlereg.acyclicity import AcyclicityFunction
from castlereg.layout import Layout
from castlereg.network import Packed, Parameters, mask_inputs, pack, squared_adjacency, unpack
from castlereg.objective import Batch, Cycles, regularized_loss
from castlereg.regularizers import Regularizer
from castlereg.training import sampled as sampling
from castlereg.training.devices import EVERYWHERE, MEMBERS, compiler_options
from castlereg.training.row_shares import RowShares
from castlereg.training.standardization import Standardization, as_batch
from castlereg.training.step_blocks import steps_in_blocks
from castlereg.training.validation import validation_loss

# A member whose loss is no longer finite goes back one epoch and on at a tenth of its rate, this often.
MAX_RESTARTS = 5
RATE_AFTER_RESTART = 0.1

adam = optax.scale_by_adam()


class Weights(NamedTuple):
    """All that is trained."""

    network: Packed
    heads: tuple[Any, ...]  # of each regularizer


class MemberState(NamedTuple):
    """All that changes while a member trains."""

    weights: Weights
    moments: Any  # of Adam
    regularizer_states: tuple[Any, ...]
    rate: Array
    best: Packed  # the network that predicts, at the epoch of the lowest validation loss
    best_loss: Array
    best_epoch: Array
    epoch: Array  # epochs done
    restarts: Array
    active: Array


class MemberInputs(NamedTuple):
    """What a member trains on in one call."""

    batches: Array  # (epochs, steps, batch), rows of the table
    sampled: Array | None  # (epochs, steps, nodes), sub-networks to train, None for all
    drawn: tuple[Any, ...]  # (epochs, steps, ...), random numbers of each regularizer
    steps: Array  # steps in an epoch
    validation_rows: Array  # (validation,)
    standardization: Standardization
    mean_weight: Array  # of the training rows
    edge_mask: Array  # (channels, trained nodes), 0 where no edge may be
    regularizers: tuple[Regularizer, ...]  # with the member's strengths


class Shared(NamedTuple):
    """What all members train on."""

    inputs: Array  # (rows, channels), encoded but not yet standardized; the last row is empty
    weight: Array  # (rows,), 0 for the empty row
    penalized: Array | None  # (channels, trained nodes), 0 for edges that sparsity leaves alone; None for all
    node_weight: Array  # (nodes,), factor in the reconstruction term
    epochs: Array  # epochs to train in this call
    max_epochs: Array
    patience: Array
    warmup: Array  # epochs before the best epoch and patience count
    acyclic_from: Array  # epochs until the graph is cut, 0 for never


def terms(regularizers: tuple[Regularizer, ...]) -> tuple[str, ...]:
    """Name the terms of the loss."""
    return ("supervised", *(name for regularizer in regularizers for name in regularizer.terms))


def log_columns(regularizers: tuple[Regularizer, ...]) -> tuple[str, ...]:
    """Name the columns of the log."""
    return ("objective", *terms(regularizers), "validation_loss", "learning_rate", "finite")


# A compiled program takes some 400 memory maps, of which Linux gives a process 65530 and XLA crashes beyond. The
# least recently used program makes room for a new one, and is read back from the disk cache when it is needed again.
_MOST_PROGRAMS = 64


@lru_cache(maxsize=_MOST_PROGRAMS)
def compiled(
    layout: Layout, hidden_layer_sizes: tuple[int, ...], mesh: Mesh, lanes: int, quick: bool, arguments: Hashable
) -> Any:
    """Return the jitted program ``(states, inputs, shared) -> [*leaves of states, log]`` for a stack.

    Parameters
    ----------
    layout : Layout
    hidden_layer_sizes : tuple of int
    mesh : Mesh
        Its groups of devices share the members out, the devices of a group the rows of a batch.
    lanes : int
        Members that advance side by side in one group.
    quick : bool
        See :func:`castlereg.training.devices.compiler_options`.
    arguments : hashable
        Structure and shapes of what the program will be called with, from :func:`signature`: each has a program.

    Returns
    -------
    callable
        ``log`` has shape (members, epochs, columns), NaN where an epoch was not run.
    """
    shares = RowShares(mesh.shape["rows"])

    def on_device(states: MemberState, inputs: MemberInputs, shared: Shared) -> tuple[MemberState, Array]:
        def one(member: tuple[MemberState, MemberInputs]) -> tuple[MemberState, Array]:
            return _train_member(layout, hidden_layer_sizes, *member, shared, shares)

        if len(states.rate) == 1:  # one after the other is one: a third less to compile
            alone = one(jax.tree.map(lambda a: a[0], (states, inputs)))
            return jax.tree.map(lambda a: a[None], alone)
        return lax.map(one, (states, inputs), batch_size=lanes if lanes > 1 else None)

    program = jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(MEMBERS, MEMBERS, EVERYWHERE),
        out_specs=(MEMBERS, MEMBERS),
        check_vma=False,
    )

    def flat(states: MemberState, inputs: MemberInputs, shared: Shared) -> list[Array]:
        # To build the states again JAX would run Python, which hears Ctrl-C and loses what the program has returned.
        return jax.tree.leaves(program(states, inputs, shared))

    return jax.jit(flat, donate_argnums=0, compiler_options=compiler_options(mesh, quick=quick))


def signature(*arguments: Any) -> Hashable:
    """Return the structure and the shapes of arguments."""
    leaves, structure = jax.tree.flatten(arguments)
    return structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)


def _train_member(
    layout: Layout,
    hidden_layer_sizes: tuple[int, ...],
    state: MemberState,
    inputs: MemberInputs,
    shared: Shared,
    shares: RowShares,
) -> tuple[MemberState, Array]:
    """Run epochs of one member until they are done or it stops."""
    log = jnp.full((inputs.batches.shape[0], len(log_columns(inputs.regularizers))), jnp.nan, jnp.float32)
    close = epoch_end(layout, hidden_layer_sizes, inputs, shared, shares)

    def unfinished(carry: tuple[Array, MemberState, Array]) -> Array:
        return (carry[0] < shared.epochs) & carry[1].active

    def epoch(carry: tuple[Array, MemberState, Array]) -> tuple[Array, MemberState, Array]:
        i, before, log = carry
        after, totals = run_steps(layout, hidden_layer_sizes, i, before, inputs, shared, shares)
        state, row = close(before, after, totals)
        return i + 1, state, log.at[i].set(row)

    _, state, log = lax.while_loop(unfinished, epoch, (jnp.zeros((), jnp.int32), state, log))
    return state, log


def epoch_end(
    layout: Layout, hidden_layer_sizes: tuple[int, ...], inputs: MemberInputs, shared: Shared, shares: RowShares
) -> Callable[[MemberState, Moving, Array], tuple[MemberState, Array]]:
    """Return what ends an epoch: from the state before it, what its steps changed and their totals to state and log."""
    loss_of = validation_loss(
        lambda rows: _gather(rows, inputs, shared, shares),
        inputs.validation_rows,
        inputs.standardization,
        layout,
        shares,
    )

    def close(before: MemberState, after: Moving, totals: Array) -> tuple[MemberState, Array]:
        network = unpack(after.weights.network, hidden_layer_sizes, layout.output_width)
        for regularizer, *own in zip(inputs.regularizers, after.weights.heads, after.regularizer_states, strict=True):
            network = regularizer.folded(network, *own)
        packed = pack(network)
        loss = loss_of(unpack(packed, hidden_layer_sizes, layout.output_width))
        finite = jnp.isfinite(totals[0]) & jnp.isfinite(loss)
        row = jnp.concatenate([totals, jnp.stack([loss, before.rate, finite.astype(jnp.float32)])])
        return _close_epoch(before, after, packed, loss, finite, shared), row

    return close


class Moving(NamedTuple):
    """What a step changes."""

    weights: Weights
    moments: Any
    regularizer_states: tuple[Any, ...]


def run_steps(
    layout: Layout,
    hidden_layer_sizes: tuple[int, ...],
    epoch: Array,
    state: MemberState,
    inputs: MemberInputs,
    shared: Shared,
    shares: RowShares,
) -> tuple[Moving, Array]:
    """Take one epoch's steps; return what they changed and the mean of objective and terms."""
    steps = _Steps(layout, hidden_layer_sizes, epoch, state, inputs, shared, shares)
    start = Moving(state.weights, state.moments, state.regularizer_states)
    totals = jnp.zeros(1 + len(terms(inputs.regularizers)), jnp.float32)
    take = partial(steps_in_blocks, gather=steps.gather, room=inputs.batches.shape[1], steps=inputs.steps)
    if inputs.sampled is None:
        after, totals = take(steps.whole, carry=(start, totals))
    else:
        measured = steps.measure is not None
        kept = sampling.keep_cycles(state.weights.network.input_weights, layout) if measured else None
        (after, totals), _ = take(steps.sampled, carry=((start, totals), kept))
    return after, shares.mean(totals) / inputs.steps


Rows = tuple[Array, Array]  # of some steps: their channels as encoded, and weights
Gradient = tuple[tuple[Array, tuple[dict[str, Array], tuple[Any, ...]]], tuple[Parameters, Any]]


@dataclass(frozen=True)
class _Steps:
    """The steps of one epoch of a member: those that train all sub-networks, and those that train some."""

    layout: Layout
    hidden_layer_sizes: tuple[int, ...]
    epoch: Array
    state: MemberState  # before the epoch
    inputs: MemberInputs
    shared: Shared
    shares: RowShares

    @property
    def measure(self) -> str | AcyclicityFunction | None:
        """The measure of cycles, if a regularizer has one."""
        return next((one.measures_cycles_by for one in self.inputs.regularizers if one.measures_cycles_by), None)

    def gather(self, first: Any, size: int) -> Rows:
        """Collect the rows of some steps."""
        batches = lax.dynamic_slice_in_dim(self.inputs.batches[self.epoch], first, size)
        return _gather(batches, self.inputs, self.shared, self.shares)

    def whole(self, rows: Rows, first: Any, i: Array, carry: tuple[Moving, Array]) -> tuple[Moving, Array]:
        """Train all sub-networks on the rows of step ``i``; the rows begin with step ``first``."""
        (weights, moments, states), totals = carry
        batch = self._batch(rows, i - first)
        value, (of_network, of_heads) = self._gradient(self._unpacked(weights), weights.heads, states, batch, i)
        updates, moments = adam.update(self.shares.mean(Weights(pack(of_network), of_heads)), moments)
        weights = self._moved(weights, updates, value[0])
        return Moving(weights, moments, value[1][1]), totals + self._logged(value)

    def sampled(
        self, rows: Rows, first: Any, i: Array, carry: tuple[tuple[Moving, Array], sampling.KeptCycles | None]
    ) -> tuple[tuple[Moving, Array], sampling.KeptCycles | None]:
        """Train the sub-networks sampled for step ``i``, and leave the others alone."""
        ((weights, moments, states), totals), kept = carry
        assert self.inputs.sampled is not None
        nodes = self.inputs.sampled[self.epoch, i]
        network = self._unpacked(weights)
        own, cycles = sampling.cut_out(network, nodes), None
        if kept is not None and self.measure is not None:
            kept = sampling.refreshed(kept, i, nodes, self.measure)
            cycles = Cycles(kept.value, kept.slope[:, nodes])
        batch = self._batch(rows, i - first)
        value, slope = self._gradient(own, weights.heads, states, batch, i, sampled=nodes, cycles=cycles)
        updates, moments = sampling.update(adam, self.shares.mean(slope), moments, nodes)
        own, heads = self._moved((own, weights.heads), updates, value[0])
        if kept is not None:
            kept = sampling.moved(kept, nodes, squared_adjacency(own.input_weights, self.layout))
        weights = Weights(pack(sampling.put_back(network, nodes, own)), heads)
        return (Moving(weights, moments, value[1][1]), totals + self._logged(value)), kept

    def _gradient(
        self, network: Parameters, heads: tuple[Any, ...], states: tuple[Any, ...], batch: Batch, i: Array, **some: Any
    ) -> Gradient:
        """Return objective, terms and states of the regularizers, and the gradient in network and heads."""
        shared, inputs = self.shared, self.inputs

        def loss(trained: tuple[Any, tuple[Any, ...]]) -> tuple[Array, Any]:
            return regularized_loss(
                trained[0],
                batch,
                inputs.regularizers,
                self.layout,
                node_weight=shared.node_weight,
                null_loss=inputs.standardization.null_loss,  # type: ignore[arg-type]
                penalized=shared.penalized,
                progress=jnp.minimum(self.state.epoch / jnp.maximum(shared.acyclic_from, 1), 1.0),
                heads=trained[1],
                states=states,
                drawn=jax.tree.map(lambda a: a[self.epoch, i], inputs.drawn),
                **some,
            )

        value, (of_network, of_heads) = jax.value_and_grad(loss, has_aux=True)((network, heads))
        # Weights of edges that may not be are zero from the start and stay so.
        mask = inputs.edge_mask[:, some["sampled"]] if some else inputs.edge_mask
        return value, (mask_inputs(of_network, mask), of_heads)

    def _batch(self, rows: Rows, place: Array) -> Batch:
        return as_batch(rows[0][place], rows[1][place], self.inputs.standardization, self.layout)

    def _unpacked(self, weights: Weights) -> Parameters:
        return unpack(weights.network, self.hidden_layer_sizes, self.layout.output_width)

    def _moved(self, weights: Any, updates: Any, loss: Array) -> Any:
        """Take a step, none if the loss is not finite; known to come last, it needs no copy of the weights."""
        rate = jnp.where(jnp.isfinite(loss), self.state.rate, 0.0)
        return jax.tree.map(lambda w, u: w - rate * u, weights, updates)

    def _logged(self, value: tuple[Array, tuple[dict[str, Array], tuple[Any, ...]]]) -> Array:
        total, (by_name, _) = value
        return jnp.stack([total, *(by_name[name] for name in terms(self.inputs.regularizers))])


def start_moments(weights: Weights, hidden_layer_sizes: tuple[int, ...], output_width: int, *, is_sampled: bool) -> Any:
    """Return Adam's moments of zero for the weights of one member."""
    if not is_sampled:
        return adam.init(weights)
    return sampling.start_moments(adam, unpack(weights.network, hidden_layer_sizes, output_width), weights.heads)


def _gather(rows: Array, inputs: MemberInputs, shared: Shared, shares: RowShares) -> tuple[Array, Array]:
    """Collect this device's rows of a batch, shape (..., batch).

    Returns their channels as encoded, and weights that make a sum over them a mean, or one that :class:`RowShares`
    makes a mean over all rows of the batch.
    """
    rows = shares.own(rows, empty_row=len(shared.weight) - 1)
    weight = shared.weight[rows]
    present = jnp.maximum(shares.sum(jnp.sum(weight > 0, axis=-1, keepdims=True)), 1)
    return shared.inputs[rows], weight / (present * inputs.mean_weight / shares.n_devices)


def _close_epoch(
    before: MemberState, after: Moving, network: Packed, validation_loss: Array, finite: Array, shared: Shared
) -> MemberState:
    """Keep the best network, count patience; undo an epoch that is not finite and lower the rate."""
    choose = partial(jax.tree.map, lambda new, old: jnp.where(finite, new, old))
    epoch = before.epoch + 1
    better = finite & (epoch > shared.warmup) & (validation_loss < before.best_loss)
    best_epoch = jnp.where(better, epoch, before.best_epoch)
    restarts = before.restarts + jnp.where(finite, 0, 1)
    waited = epoch - jnp.maximum(best_epoch, shared.warmup)
    active = (epoch < shared.max_epochs) & (waited < shared.patience) & (restarts <= MAX_RESTARTS)
    return MemberState(
        weights=choose(after.weights, before.weights),
        moments=choose(after.moments, jax.tree.map(jnp.zeros_like, after.moments)),
        regularizer_states=choose(after.regularizer_states, before.regularizer_states),
        rate=before.rate * jnp.where(finite, 1.0, RATE_AFTER_RESTART),
        best=jax.tree.map(lambda new, old: jnp.where(better, new, old), network, before.best),
        best_loss=jnp.where(better, validation_loss, before.best_loss),
        best_epoch=best_epoch,
        epoch=epoch,
        restarts=restarts,
        active=active,
    )
