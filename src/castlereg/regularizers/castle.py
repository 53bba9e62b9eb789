"""CASTLE: learn the causal graph of the columns beside the target (eq. 5 to 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
from jax import Array, lax

from castlereg.acyclicity import ACYCLICITY_CHOICES, AcyclicityFunction
from castlereg.network import squared_adjacency
from castlereg.objective import (
    Pass,
    Sparsity,
    acyclicity_loss,
    capacity_norm,
    cycle_measure,
    dag_loss,
    group_norm,
    l1_norm,
    log_likelihood_loss,
    reconstruction_loss,
)
from castlereg.options import check_choice, check_integer, check_number
from castlereg.regularizers.protocol import Regularizer

# Of the exact schedule, chosen among a few on sums of sigmoids, sines and smooth functions; see
# docs/decisions/0011-exact-acyclicity.md.
_FIRST_FACTOR, _LAST_FACTOR = 0.1, 10.0
_EXACT_CAPACITY = 0.1


@dataclass(frozen=True)
class Castle(Regularizer):
    """Add ``lambda * (reconstruction + acyclicity + beta * sparsity)`` to the loss.

    Each of the three terms can be switched off, as in the paper's ablation study, down to the sparsity of the
    input layer alone.

    Parameters
    ----------
    reg_beta : float
        Factor of the sparsity term; the paper chooses among 0.001, 0.01, 0.1 and 1.
    reg_lambda : float
        Factor of the terms together.
    reconstruction : bool
        Whether all columns are reconstructed.
    acyclicity : {"expm", "logdet", "auto"}, callable or None
        Acyclicity function: a key of :data:`castlereg.acyclicity.ACYCLICITY`, ``"auto"`` to choose by the number of
        nodes, or a JAX function of the square matrix of edge weights; None leaves the term out.
    sparsity : {"l1", "group"} or None
        Norm of the input layers; None leaves the term out.
    capacity : bool
        Whether the capacity of the later layers, ``V_Theta2`` of Theorem 1, stands beside the sparsity with the same
        factor. The paper leaves it out.
    reconstruct : "all" or int
        Features whose sub-networks are trained in each step, drawn at random.
    acyclicity_schedule : {"fixed", "exact"}
        The paper's fixed penalty ``h**2``, which leaves weak cycles. Or a factor of ``h`` that grows for the first part
        of training, after which edges that close cycles are cut and the rest is trained on: ``h`` is exactly zero then.
        Exact also scores the columns by their likelihood (:func:`castlereg.objective.log_likelihood_loss`) and has the
        capacity term on, a tenth as strong as the sparsity. It is for the graph; the paper's is for prediction.

    Examples
    --------
    The sparsity of the input layer alone, which the paper's ablation does not have:

    >>> from castlereg import NetworkRegressor
    >>> from castlereg.regularizers import Castle
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> sparse = Castle(reg_beta=0.01, reconstruction=False, acyclicity=None)
    >>> NetworkRegressor([sparse], max_epochs=20, random_state=0).fit(X, y).predict(X).shape
    (442,)
    """

    reg_beta: float = 0.01
    reg_lambda: float = 1.0
    reconstruction: bool = True
    acyclicity: str | AcyclicityFunction | None = "expm"
    sparsity: Sparsity | None = "l1"
    capacity: bool = False
    reconstruct: Literal["all"] | int = "all"
    acyclicity_schedule: str = "fixed"

    def __post_init__(self) -> None:
        check_number("reg_beta", self.reg_beta, least=0)
        check_number("reg_lambda", self.reg_lambda, least=0)
        if self.acyclicity is not None and not callable(self.acyclicity):
            check_choice("acyclicity", self.acyclicity, ACYCLICITY_CHOICES)
        if self.sparsity is not None:
            check_choice("sparsity", self.sparsity, ["l1", "group"])
        check_choice("acyclicity_schedule", self.acyclicity_schedule, ["fixed", "exact"])
        if self.acyclicity_schedule == "exact" and not (self.reconstruction and self.acyclicity and self.sparsity):
            raise ValueError("acyclicity_schedule='exact' needs reconstruction, acyclicity and sparsity")
        if self.acyclicity_schedule == "exact" and self.reconstruct != "all":
            raise ValueError(
                f"acyclicity_schedule='exact' scores all columns in every step, but reconstruct={self.reconstruct!r}: "
                "leave it at 'all'"
            )
        if isinstance(self.reconstruct, str):
            check_choice("reconstruct", self.reconstruct, ["all"])
        else:
            check_integer("reconstruct", self.reconstruct)

    @property
    def needs_all_nodes(self) -> bool:
        """Whether a term depends on the other sub-networks."""
        return self.reconstruction or self.acyclicity is not None

    @property
    def ends_acyclic(self) -> bool:
        """Whether the graph is cut on the way."""
        return self.acyclicity_schedule == "exact"

    @property
    def measures_cycles_by(self) -> str | AcyclicityFunction | None:
        """The measure of cycles."""
        return self.acyclicity

    @property
    def rows_are_independent(self) -> bool:
        """Whether devices may each take some rows of a batch; the likelihood of exact CASTLE has a log of a mean."""
        return not self.ends_acyclic

    @property
    def features_per_step(self) -> int | None:
        """Features that are reconstructed in each step."""
        return None if isinstance(self.reconstruct, str) or not self.needs_all_nodes else int(self.reconstruct)

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the terms that are switched on."""
        switches = {
            "reconstruction": self.reconstruction,
            "acyclicity": self.acyclicity is not None,
            "sparsity": self.sparsity is not None,
            "capacity": self.capacity or self.ends_acyclic,
        }
        return tuple(name for name, on in switches.items() if on)

    def penalty(self, seen: Pass, heads: tuple[()]) -> tuple[Array, dict[str, Array]]:
        """Return ``lambda * R_DAG`` (eq. 5 and 6) and its terms."""
        nothing = jnp.zeros((), seen.losses.dtype)
        terms = {
            "reconstruction": self._reconstruction_loss(seen) if self.reconstruction else nothing,
            "acyclicity": nothing if self.acyclicity is None else self._acyclicity_loss(seen, self.acyclicity),
            "sparsity": nothing if self.sparsity is None else self._sparsity_norm(seen),
            "capacity": capacity_norm(seen.parameters, seen.node_share) if "capacity" in self.terms else nothing,
        }
        return self._total(terms, seen), {name: terms[name] for name in self.terms}

    def _total(self, terms: dict[str, Array], seen: Pass) -> Array:
        acyclicity = terms["acyclicity"]
        if self.ends_acyclic:
            acyclicity = acyclicity * _FIRST_FACTOR * (_LAST_FACTOR / _FIRST_FACTOR) ** seen.progress
        size = terms["sparsity"] + terms["capacity"] * (_EXACT_CAPACITY if self.ends_acyclic else 1.0)
        return self.reg_lambda * dag_loss(terms["reconstruction"], acyclicity, size, self.reg_beta)

    def _reconstruction_loss(self, seen: Pass) -> Array:
        if self.ends_acyclic:
            units = jnp.ones_like(seen.node_weight) if seen.null_loss is None else seen.null_loss
            return log_likelihood_loss(seen.losses, seen.batch, seen.layout, seen.node_weight, units)
        weight = seen.node_weight if seen.nodes is None else seen.node_weight[seen.nodes] * seen.node_share
        return reconstruction_loss(seen.losses, seen.batch, weight)

    def _acyclicity_loss(self, seen: Pass, acyclicity: str | AcyclicityFunction) -> Array:
        if seen.cycles is None and not self.ends_acyclic:
            return acyclicity_loss(seen.parameters.input_weights, seen.layout, acyclicity)
        h = self._cycles(seen, acyclicity)
        return h if self.ends_acyclic else h**2

    def _cycles(self, seen: Pass, acyclicity: str | AcyclicityFunction) -> Array:
        """Return h(A); where nodes were sampled, with a slope in the edges into these alone."""
        squares = squared_adjacency(seen.parameters.input_weights, seen.layout)
        if seen.cycles is None:
            return cycle_measure(squares, acyclicity)
        value, slope = seen.cycles
        return value + jnp.sum(slope * seen.node_share * (squares - lax.stop_gradient(squares)))

    def _sparsity_norm(self, seen: Pass) -> Array:
        penalized = seen.penalized
        if seen.nodes is not None:
            share = jnp.broadcast_to(seen.node_share, (seen.layout.n_channels, len(seen.nodes)))
            penalized = share if penalized is None else share * penalized[:, seen.nodes]
        if self.sparsity == "l1":
            return l1_norm(seen.parameters.input_weights, penalized)
        return group_norm(seen.parameters.input_weights, seen.layout, penalized)
