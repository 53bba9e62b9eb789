"""The compiled program: some epochs of every member of a stack.

:func:`_train_member` is one member's training: steps inside epochs, with the best
weights kept, patience counted and bad epochs undone. :func:`compiled` lays it over the
members of a device and over the devices of a mesh.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jax.sharding import Mesh

from castlereg.layout import Layout
from castlereg.network import Packed, mask_inputs, pack, unpack
from castlereg.objective import (
    Batch,
    Objective,
    Strengths,
    node_losses,
    supervised_loss,
    target_outputs,
)
from castlereg.training.devices import EVERYWHERE, MEMBERS

# A member whose loss is no longer finite goes back one epoch and on at a tenth of its rate, this often.
MAX_RESTARTS = 5
RATE_AFTER_RESTART = 0.1

adam = optax.scale_by_adam()


class MemberState(NamedTuple):
    """All that changes while a member trains."""

    weights: Packed
    moments: Any  # of Adam
    rate: Array
    best: Packed  # at the epoch of the lowest validation loss
    best_loss: Array
    best_epoch: Array
    epoch: Array  # epochs done
    restarts: Array
    active: Array


class MemberInputs(NamedTuple):
    """What a member trains on in one call."""

    batches: Array  # (epochs, steps, batch), rows of the table
    sampled: Array | None  # (epochs, steps, nodes), sub-networks to train, None for all
    steps: Array  # steps in an epoch
    validation_rows: Array  # (validation,)
    shift: Array  # (channels,)
    scale: Array  # (channels,), what centred channels are multiplied by
    mean_weight: Array  # of the training rows
    strengths: Strengths


class Shared(NamedTuple):
    """What all members train on."""

    inputs: Array  # (rows, channels), encoded but not yet standardized; the last row is empty
    weight: Array  # (rows,), 0 for the empty row
    edge_mask: Array  # (channels, trained nodes), 0 where no edge may be
    node_weight: Array  # (nodes,), factor in the reconstruction term
    epochs: Array  # epochs to train in this call
    max_epochs: Array
    patience: Array
    warmup: Array  # epochs before the best epoch and patience count


def log_columns(objective: Objective) -> tuple[str, ...]:
    """Name the columns of the log."""
    return ("objective", *objective.terms, "validation_loss", "learning_rate", "finite")


@lru_cache(maxsize=64)
def compiled(objective: Objective, hidden_layer_sizes: tuple[int, ...], mesh: Mesh, lanes: int) -> Any:
    """Return the jitted program ``(states, inputs, shared) -> (states, log)`` for a stack.

    Parameters
    ----------
    objective : Objective
    hidden_layer_sizes : tuple of int
    mesh : Mesh
        Its devices share the members out.
    lanes : int
        Members that advance side by side on one device.

    Returns
    -------
    callable
        ``log`` has shape (members, epochs, columns), NaN where an epoch was not run.
    """

    def on_device(states: MemberState, inputs: MemberInputs, shared: Shared) -> tuple[MemberState, Array]:
        def one(member: tuple[MemberState, MemberInputs]) -> tuple[MemberState, Array]:
            return _train_member(objective, hidden_layer_sizes, *member, shared)

        return lax.map(one, (states, inputs), batch_size=lanes if lanes > 1 else None)

    program = jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(MEMBERS, MEMBERS, EVERYWHERE),
        out_specs=(MEMBERS, MEMBERS),
        check_vma=False,
    )
    return jax.jit(program, donate_argnums=0)


def _train_member(
    objective: Objective,
    hidden_layer_sizes: tuple[int, ...],
    state: MemberState,
    inputs: MemberInputs,
    shared: Shared,
) -> tuple[MemberState, Array]:
    """Run epochs of one member until they are done or it stops."""
    layout = objective.layout
    log = jnp.full((inputs.batches.shape[0], len(log_columns(objective))), jnp.nan, jnp.float32)
    validation = _gather(inputs.validation_rows, inputs, shared, layout)
    validation = validation._replace(weight=validation.weight / jnp.sum(validation.weight))
    targets = jnp.asarray(layout.targets)

    def validation_loss(weights: Packed) -> Array:
        outputs = target_outputs(unpack(weights, hidden_layer_sizes, layout.output_width), validation.inputs, objective)
        return supervised_loss(node_losses(outputs, validation.truth[:, targets], layout, targets), validation)

    def unfinished(carry: tuple[Array, MemberState, Array]) -> Array:
        return (carry[0] < shared.epochs) & carry[1].active

    def epoch(carry: tuple[Array, MemberState, Array]) -> tuple[Array, MemberState, Array]:
        i, before, log = carry
        weights, moments, terms = _run_steps(objective, hidden_layer_sizes, i, before, inputs, shared)
        loss = validation_loss(weights)
        finite = jnp.isfinite(terms[0]) & jnp.isfinite(loss)
        row = jnp.concatenate([terms, jnp.stack([loss, before.rate, finite.astype(jnp.float32)])])
        return i + 1, _close_epoch(before, weights, moments, loss, finite, shared), log.at[i].set(row)

    _, state, log = lax.while_loop(unfinished, epoch, (jnp.zeros((), jnp.int32), state, log))
    return state, log


def _run_steps(
    objective: Objective,
    hidden_layer_sizes: tuple[int, ...],
    epoch: Array,
    state: MemberState,
    inputs: MemberInputs,
    shared: Shared,
) -> tuple[Packed, Any, Array]:
    """Take one epoch's steps; return the weights, the moments and the mean of objective and terms."""
    layout = objective.layout
    batches = _gather(inputs.batches[epoch], inputs, shared, layout)
    value_and_gradient = jax.value_and_grad(objective, has_aux=True)

    def step(i: Array, carry: tuple[Packed, Any, Array]) -> tuple[Packed, Any, Array]:
        weights, moments, totals = carry
        batch = jax.tree.map(lambda a: a[i], batches)
        sampled = None if inputs.sampled is None else inputs.sampled[epoch, i]
        parameters = unpack(weights, hidden_layer_sizes, layout.output_width)
        (total, terms), gradient = value_and_gradient(parameters, batch, inputs.strengths, shared.node_weight, sampled)
        # Weights of edges that may not be are zero from the start and stay so.
        updates, moments = adam.update(pack(mask_inputs(gradient, shared.edge_mask)), moments)
        weights = jax.tree.map(lambda w, u: w - state.rate * u, weights, updates)
        return weights, moments, totals + jnp.stack([total, *(terms[name] for name in objective.terms)])

    totals = jnp.zeros(1 + len(objective.terms), jnp.float32)
    weights, moments, totals = lax.fori_loop(0, inputs.steps, step, (state.weights, state.moments, totals))
    return weights, moments, totals / inputs.steps


def _gather(rows: Array, inputs: MemberInputs, shared: Shared, layout: Layout) -> Batch:
    """Collect batches of rows, shape (..., batch), standardized by the member's own training rows."""
    encoded = shared.inputs[rows]
    x = (encoded - inputs.shift) * inputs.scale
    numeric = layout.is_kind("numeric")[layout.channel_nodes]
    truth = x if numeric.all() else jnp.where(numeric, x, encoded)
    truth = truth[..., None] if layout.n_channels == layout.n_nodes else truth[..., layout.output_channels]
    weight = shared.weight[rows]
    present = jnp.maximum(jnp.sum(weight > 0, axis=-1, keepdims=True), 1)
    return Batch(x, truth, weight / (present * inputs.mean_weight))


def _close_epoch(
    before: MemberState, weights: Packed, moments: Any, validation_loss: Array, finite: Array, shared: Shared
) -> MemberState:
    """Keep the best weights, count patience; undo an epoch that is not finite and lower the rate."""
    choose = partial(jax.tree.map, lambda new, old: jnp.where(finite, new, old))
    epoch = before.epoch + 1
    better = finite & (epoch > shared.warmup) & (validation_loss < before.best_loss)
    best_epoch = jnp.where(better, epoch, before.best_epoch)
    restarts = before.restarts + jnp.where(finite, 0, 1)
    waited = epoch - jnp.maximum(best_epoch, shared.warmup)
    active = (epoch < shared.max_epochs) & (waited < shared.patience) & (restarts <= MAX_RESTARTS)
    return MemberState(
        weights=choose(weights, before.weights),
        moments=choose(moments, jax.tree.map(jnp.zeros_like, moments)),
        rate=before.rate * jnp.where(finite, 1.0, RATE_AFTER_RESTART),
        best=jax.tree.map(lambda new, old: jnp.where(better, new, old), weights, before.best),
        best_loss=jnp.where(better, validation_loss, before.best_loss),
        best_epoch=best_epoch,
        epoch=epoch,
        restarts=restarts,
        active=active,
    )
