"""What a stack trains: its members and plan, its setup, which is fixed, its inputs, and the states of its members.

Folds, hyperparameters, seeds and bootstrap samples are all *members* of one stack. They share the table and differ in
their rows, seed and strengths. Each is standardized by its own training rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
import optax
from jax import Array
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.monotone import with_signs
from castlereg.network import ActivationName, Form, InputInit, Packed, Parameters, initialize, mask_inputs, pack, unpack
from castlereg.options import check_integer
from castlereg.random_streams import OfNetwork, named_stream
from castlereg.regularizers import Regularizer
from castlereg.regularizers.protocol import check_regularizers, trained_nodes
from castlereg.table.encoding import Encoded, RowNumbers, Standardization, measure, padded_size

Start = InputInit | Callable[[Layout, tuple[int, ...], np.random.SeedSequence, tuple[int, ...]], Parameters]
Batches = Literal["shuffle", "independent"]
Schedule = Literal["constant", "cosine"]
EngineName = Literal["jax", "native"]
EngineChoice = Literal["auto", "jax", "native"]

adam = optax.scale_by_adam()


@dataclass(frozen=True)
class Member:
    """One network of a stack."""

    train_rows: RowNumbers  # indices into the table; a row may occur more than once
    validation_rows: RowNumbers
    seed: np.random.SeedSequence  # determines the starting weights, the batches and the random numbers of regularizers
    regularizers: tuple[Regularizer, ...] = ()  # the same for all members of a stack, except for their strengths
    used: NDArray[np.bool_] | None = None  # (nodes,), which columns predict the targets; all by default
    name: str = ""  # for callbacks


@dataclass(frozen=True)
class Phase:
    """A number of epochs of training."""

    epochs: int
    counts: bool = True  # whether these epochs count for the best epoch and for patience
    learning_rate: Callable[[float], float] | None = None  # factor by the share of the phase that is done, 0 to 1

    def __post_init__(self) -> None:
        check_integer("epochs", self.epochs, least=0)


@dataclass(frozen=True)
class Plan:
    """How every member is trained.

    Examples
    --------
    >>> plan = Plan((8, 8), (Phase(5, counts=False), Phase(20)))
    >>> plan.max_epochs, plan.warmup
    (25, 5)
    """

    hidden_layer_sizes: tuple[int, ...]  # empty for the linear form
    phases: tuple[Phase, ...] = (Phase(200),)  # those that count come last
    learning_rate: float = 1e-3  # of Adam
    batch_size: int = 32
    patience: int = 30  # epochs without a lower validation loss after which a member stops
    input_init: Start = "small"  # see castlereg.network.initialize; or a function of layout, widths, seed and nodes
    batches: Batches = "shuffle"  # an epoch goes once through the shuffled rows; or its batches are independent
    activation: ActivationName = "relu"
    averaging: float | None = None  # decay of a running average of the weights, per epoch; None for no average
    weight_decay: float | None = None  # share of the weights that a step removes, times its learning rate
    embedding: int = 0  # inputs that the networks compute from each number
    engine: EngineChoice = "auto"  # see castlereg.training.engines

    def __post_init__(self) -> None:
        counts = [phase.counts for phase in self.phases if phase.epochs]
        if counts != sorted(counts) or not any(counts):
            raise ValueError(f"phases that count must come last, and at least one is needed, got {self.phases}")

    @property
    def form(self) -> Form:
        """Widths and activation of the networks."""
        return Form(self.hidden_layer_sizes, self.activation)

    @property
    def max_epochs(self) -> int:
        """Number of epochs of all phases."""
        return sum(phase.epochs for phase in self.phases)

    @property
    def warmup(self) -> int:
        """Number of epochs before the best epoch and patience count."""
        return sum(phase.epochs for phase in self.phases if not phase.counts)

    def rate_factor(self, epoch: int) -> float:
        """Return the factor of the learning rate in an epoch, counted from 0."""
        for phase in self.phases:
            if epoch < phase.epochs:
                return 1.0 if phase.learning_rate is None else phase.learning_rate(epoch / phase.epochs)
            epoch -= phase.epochs
        return 1.0


def _cosine(done: float) -> float:
    """Return the factor of the learning rate after a share of the epochs: half a wave, from 1 down to 0.01."""
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done))


def phases_for(max_epochs: int, warmup: int = 0, schedule: Schedule = "constant") -> tuple[Phase, ...]:
    """Return a phase of training, after a warmup that does not count if there is one.

    Examples
    --------
    >>> [phase.epochs for phase in phases_for(100, warmup=20)]
    [20, 80]
    """
    warmup = min(warmup, max_epochs - 1)
    last = Phase(max_epochs - warmup, learning_rate=_cosine if schedule == "cosine" else None)
    return (Phase(warmup, counts=False), last) if warmup else (last,)


class Weights(NamedTuple):
    """All trained arrays."""

    network: Packed
    regularizers: tuple[Any, ...]  # the regularizers' trained arrays


class TrainState(NamedTuple):
    """Arrays that a step changes."""

    weights: Weights
    moments: Any  # of Adam
    running: tuple[Any, ...]  # the regularizers' other arrays
    average: Packed | None = None  # of the network over epochs, which then predicts; None without averaging


class SampledMoments(NamedTuple):
    """Adam's moments if sub-networks are sampled."""

    nodes: Any  # of the arrays that each sub-network has for itself, with a count for each; nodes are the first axis
    shared: Any  # of the shared layers and the regularizers' arrays


class MemberState(NamedTuple):
    """State of a member in training."""

    train: TrainState
    rate: Array
    best: Packed  # the network that predicts, at the epoch of the lowest validation loss
    best_loss: Array
    best_epoch: Array
    epoch: Array  # epochs done
    restarts: Array
    active: Array


class MemberInputs(NamedTuple):
    """Inputs of a member in one call of an engine; the first three are drawn for the call."""

    batches: Array  # (epochs, steps, batch), rows of the table
    sampled: Array | None  # (epochs, steps, nodes), sub-networks to train; None for all
    drawn: tuple[Any, ...]  # (epochs, steps, ...), random numbers of each regularizer
    regularizers: tuple[Regularizer, ...]  # strengths of shape ()
    steps: Array  # steps in an epoch
    validation_rows: Array  # (validation,)
    standardization: Standardization
    mean_weight: Array  # of the training rows
    edge_mask: Array  # (inputs, trained nodes), 0 for forbidden edges


class Shared(NamedTuple):
    """Inputs that all members share."""

    inputs: Array  # (rows, channels), encoded but not yet standardized; the last row is empty
    weight: Array  # (rows,), 0 for the empty row
    penalized: Array | None  # (inputs, trained nodes), 0 for required edges; None for all ones
    node_weight: Array  # (nodes,), factor in the reconstruction term: 0 for constant nodes
    averaging: Array | None  # decay of the average, per epoch; None without averaging
    weight_decay: Array | None  # share of the weights that a step removes, times its rate; None for none
    max_epochs: Array
    patience: Array
    warmup: Array  # epochs before the best epoch and patience count
    epochs: Array  # epochs to train in this call
    rate_factor: Array  # (epochs,), of the learning rate


def log_columns(regularizers: Sequence[Regularizer]) -> tuple[str, ...]:
    """Name the columns of the log: the objective, its terms, and what is known at the end of an epoch."""
    return ("objective", *terms(regularizers), "validation_loss", "learning_rate", "finite")


def terms(regularizers: Sequence[Regularizer]) -> tuple[str, ...]:
    """Name the terms of the loss."""
    return ("supervised", *(name for regularizer in regularizers for name in regularizer.terms))


@dataclass(frozen=True)
class Setup:
    """Everything that is fixed before the first step of a stack."""

    encoded: Encoded
    members: Sequence[Member]
    plan: Plan

    @cached_property
    def layout(self) -> Layout:
        """Nodes of the table, with the networks' embedding."""
        return replace(self.encoded.layout, embedding=self.plan.embedding)

    @property
    def dtype(self) -> Any:
        """Precision of training: that of the table."""
        return self.encoded.inputs.dtype

    @cached_property
    def regularizers(self) -> tuple[Regularizer, ...]:
        """Regularizers of all members, with strengths of shape (members,)."""
        first = check_regularizers(self.members[0].regularizers, self.plan.hidden_layer_sizes)
        structure: Any = jax.tree.structure(first)
        for number, member in enumerate(self.members):
            if jax.tree.structure(member.regularizers) != structure:
                raise ValueError(
                    f"members of a stack may differ only in strengths, but member 0 has regularizers {first} and "
                    f"member {number} has {member.regularizers}; train them in separate stacks"
                )
        stacked: tuple[Regularizer, ...] = jax.tree.map(
            lambda *strengths: np.array(strengths, self.dtype), *(member.regularizers for member in self.members)
        )
        return stacked

    @cached_property
    def measured(self) -> tuple[Standardization, NDArray[Any]]:
        """Standardization of every member and mean weight, from its training rows."""
        return measure(self.encoded, [member.train_rows for member in self.members])

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """Nodes whose sub-networks are trained."""
        return trained_nodes(self.regularizers, self.layout)

    @cached_property
    def n_sampled(self) -> int | None:
        """Number of sub-networks that each step trains, including the targets'; None for all."""
        wanted = [r.features_per_step for r in self.regularizers if r.features_per_step is not None]
        if not wanted:
            return None
        if max(wanted) > self.layout.n_features:
            raise ValueError(
                f"features_per_step={max(wanted)}, but X has {self.layout.n_features} features; "
                f"pass at most {self.layout.n_features}, or None for all"
            )
        return max(wanted) + len(self.layout.targets)

    @property
    def operations_per_step(self) -> int:
        """Approximate floating-point operations of a member's step: the products of its first two layers."""
        layout, sizes = self.layout, self.plan.hidden_layer_sizes
        width = sizes[0] if sizes else layout.output_width
        n_run = len(self.nodes) if self.n_sampled is None else self.n_sampled
        return self.plan.batch_size * n_run * (4 * layout.n_inputs * width + 6 * width * width)

    @property
    def empty_row(self) -> int:
        """Index of a row with weight zero, which pads batches."""
        return padded_size(len(self.encoded.inputs)) - 1

    @cached_property
    def edge_masks(self) -> NDArray[Any]:
        """Edge masks of all members, shape (members, inputs, trained nodes), without columns that a member ignores."""
        rules = self.encoded.edges
        mask = self.layout.edge_mask(self.encoded.constant, None if rules is None else rules.allowed)
        masks = np.repeat(mask[None, :, list(self.nodes)].astype(self.dtype), len(self.members), axis=0)
        into_targets = [position for position, node in enumerate(self.nodes) if self.layout.nodes[node].target]
        for mask, member in zip(masks, self.members, strict=True):
            if member.used is not None:
                mask[:, into_targets] *= member.used[self.layout.input_nodes][:, None]
        return masks

    def shared(self) -> Shared:
        """Collect what all members share: rows, and numbers of the plan."""
        encoded, plan, rules = self.encoded, self.plan, self.encoded.edges
        weight = np.zeros(self.empty_row + 1, self.dtype)
        weight[: len(encoded.inputs)] = 1.0 if encoded.weight is None else encoded.weight
        penalized = None
        if rules is not None and rules.required.any():
            penalized = (~rules.required[self.layout.input_nodes][:, list(self.nodes)]).astype(self.dtype)
        node_weight = np.ones(self.layout.n_nodes, self.dtype)
        node_weight[list(encoded.constant)] = 0.0
        decays = [None if decay is None else self.dtype.type(decay) for decay in (plan.averaging, plan.weight_decay)]
        counts = map(np.int32, (plan.max_epochs, plan.patience, plan.warmup, 0))
        inputs = encoded.padded()
        shared: Any = (inputs, weight, penalized, node_weight, *decays, *counts, np.ones(0, self.dtype))
        return Shared(*shared)

    def member_inputs(self, steps: NDArray[np.int32]) -> MemberInputs:
        """Collect the members' inputs; what is drawn for a call is still missing."""
        longest = padded_size(max(len(member.validation_rows) for member in self.members) - 1)
        rows = np.full((len(self.members), longest), self.empty_row, np.int32)
        for padded, member in zip(rows, self.members, strict=True):
            padded[: len(member.validation_rows)] = member.validation_rows
        fixed: Any = (self.regularizers, steps, rows, *self.measured, self.edge_masks)
        return MemberInputs((), None, (), *fixed)  # type: ignore[arg-type]


def by_node(parameters: Parameters) -> Parameters:
    """Make each sub-network's arrays contiguous; otherwise the moments of a few of many are far apart."""
    return parameters._replace(input_weights=parameters.input_weights.swapaxes(0, 1), hidden=(), embedding=None)


def initial_states(setup: Setup) -> MemberState:
    """Return the states of all members before the first step, with random starting weights."""
    plan, layout, nodes, n = setup.plan, setup.layout, setup.nodes, len(setup.members)
    sizes = plan.hidden_layer_sizes
    starts = []
    for member, mask in zip(setup.members, setup.edge_masks, strict=True):
        if callable(plan.input_init):
            network = plan.input_init(layout, sizes, member.seed, nodes)
        else:
            start, activation = plan.input_init, plan.activation
            network = initialize(layout, sizes, member.seed, nodes=nodes, input_init=start, activation=activation)
        states = [
            r.start(layout, sizes, len(nodes), named_stream(member.seed, OfNetwork.REGULARIZER_START, type(r).__name__))
            for r in member.regularizers
        ]
        network = mask_inputs(network, mask)
        packed = pack(with_signs(network, layout) if layout.is_monotone else network)
        starts.append((Weights(packed, tuple(s.trained for s in states)), tuple(s.running for s in states)))
    weights, running = jax.tree.map(lambda *arrays: np.stack(arrays).astype(setup.dtype), *starts)

    def moments_of(weights: Weights) -> Any:
        if setup.n_sampled is None:
            return adam.init(weights)
        network = unpack(weights.network, plan.form, layout)
        shared = (network.hidden, network.embedding), weights.regularizers
        return SampledMoments(jax.vmap(adam.init)(by_node(network)), adam.init(shared))

    def zeros(moment: Any) -> NDArray[Any]:
        is_count = np.issubdtype(moment.dtype, np.integer)  # others have the table's precision, also natively
        return np.zeros((n, *moment.shape), moment.dtype if is_count else setup.dtype)

    moments = jax.tree.map(zeros, jax.eval_shape(moments_of, jax.tree.map(lambda a: a[0], weights)))
    fields: dict[str, Any] = {
        "train": TrainState(weights, moments, running, None if plan.averaging is None else weights.network),
        "rate": np.full(n, plan.learning_rate, setup.dtype),
        "best": weights.network,
        "best_loss": np.full(n, np.inf, setup.dtype),
        "active": np.ones(n, bool),
    }
    fields |= {name: np.zeros(n, np.int32) for name in ("best_epoch", "epoch", "restarts")}
    return MemberState(**fields)
