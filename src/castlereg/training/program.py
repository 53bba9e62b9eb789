"""The compiled programs: epochs of every member of a stack.

:func:`_train_member` is one member's training: steps inside epochs, with the best weights kept, patience counted and
bad epochs undone. :func:`compiled` runs it for the members of a device and over the devices of a mesh;
:func:`compiled_in_parts` does the same in two programs, for a table whose rows come in chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh

from castlereg.castle import supervised_loss
from castlereg.layout import Layout
from castlereg.losses import Batch, as_batch, cell_losses
from castlereg.monotone import keep_signs
from castlereg.network import Form, Packed, Parameters, mask_inputs, pack, squared_adjacency, target_outputs, unpack
from castlereg.regularizers import Own, Regularizer
from castlereg.regularizers.castle import acyclicity_of
from castlereg.regularizers.engine import regularized_loss
from castlereg.regularizers.protocol import Cycles
from castlereg.training import sampled as sampling
from castlereg.training.devices import EVERYWHERE, MEMBERS, compiler_options, trim_heap
from castlereg.training.state import MemberInputs, MemberState, Moving, Shared, Weights, adam

# A member whose loss is no longer finite goes back one epoch and continues at a tenth of its rate, at most this often.
MAX_RESTARTS = 5
RATE_AFTER_RESTART = 0.1

# A compiled program takes 5 to 10 MB and 150 to 400 memory maps. Linux allows a process 65530 maps, and XLA crashes
# beyond. The least recently used program is dropped for a new one, and read from the disk cache when needed again.
_MOST_PROGRAMS = 16
_MOST_IN_PARTS = 4  # pairs of programs

# Up to this many validation rows stay standardized while epochs run. More are standardized block by block each time;
# numbers of rows beyond the limit are multiples of the block, see ``castlereg.table.table.rounded_up``.
_MOST_VALIDATION_ROWS = 65_536
_VALIDATION_BLOCK = 8192


def log_columns(regularizers: tuple[Regularizer, ...]) -> tuple[str, ...]:
    """Name the columns of the log."""
    return ("objective", *terms(regularizers), "validation_loss", "learning_rate", "finite")


@lru_cache(maxsize=_MOST_PROGRAMS)
def compiled(layout: Layout, form: Form, mesh: Mesh, lanes: int, quick: bool, arguments: Hashable) -> Any:
    """Return the jitted program ``(states, inputs, shared) -> [*leaves of states, log]`` for a stack.

    The devices of the mesh share the members, of which ``lanes`` advance side by side on each. Each structure and shape
    of arguments, see :func:`signature`, has its own program. The log has shape (members, epochs, columns), NaN for
    epochs that were not run.
    """
    trim_heap()
    program = _over_members(partial(_train_member, layout, form), 2, mesh, lanes)

    def flat(states: MemberState, inputs: MemberInputs, shared: Shared) -> list[Array]:
        # To rebuild the states, JAX would run Python code, where Ctrl-C would lose what the program has returned.
        return jax.tree.leaves(program(states, inputs, shared))

    return jax.jit(flat, donate_argnums=0, compiler_options=compiler_options(mesh, quick=quick))


@lru_cache(maxsize=_MOST_IN_PARTS)
def compiled_in_parts(layout: Layout, form: Form, mesh: Mesh, lanes: int, arguments: Hashable) -> tuple[Any, Any]:
    """Return two jitted programs for rows that come in chunks, both of (states, moving, totals, inputs, shared).

    The first trains on a chunk, the rows of ``inputs.batches``, and returns ``(moving, totals)``. The second ends an
    epoch and returns ``(states, log)``; its totals are means over the steps.
    """
    trim_heap()
    first = jnp.zeros((), jnp.int32)

    def on_chunk(
        before: MemberState, moving: Moving, totals: Array, inputs: MemberInputs, shared: Shared
    ) -> tuple[Moving, Array]:
        steps = jnp.where(before.active, inputs.steps, 0)
        after, means = run_steps(
            layout, form, first, before._replace(moving=moving), inputs._replace(steps=steps), shared
        )
        return after, totals + jnp.where(steps > 0, means * steps, 0.0)

    def end(
        before: MemberState, moving: Moving, totals: Array, inputs: MemberInputs, shared: Shared
    ) -> tuple[MemberState, Array]:
        after, row = _epoch_end(layout, form, inputs, shared)(first, before, moving, totals)
        state: MemberState = jax.tree.map(lambda new, old: jnp.where(before.active, new, old), after, before)
        return state, jnp.where(before.active, row, jnp.nan)

    programs = [_over_members(part, 4, mesh, lanes) for part in (on_chunk, end)]
    options = compiler_options(mesh)
    return (
        jax.jit(programs[0], donate_argnums=1, compiler_options=options),
        jax.jit(programs[1], compiler_options=options),
    )


def _over_members(part: Callable[..., Any], n_arguments: int, mesh: Mesh, lanes: int) -> Any:
    """Run a function of one member's arguments and the shared ones for all members of a mesh."""

    def on_device(*arguments: Any) -> Any:
        *of_members, shared = arguments
        if len(jax.tree.leaves(of_members)[0]) == 1:  # a loop over a single member would take a third more to compile
            single = part(*jax.tree.map(lambda a: a[0], of_members), shared)
            return jax.tree.map(lambda a: a[None], single)
        return lax.map(lambda member: part(*member, shared), of_members, batch_size=lanes if lanes > 1 else None)

    in_specs = (*(MEMBERS,) * n_arguments, EVERYWHERE)
    return jax.shard_map(on_device, mesh=mesh, in_specs=in_specs, out_specs=(MEMBERS, MEMBERS), check_vma=False)


def signature(*arguments: Any) -> Hashable:
    """Return the structure and the shapes of arguments."""
    leaves, structure = jax.tree.flatten(arguments)
    return structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)


def _train_member(
    layout: Layout, form: Form, state: MemberState, inputs: MemberInputs, shared: Shared
) -> tuple[MemberState, Array]:
    """Run epochs of one member until they are done or it stops."""
    log = jnp.full((inputs.batches.shape[0], len(log_columns(inputs.regularizers))), jnp.nan, inputs.mean_weight.dtype)
    close = _epoch_end(layout, form, inputs, shared)

    def unfinished(carry: tuple[Array, MemberState, Array]) -> Array:
        return (carry[0] < shared.epochs) & carry[1].active

    def epoch(carry: tuple[Array, MemberState, Array]) -> tuple[Array, MemberState, Array]:
        i, before, log = carry
        after, totals = run_steps(layout, form, i, before, inputs, shared)
        state, row = close(i, before, after, totals)
        return i + 1, state, log.at[i].set(row)

    _, state, log = lax.while_loop(unfinished, epoch, (jnp.zeros((), jnp.int32), state, log))
    return state, log


def _epoch_end(
    layout: Layout, form: Form, inputs: MemberInputs, shared: Shared
) -> Callable[[Array, MemberState, Moving, Array], tuple[MemberState, Array]]:
    """Return the function that ends an epoch.

    It takes the state before the epoch, the arrays that its steps changed and their totals; it returns state and log.
    """
    loss_of = _validation_loss(layout, inputs, shared)

    def close(epoch: Array, before: MemberState, after: Moving, totals: Array) -> tuple[MemberState, Array]:
        regularizers, rate_factor = _epoch_of(inputs, epoch)
        after = _averaged(before.moving, after, inputs.averaging)
        predicting = after.weights.network if after.average is None else after.average
        network = unpack(predicting, form, layout)
        for regularizer, *own in zip(regularizers, after.weights.own, after.running, strict=True):
            network = regularizer.folded(network, Own(*own))
        packed = pack(network)
        loss = loss_of(unpack(packed, form, layout))
        finite = jnp.isfinite(totals[0]) & jnp.isfinite(loss)
        row = jnp.concatenate([totals, jnp.stack([loss, before.rate * rate_factor, finite.astype(totals.dtype)])])
        return _close_epoch(before, after, packed, loss, finite, shared), row

    return close


def _averaged(before: Moving, after: Moving, decay: Array | None) -> Moving:
    """Add the weights of an epoch to their running average, if the plan has one."""
    if before.average is None or decay is None:
        return after
    average = jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, before.average, after.weights.network)
    return after._replace(average=average)


def _validation_loss(layout: Layout, inputs: MemberInputs, shared: Shared) -> Callable[[Parameters], Array]:
    """Return the function from a network to the mean loss of the member's validation rows."""
    targets, by, rows = jnp.asarray(layout.targets), inputs.standardization, inputs.validation_rows

    def loss(network: Parameters, batch: Batch) -> Array:
        outputs = target_outputs(network, batch.inputs, layout)
        return supervised_loss(cell_losses(outputs, batch, layout, targets, by.null_loss), batch)  # type: ignore[arg-type]

    if rows.shape[0] <= _MOST_VALIDATION_ROWS:
        weight = shared.weight[rows]
        batch = as_batch(shared.inputs[rows], weight / jnp.sum(weight), by, layout)
        return lambda network: loss(network, batch)

    def in_blocks(network: Parameters) -> Array:
        def add(number: Array, total: Array) -> Array:
            block = lax.dynamic_slice_in_dim(rows, number * _VALIDATION_BLOCK, _VALIDATION_BLOCK)
            weight = shared.weight[block]
            size = jnp.sum(weight)
            mean = loss(network, as_batch(shared.inputs[block], weight / jnp.where(size > 0, size, 1.0), by, layout))
            return total + jnp.stack([size * mean, size])

        total = lax.fori_loop(0, rows.shape[0] // _VALIDATION_BLOCK, add, jnp.zeros(2, inputs.mean_weight.dtype))
        return total[0] / total[1]

    return in_blocks


def _close_epoch(
    before: MemberState, after: Moving, network: Packed, validation_loss: Array, finite: Array, shared: Shared
) -> MemberState:
    """Keep the best network and count patience; if the loss is not finite, undo the epoch and lower the rate."""
    choose = partial(jax.tree.map, lambda new, old: jnp.where(finite, new, old))
    epoch = before.epoch + 1
    better = finite & (epoch > shared.warmup) & (validation_loss < before.best_loss)
    best_epoch = jnp.where(better, epoch, before.best_epoch)
    restarts = before.restarts + jnp.where(finite, 0, 1)
    waited = epoch - jnp.maximum(best_epoch, shared.warmup)
    active = (epoch < shared.max_epochs) & (waited < shared.patience) & (restarts <= MAX_RESTARTS)
    return MemberState(
        moving=Moving(
            weights=choose(after.weights, before.moving.weights),
            moments=choose(after.moments, jax.tree.map(jnp.zeros_like, after.moments)),
            running=choose(after.running, before.moving.running),
            average=choose(after.average, before.moving.average),
        ),
        rate=before.rate * jnp.where(finite, 1.0, RATE_AFTER_RESTART),
        best=jax.tree.map(lambda new, old: jnp.where(better, new, old), network, before.best),
        best_loss=jnp.where(better, validation_loss, before.best_loss),
        best_epoch=best_epoch,
        epoch=epoch,
        restarts=restarts,
        active=active,
    )


Rows = tuple[Array, Array]  # encoded channels and weights of the rows of some steps
Aux = tuple[dict[str, Array], tuple[Own, ...]]

# Steps whose rows are gathered together. Gathering for each step separately was slower, and the rows of a whole epoch
# are a second table. Numbers of steps beyond the limit are multiples of the block, see
# ``castlereg.table.table.rounded_up``.
_BLOCK = 128
_MOST_AT_ONCE = 1024


def terms(regularizers: tuple[Regularizer, ...]) -> tuple[str, ...]:
    """Name the terms of the loss."""
    return ("supervised", *(name for regularizer in regularizers for name in regularizer.terms))


def run_steps(
    layout: Layout,
    form: Form,
    epoch: Array,
    state: MemberState,
    inputs: MemberInputs,
    shared: Shared,
) -> tuple[Moving, Array]:
    """Run the steps of one epoch; return the arrays that they changed, and the means of objective and terms."""
    regularizers, rate_factor = _epoch_of(inputs, epoch)
    steps = _Steps(layout, form, epoch, state.rate * rate_factor, regularizers, inputs, shared)
    totals = jnp.zeros(1 + len(terms(regularizers)), inputs.mean_weight.dtype)
    take = partial(_in_blocks, gather=steps.gather, room=inputs.batches.shape[1], steps=inputs.steps)
    if inputs.sampled is None:
        after, totals = take(steps.train_all, carry=(state.moving, totals))
    else:
        kept = None
        if acyclicity_of(regularizers, layout.n_nodes) is not None:
            kept = sampling.keep_cycles(state.moving.weights.network.input_weights, layout)
        (after, totals), _ = take(steps.train_sampled, carry=((state.moving, totals), kept))
    return after, totals / inputs.steps


@dataclass(frozen=True)
class _Steps:
    layout: Layout
    form: Form
    epoch: Array
    rate: Array
    regularizers: tuple[Regularizer, ...]
    inputs: MemberInputs
    shared: Shared

    def gather(self, first: Any, size: int) -> Rows:
        """Collect the rows of some steps, with weights that turn a sum over the rows of a step into a mean."""
        rows = lax.dynamic_slice_in_dim(self.inputs.batches[self.epoch], first, size)
        weight = self.shared.weight[rows]
        present = jnp.maximum(jnp.sum(weight > 0, axis=-1, keepdims=True), 1)
        return self.shared.inputs[rows], weight / (present * self.inputs.mean_weight)

    def train_all(self, rows: Rows, first: Any, i: Array, carry: tuple[Moving, Array]) -> tuple[Moving, Array]:
        """Train all sub-networks on the rows of step ``i``; the rows begin with step ``first``."""
        (weights, moments, running, average), totals = carry
        batch = self._batch(rows, i - first)
        value, (of_network, of_own) = self._gradient(self._unpacked(weights), weights.own, running, batch, i)
        updates, moments = adam.update(Weights(pack(of_network), of_own), moments)
        weights = self._moved(weights, updates, value[0])
        if self.layout.is_monotone:
            weights = weights._replace(network=pack(keep_signs(self._unpacked(weights), self.layout)))
        return Moving(weights, moments, _running(value[1]), average), totals + self._logged(value)

    def train_sampled(
        self, rows: Rows, first: Any, i: Array, carry: tuple[tuple[Moving, Array], sampling.KeptCycles | None]
    ) -> tuple[tuple[Moving, Array], sampling.KeptCycles | None]:
        """Train the sub-networks sampled for step ``i``; the others stay unchanged."""
        ((weights, moments, running, average), totals), kept = carry
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
        part = keep_signs(part, self.layout)
        if kept is not None:
            kept = sampling.moved(kept, nodes, squared_adjacency(part.input_weights, self.layout))
        weights = Weights(pack(sampling.put_back(network, nodes, part)), own)
        return (Moving(weights, moments, _running(value[1]), average), totals + self._logged(value)), kept

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
        # Weights of forbidden edges are zero from the start and stay zero.
        mask = inputs.edge_mask[:, some["sampled"]] if some else inputs.edge_mask
        return value, (mask_inputs(of_network, mask), of_own)

    def _batch(self, rows: Rows, position: Array) -> Batch:
        return as_batch(rows[0][position], rows[1][position], self.inputs.standardization, self.layout)

    def _unpacked(self, weights: Weights) -> Parameters:
        return unpack(weights.network, self.form, self.layout)

    def _moved(self, weights: Any, updates: Any, loss: Array) -> Any:
        """Take a step, or none if the loss is not finite: a rate of zero needs no copy of the weights."""
        rate = jnp.where(jnp.isfinite(loss), self.rate, 0.0)
        decay = self.inputs.weight_decay
        if decay is None:
            return jax.tree.map(lambda w, u: w - rate * u, weights, updates)
        return jax.tree.map(lambda w, u: w - rate * (u + decay * w), weights, updates)

    def _logged(self, value: tuple[Array, Aux]) -> Array:
        total, (by_name, _) = value
        return jnp.stack([total, *(by_name[name] for name in terms(self.regularizers))])


def _running(aux: Aux) -> tuple[Any, ...]:
    return tuple(own.running for own in aux[1])


def _in_blocks(
    step: Callable[[Any, Any, Array, Any], Any], gather: Callable[[Any, int], Any], room: int, steps: Array, carry: Any
) -> Any:
    """Run steps one after the other; those of a long epoch in blocks, so that not all rows are gathered at once.

    ``step(gathered, first, i, carry)`` returns the carry after step ``i``; the gathered steps begin with ``first``.
    """
    if room <= _MOST_AT_ONCE:
        return lax.fori_loop(0, steps, partial(step, gather(0, room), 0), carry)

    def block(number: Array, carry: Any) -> Any:
        first = number * _BLOCK
        last = jnp.minimum(first + _BLOCK, steps)
        return lax.fori_loop(first, last, partial(step, gather(first, _BLOCK), first), carry)

    return lax.fori_loop(0, -(-steps // _BLOCK), block, carry)


def _epoch_of(inputs: MemberInputs, epoch: Array) -> tuple[tuple[Regularizer, ...], Array]:
    """Return the regularizers of an epoch, and the factor of its learning rate."""
    regularizers: tuple[Regularizer, ...] = jax.tree.map(lambda strength: strength[epoch], inputs.regularizers)
    return regularizers, inputs.rate_factor[epoch]
