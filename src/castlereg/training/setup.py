"""Setup of a stack: everything that is fixed before its first step.

Folds, hyperparameters, seeds and bootstrap replicas are all *members* of one stack. They share the table and differ in
their rows, seed and strengths. Each is standardized by its own training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.regularizers import Regularizer
from castlereg.regularizers.engine import trained_nodes
from castlereg.regularizers.protocol import check_regularizers
from castlereg.table.table import Standardization, Table, rounded_up
from castlereg.training.plan import Member, Plan
from castlereg.training.state import Shared


@dataclass(frozen=True)
class Setup:
    """Everything that is fixed before the first step of a stack."""

    table: Table
    members: Sequence[Member]
    plan: Plan
    standardization: Standardization  # of every member
    mean_weight: NDArray[np.floating[Any]]  # (members,), of the training rows
    regularizers: tuple[Regularizer, ...]  # of all members, with strengths of shape (members,)

    @classmethod
    def of(
        cls,
        table: Table,
        members: Sequence[Member],
        plan: Plan,
        standardization: Standardization,
        mean_weight: NDArray[np.floating[Any]],
    ) -> Setup:
        """Stack the regularizers of the members."""
        regularizers = _stacked(members, plan.hidden_layer_sizes, table.inputs.dtype)
        _check_ramps(plan, regularizers)
        return cls(table, members, plan, standardization, mean_weight, regularizers)

    @cached_property
    def layout(self) -> Layout:
        """Nodes of the table, with the networks' embedding."""
        return replace(self.table.layout, embedding=self.plan.embedding)

    @property
    def dtype(self) -> Any:
        """Precision of training: that of the table."""
        return self.table.inputs.dtype

    @property
    def nodes(self) -> tuple[int, ...]:
        """Nodes whose sub-networks are trained."""
        return trained_nodes(self.regularizers, self.layout)

    @property
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
    def operations_of_step(self) -> int:
        """Approximate floating-point operations of a member's step: the products of its first two layers."""
        layout, sizes = self.layout, self.plan.hidden_layer_sizes
        width = sizes[0] if sizes else layout.output_width
        n_run = len(self.nodes) if self.n_sampled is None else self.n_sampled
        return self.plan.batch_size * n_run * (4 * layout.n_inputs * width + 6 * width * width)

    @property
    def empty_row(self) -> int:
        """Index of a row with weight zero."""
        return rounded_up(len(self.table.inputs) + 1) - 1

    def edge_mask(self) -> NDArray[np.float32]:
        """Which channels may enter which trained sub-network, shape (inputs, trained nodes)."""
        rules = self.table.edges
        allowed = None if rules is None else rules.allowed
        return self.layout.edge_mask(self.table.constant, allowed)[:, list(self.nodes)]

    def edge_masks(self) -> NDArray[Any]:
        """Edge masks of all members, shape (members, inputs, trained nodes), without columns that a member ignores."""
        masks = np.repeat(self.edge_mask()[None].astype(self.dtype), len(self.members), axis=0)
        into_targets = [position for position, node in enumerate(self.nodes) if self.layout.nodes[node].target]
        for mask, member in zip(masks, self.members, strict=True):
            if member.used is not None:
                mask[:, into_targets] *= member.used[self.layout.input_nodes][:, None]
        return masks

    def penalized(self) -> NDArray[Any] | None:
        """Which weights the sparsity term counts, shape (inputs, trained nodes): all except those of required edges."""
        rules = self.table.edges
        if rules is None or not rules.required.any():
            return None
        return (~rules.required[self.layout.input_nodes][:, list(self.nodes)]).astype(self.dtype)

    def shared(self, inputs: Any, weight: Any) -> Shared:
        """Collect what all members share: rows, and numbers of the plan."""
        node_weight = np.ones(self.layout.n_nodes, self.dtype)
        node_weight[list(self.table.constant)] = 0.0
        counts = (0, self.plan.max_epochs, self.plan.patience, self.plan.warmup)
        shared: Any = (inputs, weight, self.penalized(), node_weight, *map(np.int32, counts))
        return Shared(*shared)

    def schedule(self, first_epoch: int, epochs: int) -> tuple[Any, Any]:
        """Return strengths and factors of the learning rate of the next epochs, leaves of shape (members, epochs)."""
        phases = [self.plan.phase_at(first_epoch + i) for i in range(epochs)]
        done = [min((first_epoch + i - before) / max(phase.epochs, 1), 1.0) for i, (phase, before) in enumerate(phases)]

        def of_strength(path: Any, base: NDArray[Any]) -> NDArray[Any]:
            factors = [phase.factor(path[-1].name, d) for (phase, _), d in zip(phases, done, strict=True)]
            return (base.astype(np.float64)[:, None] * factors).astype(self.dtype)

        rates = [
            1.0 if phase.learning_rate is None else phase.learning_rate(d)
            for (phase, _), d in zip(phases, done, strict=True)
        ]
        of_members = np.repeat(np.array(rates, self.dtype)[None], len(self.members), axis=0)
        return jax.tree_util.tree_map_with_path(of_strength, self.regularizers), of_members

    def validation_rows(self) -> Any:
        """Return every member's validation rows, padded with the empty row."""
        longest = rounded_up(max(len(m.validation_rows) for m in self.members))
        rows = np.full((len(self.members), longest), self.empty_row, np.int32)
        for filled, member in zip(rows, self.members, strict=True):
            filled[: len(member.validation_rows)] = member.validation_rows
        return rows


def _stacked(members: Sequence[Member], hidden_layer_sizes: tuple[int, ...], dtype: Any) -> tuple[Regularizer, ...]:
    """Make one set of regularizers whose strengths have a member axis."""
    first = check_regularizers(members[0].regularizers, hidden_layer_sizes)
    structure: Any = jax.tree.structure(first)
    for number, member in enumerate(members):
        if jax.tree.structure(member.regularizers) != structure:
            raise ValueError(
                f"members of a stack may differ only in strengths, but member 0 has regularizers {first} and member "
                f"{number} has {member.regularizers}; train them in separate stacks"
            )
    stacked: tuple[Regularizer, ...] = jax.tree.map(
        lambda *strengths: np.array(strengths, dtype), *(member.regularizers for member in members)
    )
    return stacked


def _check_ramps(plan: Plan, regularizers: tuple[Regularizer, ...]) -> None:
    paths = jax.tree_util.tree_leaves_with_path(regularizers)
    strengths = sorted({path[-1].name for path, _ in paths})
    for name in (name for phase in plan.phases for name, _, _ in phase.ramps):
        if name not in strengths:
            raise ValueError(f"a phase has a ramp of {name!r}, but the strengths are {', '.join(strengths) or 'none'}")
