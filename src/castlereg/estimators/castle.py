"""Options of the CASTLE estimators: the paper's regularizer, and others beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from castlereg.acyclicity import ACYCLICITY_CHOICES, AcyclicityFunction, resolve_acyclicity
from castlereg.data.rows import Coding
from castlereg.estimators.base import NetworkEstimator
from castlereg.graph import CausalGraph
from castlereg.graph.constraints import EdgeConstraints, rules_of_graph
from castlereg.layout import EdgeRules
from castlereg.options import check_choice
from castlereg.regularizers import Castle, Regularizer
from castlereg.regularizers.protocol import check_regularizers
from castlereg.training import TrainedStack


class CastleEstimator(NetworkEstimator):
    """A network with the regularizer :class:`castlereg.regularizers.Castle`, whose options are its own."""

    def __init__(
        self,
        reg_beta: float = 0.01,
        reg_lambda: float = 1.0,
        *,
        hidden_layer_sizes: Literal["auto"] | tuple[int, ...] = "auto",
        acyclicity: str | AcyclicityFunction = "expm",
        acyclicity_schedule: str = "fixed",
        sparsity: str = "l1",
        reconstruct: Literal["all"] | int = "all",
        regularizers: Sequence[Regularizer] = (),
        constraints: EdgeConstraints | None = None,
        input_init: str = "small",
        categorical_features: Sequence[str] | Sequence[int] | Sequence[bool] | None = None,
        scaling: str = "standard",
        learning_rate: float = 1e-3,
        batch_size: int = 32,
        max_epochs: int = 200,
        patience: int = 30,
        validation_fraction: float = 0.1,
        n_members: int = 1,
        bootstrap: bool = False,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            regularizers,
            hidden_layer_sizes=hidden_layer_sizes,
            input_init=input_init,
            categorical_features=categorical_features,
            scaling=scaling,
            learning_rate=learning_rate,
            batch_size=batch_size,
            max_epochs=max_epochs,
            patience=patience,
            validation_fraction=validation_fraction,
            n_members=n_members,
            bootstrap=bootstrap,
            random_state=random_state,
            verbose=verbose,
        )
        self.reg_beta = reg_beta
        self.reg_lambda = reg_lambda
        self.acyclicity = acyclicity
        self.acyclicity_schedule = acyclicity_schedule
        self.sparsity = sparsity
        self.reconstruct = reconstruct
        self.constraints = constraints

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        graph: CausalGraph | None = None,
    ) -> Self:
        """Train the network.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array-like of shape (rows, features)
            Numbers, text, categories, booleans and dates, with gaps. One column is one node, whatever it holds; see
            ``schema_`` for what was made of it.
        y : array-like of shape (rows,) or (rows, targets)
            Target, or several; without gaps.
        sample_weight : array-like of shape (rows,), optional
            Weights of rows. A whole number means as many copies of the row; other weights multiply the row's loss.
        X_val, y_val : array-like, optional
            Rows to stop by. By default a random ``validation_fraction`` of the rows is held out.
        graph : CausalGraph, optional
            Train with the edges of this graph and no others, such as a learned one that was edited. They are left alone
            by sparsity.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, X_val, y_val, graph)

    def _keep(self, coding: Coding, stack: TrainedStack, names: list[str]) -> None:
        super()._keep(coding, stack, names)
        self._keep_acyclicity(coding.layout.n_nodes)

    def _keep_acyclicity(self, n_nodes: int) -> None:
        """Keep the measure of cycles that was used."""
        self.acyclicity_ = resolve_acyclicity(self.acyclicity, n_nodes)

    def _edge_rules(self, names: list[str], n_targets: int, graph: CausalGraph | None) -> EdgeRules | None:
        if not isinstance(self.constraints, EdgeConstraints | None):
            raise ValueError(f"constraints={self.constraints!r} must be EdgeConstraints(...) or None")
        if self.constraints is None and graph is None:
            return None
        rules = (self.constraints or EdgeConstraints()).rules(names)
        if graph is not None and not isinstance(graph, CausalGraph):
            raise ValueError(f"graph={graph!r} must be a CausalGraph, such as graph_ of a fitted model")
        if graph is not None:
            rules = rules_of_graph(graph, names, rules)
        # No target is known when another one is predicted.
        for target in names[-n_targets:]:
            if not rules.allowed[:-n_targets, names.index(target)].any():
                raise ValueError(f"nothing may cause {target!r}: a target needs a column to be predicted from")
            for other in names[-n_targets:]:
                if rules.required[names.index(other), names.index(target)]:
                    raise ValueError(f"{other!r} -> {target!r} is required, but no target is an input of another")
        return rules

    def _all_regularizers(self) -> tuple[Regularizer, ...]:
        return self._castle(self.reg_beta, self.reg_lambda)

    def _castle(self, reg_beta: float, reg_lambda: float) -> tuple[Regularizer, ...]:
        """Put CASTLE with these strengths before the other regularizers."""
        others = check_regularizers(self.regularizers)
        if any(isinstance(one, Castle) for one in others):
            raise ValueError(
                f"{type(self).__name__} has Castle already: set reg_beta and reg_lambda, or use "
                f"{type(self).__name__.replace('Castle', 'Network')}(regularizers=[Castle(...)]) for its switches"
            )
        if not callable(self.acyclicity):
            check_choice("acyclicity", self.acyclicity, ACYCLICITY_CHOICES)
        check_choice("sparsity", self.sparsity, ["l1", "group"])
        check_choice("acyclicity_schedule", self.acyclicity_schedule, ["fixed", "exact"])
        castle = Castle(
            reg_beta,
            reg_lambda,
            acyclicity=self.acyclicity,
            acyclicity_schedule=self.acyclicity_schedule,
            sparsity=self.sparsity,  # type: ignore[arg-type]
            reconstruct=self.reconstruct,
        )
        return (castle, *others)
