"""Steps that train only some sub-networks: copy them out, update them with their own moments, write them back.

If each step samples a few of many sub-networks, all others stay unchanged: the cost of a step depends on the sampled
ones, not on the width of the table. Each sub-network counts its own steps, so that Adam's first steps of each are as
large as its later ones.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from castlereg.acyclicity import Acyclicity
from castlereg.layout import Layout
from castlereg.network import Parameters, squared_adjacency

# Axis of the nodes in the arrays that each sub-network has for itself; the shared layers have none.
_NODE_AXES = Parameters(1, 0, (), 0, 0)  # type: ignore[arg-type]


class KeptCycles(NamedTuple):
    """h(A) of the whole graph, kept from step to step."""

    adjacency: Array  # (nodes, nodes), current squared weights of all edges
    value: Array  # (), h(A), updated by its slope since it was last computed
    slope: Array  # (nodes, nodes), from the last time h(A) was computed


def keep_cycles(input_weights: Array, layout: Layout) -> KeptCycles:
    """Start with a graph whose h(A) is not yet computed."""
    adjacency = squared_adjacency(input_weights, layout)
    return KeptCycles(adjacency, jnp.zeros((), adjacency.dtype), jnp.zeros_like(adjacency))


def refreshed(kept: KeptCycles, step: Array, nodes: Array, h: Acyclicity) -> KeptCycles:
    """Compute h(A) again after as many steps as it takes to sample every sub-network once.

    In between, a step changes few columns of the graph by little, and the slope gives the change of h. If all nodes are
    sampled, every step computes h(A).
    """
    every = max(1, len(kept.adjacency) // len(nodes))

    def recomputed(kept: KeptCycles) -> KeptCycles:
        value, slope = jax.value_and_grad(h)(kept.adjacency)
        return KeptCycles(kept.adjacency, value, slope)

    return lax.cond(step % every == 0, recomputed, lambda kept: kept, kept)


def moved(kept: KeptCycles, nodes: Array, squares: Array) -> KeptCycles:
    """Update the graph with new edges into some nodes, shape (nodes, nodes sampled)."""
    change = squares - kept.adjacency[:, nodes]
    value = jnp.maximum(kept.value + jnp.sum(kept.slope[:, nodes] * change), 0.0)
    return KeptCycles(kept.adjacency.at[:, nodes].set(squares), value, kept.slope)


class SampledMoments(NamedTuple):
    """Adam's moments if sub-networks are sampled."""

    own: Any  # of the arrays that each sub-network has for itself, with a count for each; nodes are the first axis
    shared: Any  # of the shared layers and the regularizers' own_arrays


def start_moments(adam: optax.GradientTransformation, network: Parameters, own_arrays: Any) -> SampledMoments:
    """Return moments of zero."""
    return SampledMoments(jax.vmap(adam.init)(_by_node(network)), adam.init((_shared(network), own_arrays)))


def update(
    adam: optax.GradientTransformation, gradient: tuple[Parameters, Any], moments: SampledMoments, nodes: Array
) -> tuple[tuple[Parameters, Any], SampledMoments]:
    """Turn the gradient of some sub-networks into a step."""
    network, own_arrays = gradient
    shared_step, shared = adam.update((_shared(network), own_arrays), moments.shared)
    own = jax.tree.map(partial(_cut, nodes, axis=0), moments.own)
    step, own = jax.vmap(adam.update)(_by_node(network), own)
    put = jax.tree.map(partial(_moved_slices, nodes, axis=0, into=True), moments.own, own)
    (hidden, embedding), own_arrays = shared_step
    step = step._replace(input_weights=step.input_weights.swapaxes(0, 1), hidden=hidden, embedding=embedding)
    return (step, own_arrays), SampledMoments(put, shared)


def put_back(parameters: Parameters, nodes: Array, sampled: Parameters) -> Parameters:
    """Write sampled sub-networks back into the network."""
    put = partial(_moved_slices, nodes, into=True)
    own = jax.tree.map(put, _own(parameters), _own(sampled), _axes(parameters))
    return own._replace(hidden=sampled.hidden, embedding=sampled.embedding)


def cut_out(parameters: Parameters, nodes: Array) -> Parameters:
    """Copy sub-networks out of the network, as :func:`castlereg.network.select` does, but faster on a CPU core."""
    own = jax.tree.map(partial(_cut, nodes), _own(parameters), _axes(parameters))
    return own._replace(hidden=parameters.hidden, embedding=parameters.embedding)


def _cut(nodes: Array, array: Array, axis: int) -> Array:
    shape = (*array.shape[:axis], len(nodes), *array.shape[axis + 1 :])
    return _moved_slices(nodes, jnp.zeros(shape, array.dtype), array, axis, into=False)


def _moved_slices(nodes: Array, to: Array, source: Array, axis: int, *, into: bool) -> Array:
    """Copy slices one after the other, in place: a gather works cell by cell, and a scatter copies the array first."""

    def copy_slice(i: Array, to: Array) -> Array:
        position, origin = (nodes[i], i) if into else (i, nodes[i])
        return lax.dynamic_update_slice_in_dim(to, lax.dynamic_slice_in_dim(source, origin, 1, axis), position, axis)

    return lax.fori_loop(0, len(nodes), copy_slice, to)


def _by_node(parameters: Parameters) -> Parameters:
    """Make each sub-network's own arrays contiguous; otherwise the moments of a few of many are far apart."""
    return _own(parameters)._replace(input_weights=parameters.input_weights.swapaxes(0, 1))


def _own(parameters: Parameters) -> Parameters:
    return parameters._replace(hidden=(), embedding=None)


def _shared(parameters: Parameters) -> tuple[Any, Any]:
    return parameters.hidden, parameters.embedding


def _axes(parameters: Parameters) -> Parameters:
    axes = _NODE_AXES._replace(activation=parameters.activation)
    return axes if parameters.output_weights is not None else axes._replace(output_weights=None, output_bias=None)
