"""CASTLE: learn the causal graph of the columns while predicting the target (eq. 5 to 7)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
from jax import Array, lax

from castlereg.acyclicity import ACYCLICITY, Acyclicity
from castlereg.castle import dag_loss, l1_norm, reconstruction_loss
from castlereg.network import root, squared_adjacency
from castlereg.options import check_choice, check_integer, check_number
from castlereg.regularizers.protocol import Own, Pass, Regularizer

# Up to this number of nodes, the exponential takes only a few percent of a training step; see docs/decisions/0014.
_MOST_NODES_OF_EXPM = 200


@dataclass(frozen=True)
class Castle(Regularizer):
    """Add ``lambda * (reconstruction + acyclicity + beta * sparsity)`` to the loss.

    Each of the three terms can be switched off, as in the paper's ablation study. Pass ``castle=Castle(...)`` to an
    estimator to change details of the penalty. The estimator's own ``reg_beta`` and ``reg_lambda`` replace the defaults
    here; a different value in ``Castle`` raises.

    Parameters
    ----------
    reg_beta : float
        Factor of the sparsity term; the paper chooses among 0.001, 0.01, 0.1 and 1.
    reg_lambda : float
        Factor of the terms together.
    reconstruction : bool
        Whether all columns are reconstructed.
    acyclicity : {"expm", "logdet", "auto"}, callable or None
        Acyclicity function: a key of :data:`castlereg.acyclicity.ACYCLICITY`; ``"auto"``, which is ``"expm"`` up to 200
        nodes and ``"logdet"`` beyond; or a JAX function h(A). None omits the term.
    sparsity : {"l1", "group"} or None
        Norm of the input layers: the paper's l1, or one l2 norm per edge. None omits the term.
    capacity : bool
        Whether the capacity of the later layers, ``V_Theta2`` of Theorem 1, is added to the sparsity with the same
        factor. The paper omits it.
    features_per_step : int, optional
        Number of features whose sub-networks are trained in each step, drawn at random; a few are enough for wide
        tables. All by default.

    Examples
    --------
    Only the sparsity of the input layer, a case that is not in the paper's ablation:

    >>> from castlereg import NetworkRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> sparse = Castle(reg_beta=0.01, reconstruction=False, acyclicity=None)
    >>> NetworkRegressor([sparse], max_epochs=20, random_state=0).fit(X, y).predict(X).shape
    (442,)
    """

    reg_beta: float = 0.01
    reg_lambda: float = 1.0
    reconstruction: bool = True
    acyclicity: str | Acyclicity | None = "expm"
    sparsity: Literal["l1", "group"] | None = "l1"
    capacity: bool = False
    features_per_step: int | None = None

    def __post_init__(self) -> None:
        for name in ("reg_beta", "reg_lambda"):
            check_number(name, getattr(self, name), least=0)
        if self.acyclicity is not None and not callable(self.acyclicity):
            check_choice("acyclicity", self.acyclicity, (*ACYCLICITY, "auto"))
        if self.sparsity is not None:
            check_choice("sparsity", self.sparsity, ["l1", "group"])
        if self.features_per_step is not None:
            check_integer("features_per_step", self.features_per_step)

    @property
    def needs_all_nodes(self) -> bool:  # type: ignore[override]
        """Whether a term depends on the other sub-networks."""
        return self.reconstruction or self.acyclicity is not None

    @property
    def terms(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the terms that are switched on."""
        switches = (self.reconstruction, self.acyclicity is not None, self.sparsity is not None, self.capacity)
        return tuple(itertools.compress(("reconstruction", "acyclicity", "sparsity", "capacity"), switches))

    def penalty(self, seen: Pass, own: Own) -> tuple[Array, dict[str, Array]]:
        """Return ``lambda * R_DAG`` (eq. 5 and 6) and its terms."""
        zero = jnp.zeros((), seen.losses.dtype)
        terms = {
            "reconstruction": self.reconstruction_term(seen) if self.reconstruction else zero,
            "acyclicity": self.acyclicity_term(seen) if self.acyclicity is not None else zero,
            "sparsity": self.sparsity_term(seen) if self.sparsity is not None else zero,
            "capacity": self.capacity_term(seen) if self.capacity else zero,
        }
        return self.total(terms, seen), {name: terms[name] for name in self.terms}

    def total(self, terms: dict[str, Array], seen: Pass) -> Array:
        """Combine the terms."""
        size = terms["sparsity"] + terms["capacity"]
        return self.reg_lambda * dag_loss(terms["reconstruction"], terms["acyclicity"], size, self.reg_beta)

    def reconstruction_term(self, seen: Pass) -> Array:
        """Return the loss of all nodes."""
        weight = seen.node_weight if seen.nodes is None else seen.node_weight[seen.nodes] * seen.node_share
        return reconstruction_loss(seen.losses, seen.batch, weight)

    def acyclicity_term(self, seen: Pass) -> Array:
        """Return the square of h(A)."""
        return self.h(seen) ** 2

    def h(self, seen: Pass) -> Array:
        """Return h(A); if nodes were sampled, its slope is only in the edges into these nodes."""
        squares = squared_adjacency(seen.parameters.input_weights, seen.layout)
        if seen.cycles is None:
            function = acyclicity_of([self], seen.layout.n_nodes)
            assert function is not None  # the term is switched on
            return function(squares)
        value, slope = seen.cycles
        return value + jnp.sum(slope * seen.node_share * (squares - lax.stop_gradient(squares)))

    def sparsity_term(self, seen: Pass) -> Array:
        """Return the norm of the input layers: l1, or the sum over edges of the l2 norm of their weights."""
        weights, penalized = seen.parameters.input_weights, seen.penalized
        if seen.nodes is not None:
            share = jnp.broadcast_to(seen.node_share, (seen.layout.n_inputs, len(seen.nodes)))
            penalized = share if penalized is None else share * penalized[:, seen.nodes]
        if self.sparsity == "l1":
            return l1_norm(weights, penalized)
        if penalized is not None:
            weights = weights * penalized[:, :, None]
        return jnp.sum(root(squared_adjacency(weights, seen.layout)))

    def capacity_term(self, seen: Pass) -> Array:
        """Return the sum of the squared weights of shared hidden and output layers, ``V_Theta2`` of Theorem 1.

        The theorem's text calls it an l2 norm; the KL step of its proof (eq. 12) has the squared Frobenius norms.
        """
        hidden, outputs = seen.parameters.hidden, seen.parameters.output_weights
        shared = sum((jnp.sum(layer.weights**2) for layer in hidden), jnp.zeros((), seen.losses.dtype))
        return shared if outputs is None else shared + jnp.sum(seen.node_share * jnp.sum(outputs**2, axis=(1, 2)))


def castle_of(regularizers: Sequence[Regularizer]) -> Castle | None:
    """Return the Castle regularizer, or None without one."""
    return next((regularizer for regularizer in regularizers if isinstance(regularizer, Castle)), None)


def acyclicity_of(regularizers: Sequence[Regularizer], n_nodes: int) -> Acyclicity | None:
    """Return the acyclicity function of the Castle regularizer for this number of nodes; None without one.

    >>> [acyclicity_of([Castle(acyclicity="auto")], n).__name__ for n in (14, 1000)]
    ['trace_exponential', 'log_determinant']
    """
    castle = castle_of(regularizers)
    choice = None if castle is None else castle.acyclicity
    if choice == "auto":
        choice = "expm" if n_nodes <= _MOST_NODES_OF_EXPM else "logdet"
    return ACYCLICITY[choice] if isinstance(choice, str) else choice
