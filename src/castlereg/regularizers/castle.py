"""CASTLE: learn the causal graph of the columns while predicting the target (eq. 5 to 7)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import jax.numpy as jnp
from jax import Array, lax

from castlereg.acyclicity import ACYCLICITY, Acyclicity
from castlereg.castle import acyclicity_loss, dag_loss, l1_norm, reconstruction_loss
from castlereg.losses import log_likelihood_loss
from castlereg.network import squared_adjacency
from castlereg.options import check_choice, check_integer, check_number
from castlereg.regularizers.norms import capacity_norm, group_norm
from castlereg.regularizers.protocol import Own, Pass, Regularizer, check_regularizers

# Up to this number of nodes, the exponential takes only a few percent of a training step; see docs/decisions/0014.
_MOST_NODES_OF_EXPM = 200
_CAPACITY_FOR_GRAPH = 0.1  # chosen with the phases of the graph objective, see castlereg.training.plan


@dataclass(frozen=True)
class Castle(Regularizer):
    """Add ``lambda * (reconstruction + acyclicity + beta * sparsity)`` to the loss.

    Each of the three terms can be switched off, as in the paper's ablation study. Pass ``castle=Castle(...)`` to an
    estimator to change details of the penalty. The estimator's own ``reg_beta``, ``reg_lambda`` and ``objective``
    replace the defaults here; a different value in ``Castle`` raises.

    Parameters
    ----------
    reg_beta : float
        Factor of the sparsity term; the paper chooses among 0.001, 0.01, 0.1 and 1.
    reg_lambda : float
        Factor of the terms together.
    objective : {"prediction", "graph"}
        ``"prediction"`` is the paper's penalty, which leaves weak cycles. ``"graph"`` is for learning the graph:
        estimators first discover an acyclic graph (:mod:`castlereg.causal.discovery`) and train only its edges. The columns
        are scored by their likelihood (:func:`castlereg.losses.log_likelihood_loss`), and the capacity term is added, a
        tenth as strong as the sparsity. Without a discovered graph, as in a custom training loop, h is penalized
        instead of its square, with a factor that grows during a first phase; then the edges that close cycles are cut.
    reconstruction : bool
        Whether all columns are reconstructed.
    acyclicity : {"expm", "logdet", "auto"}, callable or None
        Acyclicity function: a key of :data:`castlereg.acyclicity.ACYCLICITY`; ``"auto"``, the one that suits the number
        of nodes (:func:`acyclicity_function`); or a JAX function h(A). None omits the term.
    sparsity : {"l1", "group"} or None
        Norm of the input layers: the paper's l1, or one l2 norm per edge. None omits the term.
    capacity : bool
        Whether the capacity of the later layers, ``V_Theta2`` of Theorem 1, is added to the sparsity with the same
        factor. The paper omits it.
    features_per_step : int, optional
        Number of features whose sub-networks are trained in each step, drawn at random; a few are enough for wide
        tables. All by default.
    acyclicity_strength : float
        Factor of the acyclicity term.

    Examples
    --------
    Only the sparsity of the input layer, a case that is not in the paper's ablation:

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
    objective: Literal["prediction", "graph"] = "prediction"
    reconstruction: bool = True
    acyclicity: str | Acyclicity | None = "expm"
    sparsity: Literal["l1", "group"] | None = "l1"
    capacity: bool = False
    features_per_step: int | None = None
    acyclicity_strength: float = 1.0

    def __post_init__(self) -> None:
        for name in ("reg_beta", "reg_lambda", "acyclicity_strength"):
            check_number(name, getattr(self, name), least=0)
        check_choice("objective", self.objective, ["prediction", "graph"])
        if self.acyclicity is not None and not callable(self.acyclicity):
            check_choice("acyclicity", self.acyclicity, (*ACYCLICITY, "auto"))
        if self.sparsity is not None:
            check_choice("sparsity", self.sparsity, ["l1", "group"])
        if self.features_per_step is not None:
            check_integer("features_per_step", self.features_per_step)
        if self.objective == "graph" and not (self.reconstruction and self.acyclicity and self.sparsity):
            raise ValueError("objective='graph' needs reconstruction, acyclicity and sparsity; leave all three on")
        if self.objective == "graph" and self.features_per_step is not None:
            raise ValueError(
                "objective='graph' scores all columns in every step and cannot be combined with "
                f"features_per_step={self.features_per_step}; set it to None"
            )

    @property
    def needs_all_nodes(self) -> bool:  # type: ignore[override]
        """Whether a term depends on the other sub-networks."""
        return self.reconstruction or self.acyclicity is not None

    @property
    def terms(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the terms that are switched on."""
        capacity = self.capacity or self.objective == "graph"
        switches = (self.reconstruction, self.acyclicity is not None, self.sparsity is not None, capacity)
        return tuple(itertools.compress(("reconstruction", "acyclicity", "sparsity", "capacity"), switches))

    def penalty(self, seen: Pass, own: Own) -> tuple[Array, dict[str, Array]]:
        """Return ``lambda * R_DAG`` (eq. 5 and 6) and its terms."""
        zero = jnp.zeros((), seen.losses.dtype)
        terms = {
            "reconstruction": self.reconstruction_term(seen) if self.reconstruction else zero,
            "acyclicity": self.acyclicity_term(seen) if self.acyclicity is not None else zero,
            "sparsity": self.sparsity_term(seen) if self.sparsity is not None else zero,
            "capacity": capacity_norm(seen.parameters, seen.node_share) if "capacity" in self.terms else zero,
        }
        return self.total(terms, seen), {name: terms[name] for name in self.terms}

    def total(self, terms: dict[str, Array], seen: Pass) -> Array:
        """Combine the terms."""
        size = terms["sparsity"] + terms["capacity"] * (_CAPACITY_FOR_GRAPH if self.objective == "graph" else 1.0)
        acyclicity = self.acyclicity_strength * terms["acyclicity"]
        return self.reg_lambda * dag_loss(terms["reconstruction"], acyclicity, size, self.reg_beta)

    def reconstruction_term(self, seen: Pass) -> Array:
        """Return the loss of all nodes, or their negative log-likelihood."""
        if self.objective == "graph":
            units = jnp.ones_like(seen.node_weight) if seen.null_loss is None else seen.null_loss
            return log_likelihood_loss(seen.losses, seen.batch, seen.layout, seen.node_weight, units)
        weight = seen.node_weight if seen.nodes is None else seen.node_weight[seen.nodes] * seen.node_share
        return reconstruction_loss(seen.losses, seen.batch, weight)

    def acyclicity_term(self, seen: Pass) -> Array:
        """Return the square of h(A), or h(A) itself."""
        if self.objective == "graph":
            return self.h(seen)
        if seen.cycles is not None:
            return self.h(seen) ** 2
        function = acyclicity_function(self.acyclicity or "expm", seen.layout.n_nodes)
        return acyclicity_loss(seen.parameters.input_weights, seen.layout, function)

    def h(self, seen: Pass) -> Array:
        """Return h(A); if nodes were sampled, its slope is only in the edges into these nodes."""
        squares = squared_adjacency(seen.parameters.input_weights, seen.layout)
        if seen.cycles is None:
            return acyclicity_function(self.acyclicity or "expm", seen.layout.n_nodes)(squares)
        value, slope = seen.cycles
        return value + jnp.sum(slope * seen.node_share * (squares - lax.stop_gradient(squares)))

    def sparsity_term(self, seen: Pass) -> Array:
        """Return the norm of the input layers."""
        penalized = seen.penalized
        if seen.nodes is not None:
            share = jnp.broadcast_to(seen.node_share, (seen.layout.n_inputs, len(seen.nodes)))
            penalized = share if penalized is None else share * penalized[:, seen.nodes]
        if self.sparsity == "l1":
            return l1_norm(seen.parameters.input_weights, penalized)
        return group_norm(seen.parameters.input_weights, seen.layout, penalized)


def castle_beside(estimator: Any, castle: Castle, **options: Any) -> tuple[Regularizer, ...]:
    """Put CASTLE with an estimator's own options before its other regularizers."""
    name, others = type(estimator).__name__, check_regularizers(estimator.regularizers)
    if castle_of(others) is not None:
        raise ValueError(
            f"{name} already has a Castle regularizer; pass its details as castle=Castle(...), or use "
            f"{name.replace('Castle', 'Network')}(regularizers=[Castle(...)])"
        )
    for option, value in options.items():
        of_castle = getattr(castle, option)
        if of_castle not in (value, getattr(type(castle), option)):
            raise ValueError(
                f"castle has {option}={of_castle!r}, but {name} has {option}={value!r}; set {option} of {name} instead"
            )
    return replace(castle, **options), *others


def castle_of(regularizers: Sequence[Regularizer]) -> Castle | None:
    """Return the Castle regularizer, or None without one."""
    return next((regularizer for regularizer in regularizers if isinstance(regularizer, Castle)), None)


def acyclicity_of(regularizers: Sequence[Regularizer], n_nodes: int) -> Acyclicity | None:
    """Return the acyclicity function of the Castle regularizer; None without one."""
    castle = castle_of(regularizers)
    choice = None if castle is None else castle.acyclicity
    return None if choice is None else acyclicity_function(choice, n_nodes)


def acyclicity_function(choice: str | Acyclicity, n_nodes: int) -> Acyclicity:
    """Return the acyclicity function of a choice; ``"auto"`` is ``"expm"`` up to 200 nodes and ``"logdet"`` beyond.

    Examples
    --------
    >>> from castlereg.acyclicity import log_determinant, trace_exponential
    >>> acyclicity_function("auto", 14) is trace_exponential, acyclicity_function("auto", 1000) is log_determinant
    (True, True)
    """
    if callable(choice):
        return choice
    if choice == "auto":
        choice = "expm" if n_nodes <= _MOST_NODES_OF_EXPM else "logdet"
    return ACYCLICITY[choice]
