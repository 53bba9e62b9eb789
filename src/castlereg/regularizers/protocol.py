"""The protocol of regularizers: one class, with one hook for each way to change training.

A regularizer is a frozen dataclass. Its fields annotated ``float`` are its *strengths*: they may differ between the
members of a stack and from epoch to epoch, so a grid of strengths trains as one program. All other fields belong to the
program and must be hashable. Override only the hooks you need; each does nothing by default. JAX traces the hooks: they
take and return arrays.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.losses import Batch
from castlereg.network import Parameters, select
from castlereg.options import check_number


class Own(NamedTuple):
    """A regularizer's own state."""

    trained: Any = ()  # arrays that are trained with the network
    running: Any = ()  # arrays that each step may change


class Cycles(NamedTuple):
    """h(A) of the whole graph, for a step that trains only some of its columns."""

    value: Array  # ()
    slope: Array  # (nodes, nodes run), of h(A) in the edges into the nodes that the step runs


class Pass(NamedTuple):
    """One pass of a batch through the network: the inputs of a penalty."""

    parameters: Parameters  # of every sub-network that was run
    batch: Batch  # as passed to the network, after ``on_batch``
    units: Array | None  # (rows, nodes run, width), last hidden layer; None in the linear form
    losses: Array  # (rows, nodes run), the targets last
    supervised: Array  # ()
    nodes: Array | None  # (nodes run,), which nodes were run; None for all trained nodes
    node_share: Array  # (nodes run,), compensates for nodes that were not sampled
    cycles: Cycles | None  # of the whole graph, if nodes were sampled
    node_weight: Array  # (nodes,), factor in reconstructions: 1, or 0 for constant columns
    null_loss: Array | None  # (nodes,), see castlereg.losses.cell_losses
    penalized: Array | None  # (channels, trained nodes), see castlereg.castle.l1_norm
    layout: Layout
    drawn: Any = ()  # random numbers of this regularizer for the step

    @property
    def target_parameters(self) -> Parameters:
        """Parameters of the targets' sub-networks only."""
        n_run, n_targets = self.parameters.input_weights.shape[1], len(self.layout.targets)
        return self.parameters if n_run == n_targets else select(self.parameters, np.arange(n_run - n_targets, n_run))


class Regularizer:
    """Base class of all regularizers; its hooks do nothing."""

    needs_hidden_layers = False  # whether it cannot be used in the linear form
    needs_all_nodes = False  # whether the sub-networks of all nodes are trained, or only the targets'
    features_per_step: int | None = None  # features whose sub-networks each step trains, drawn at random; None for all
    terms: tuple[str, ...] = ()  # names of the penalty's terms, for the history

    def __post_init__(self) -> None:
        """Check the strengths; by default, they must not be negative."""
        for name in self._field_names()[0]:
            check_number(f"{type(self).__name__}'s {name}", getattr(self, name), least=0)

    def __init_subclass__(cls) -> None:
        # A regularizer is a pytree of its strengths, so a stack of them is one regularizer with arrays as strengths.
        jax.tree_util.register_pytree_with_keys(cls, cls._flatten, cls._unflatten)

    def start(
        self, layout: Layout, hidden_layer_sizes: tuple[int, ...], n_trained: int, rng: np.random.Generator
    ) -> Own:
        """Return the state before the first step, of float32 arrays; ``n_trained`` sub-networks are trained."""
        return Own()

    def draw(self, rng: np.random.Generator, steps: int, hidden_layer_sizes: tuple[int, ...]) -> Any:
        """Draw the random numbers of one epoch on the host: arrays of shape (steps, ...)."""
        return ()

    def on_batch(self, batch: Batch, drawn: Any, layout: Layout) -> Batch:
        """Change the rows of a step, as input noise does."""
        return batch

    def on_parameters(self, parameters: Parameters, drawn: Any) -> Parameters:
        """Change the weights that a step runs with; penalties use the unchanged weights."""
        return parameters

    def on_dense(self, z: Array, layer: int, weight: Array, sampled: Array | None, own: Own) -> tuple[Array, Own]:
        """Change the outputs of hidden layer ``layer``, from 0, before the ReLU, and its own state (batch norm).

        ``z`` has shape (rows, nodes, width). ``weight`` is the weight of the rows, 0 for rows that only pad the batch.
        ``sampled`` holds the trained nodes that are in ``z``; None for all.
        """
        return z, own

    def on_hidden(self, z: Array, layer: int, drawn: Any) -> Array:
        """Change the units of hidden layer ``layer`` after the ReLU, shape (rows, nodes, width)."""
        return z

    def penalty(self, seen: Pass, own: Own) -> tuple[Array | float, dict[str, Array]]:
        """Return the number to add to the loss, and the value of each of :attr:`terms`."""
        return 0.0, {}

    def folded(self, parameters: Parameters, own: Own) -> Parameters:
        """Return the network that predicts: the trained one, with the regularizer's own state folded in."""
        return parameters

    @classmethod
    def _field_names(cls) -> tuple[list[str], list[str]]:
        """Return the names of the strengths and of all other fields."""
        fields: Iterable[dataclasses.Field[Any]] = getattr(cls, "__dataclass_fields__", {}).values()
        strengths = [f.name for f in fields if f.type in (float, "float")]
        return strengths, [f.name for f in fields if f.name not in strengths]

    def _flatten(self) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
        strengths, fixed = self._field_names()
        leaves = [(jax.tree_util.GetAttrKey(name), getattr(self, name)) for name in strengths]
        return leaves, tuple(getattr(self, name) for name in fixed)

    @classmethod
    def _unflatten(cls, fixed: tuple[Any, ...], strengths: Iterable[Any]) -> Self:
        # Not by the constructor, which checks numbers: these may be arrays or tracers.
        self = object.__new__(cls)
        self.__dict__.update(zip(itertools.chain(*cls._field_names()), [*strengths, *fixed], strict=True))
        return self


def random_words(rng: np.random.Generator, *shape: int) -> NDArray[np.uint32]:
    """Draw the seeds of random keys, shape (*shape, 2); see :func:`key`."""
    return rng.integers(0, 2**32, size=(*shape, 2), dtype=np.uint32)


def key(words: Array) -> Array:
    """Make a JAX random key from two drawn words."""
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def check_regularizers(regularizers: Any, hidden_layer_sizes: tuple[int, ...] | None = None) -> tuple[Regularizer, ...]:
    """Check that regularizers can be combined with each other and with the network's layers; return a tuple."""
    if isinstance(regularizers, Regularizer | str) or not hasattr(regularizers, "__iter__"):
        raise ValueError(f"regularizers={regularizers!r} must be a sequence, such as [L2(0.01), Dropout(0.2)]")
    checked = tuple(regularizers)
    for regularizer in checked:
        if not isinstance(regularizer, Regularizer):
            is_class = isinstance(regularizer, type) and issubclass(regularizer, Regularizer)
            hint = f"; pass an instance, {regularizer.__name__}()" if is_class else ""
            raise ValueError(f"regularizers contains {regularizer!r}, which is not a regularizer{hint}")
        if regularizer.needs_hidden_layers and hidden_layer_sizes == ():
            raise ValueError(
                f"{type(regularizer).__name__} acts on hidden layers, but hidden_layer_sizes=() has none; remove it or "
                "add a hidden layer"
            )
    names = [name for regularizer in checked for name in (type(regularizer).__name__, *regularizer.terms)]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise ValueError(f"regularizers contains {duplicate} more than once; pass it once, with the strength you want")
    return checked


def trained_nodes(regularizers: Sequence[Regularizer], layout: Layout) -> tuple[int, ...]:
    """Return the nodes whose sub-networks are trained: the targets, or all when a regularizer needs them."""
    if any(regularizer.needs_all_nodes for regularizer in regularizers):
        return tuple(range(layout.n_nodes))
    return layout.targets
