"""Options of the CASTLE estimators: the paper's regularizer, and others beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self

from numpy.typing import ArrayLike

from castlereg.estimators.base import Features, NetworkEstimator, Seed, Sizes
from castlereg.estimators.recipe import Recipe
from castlereg.graph.constraints import EdgeConstraints, graph_rules
from castlereg.layout import EdgeRules
from castlereg.regularizers import Castle, Regularizer
from castlereg.regularizers.protocol import check_regularizers

if TYPE_CHECKING:
    from castlereg.graph import CausalGraph

Objective = Literal["prediction", "graph"]


class CastleEstimator(NetworkEstimator):
    """A network with the regularizer :class:`castlereg.regularizers.Castle`."""

    def __init__(
        self,
        reg_beta: float = 0.01,
        reg_lambda: float = 1.0,
        *,
        objective: Objective = "prediction",
        castle: Castle | None = None,
        hidden_layer_sizes: Sizes = "auto",
        regularizers: Sequence[Regularizer] = (),
        constraints: EdgeConstraints | None = None,
        recipe: Recipe | None = None,
        categorical_features: Features = None,
        learning_rate: float = 1e-3,
        batch_size: int = 32,
        max_epochs: int = 200,
        patience: int = 30,
        n_members: int = 1,
        bootstrap: bool = False,
        random_state: Seed = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            regularizers,
            hidden_layer_sizes=hidden_layer_sizes,
            recipe=recipe,
            categorical_features=categorical_features,
            learning_rate=learning_rate,
            batch_size=batch_size,
            max_epochs=max_epochs,
            patience=patience,
            n_members=n_members,
            bootstrap=bootstrap,
            random_state=random_state,
            verbose=verbose,
        )
        self.reg_beta = reg_beta
        self.reg_lambda = reg_lambda
        self.objective = objective
        self.castle = castle
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
            Numbers, text, categories, booleans and dates, with missing values. One column is one node, whatever it
            holds; ``schema_`` says how it was read.
        y : array-like of shape (rows,) or (rows, targets)
            Target, or several; without missing values.
        sample_weight : array-like of shape (rows,), optional
            Weights of rows. A whole number means that many copies of the row; other weights multiply the row's loss.
        X_val, y_val : array-like, optional
            Validation rows, for early stopping. By default a random tenth of the rows is held out, see
            :class:`castlereg.Recipe`.
        graph : CausalGraph, optional
            Train with the edges of this graph and no others, such as a learned one that was edited. Sparsity leaves
            them alone.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, X_val, y_val, graph)

    def _edge_rules(self, names: list[str], n_targets: int, graph: CausalGraph | None) -> EdgeRules | None:
        return graph_rules(self.constraints, graph, names, n_targets)

    def _all_regularizers(self) -> tuple[Regularizer, ...]:
        if not isinstance(self.castle, Castle | None):
            raise ValueError(f"castle={self.castle!r} must be Castle(...) or None")
        return self._with_castle(self.castle or Castle(), self.reg_beta, self.reg_lambda)

    def _with_castle(self, castle: Castle, reg_beta: float, reg_lambda: float) -> tuple[Regularizer, ...]:
        """Put CASTLE with these strengths before the other regularizers."""
        others = check_regularizers(self.regularizers)
        if any(isinstance(regularizer, Castle) for regularizer in others):
            raise ValueError(
                f"{type(self).__name__} has Castle already: give its details as castle=Castle(...), or use "
                f"{type(self).__name__.replace('Castle', 'Network')}(regularizers=[Castle(...)])"
            )
        return replace(castle, reg_beta=reg_beta, reg_lambda=reg_lambda, objective=self.objective), *others
