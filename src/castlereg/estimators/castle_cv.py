"""Options of the estimators that choose by cross-validation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from castlereg.estimators.castle import CastleEstimator
from castlereg.estimators.cross_validation import CrossValidation
from castlereg.graph import CausalGraph
from castlereg.graph.constraints import EdgeConstraints
from castlereg.options import check_number
from castlereg.regularizers import Regularizer
from castlereg.regularizers.protocol import check_regularizers


class NetworkCV(CrossValidation):
    """A network whose regularizers are chosen among candidates."""

    def __init__(
        self,
        candidates: Sequence[Sequence[Regularizer]] = ((),),
        *,
        cv: Any = 10,
        scoring: Any = None,
        one_standard_error: bool = False,
        refit: bool = False,
        hidden_layer_sizes: Literal["auto"] | tuple[int, ...] = "auto",
        input_init: str = "small",
        categorical_features: Sequence[str] | Sequence[int] | Sequence[bool] | None = None,
        scaling: str = "standard",
        learning_rate: float = 1e-3,
        batch_size: int = 32,
        max_epochs: int = 200,
        patience: int = 30,
        validation_fraction: float = 0.1,
        n_members: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        verbose: bool = False,
    ) -> None:
        self.candidates = candidates
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.refit = refit
        self.hidden_layer_sizes = hidden_layer_sizes
        self.input_init = input_init
        self.categorical_features = categorical_features
        self.scaling = scaling
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.n_members = n_members
        self.random_state = random_state
        self.verbose = verbose

    def _candidates(self) -> list[tuple[Regularizer, ...]]:
        if not hasattr(self.candidates, "__iter__") or any(isinstance(one, Regularizer) for one in self.candidates):
            raise ValueError(
                f"candidates={self.candidates!r} must be a sequence of sequences of regularizers, such as "
                "[[L2(0.1)], [L2(0.01)]]"
            )
        return [check_regularizers(candidate) for candidate in self.candidates]


class CastleCV(CrossValidation, CastleEstimator):
    """CASTLE whose ``reg_beta`` and ``reg_lambda`` are chosen."""

    def __init__(
        self,
        reg_betas: Sequence[float] = (0.001, 0.01, 0.1, 1.0),
        *,
        reg_lambdas: Sequence[float] = (1.0,),
        cv: Any = 10,
        scoring: Any = None,
        one_standard_error: bool = False,
        refit: bool = False,
        hidden_layer_sizes: Literal["auto"] | tuple[int, ...] = "auto",
        acyclicity: str = "expm",
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
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        verbose: bool = False,
    ) -> None:
        self.reg_betas = reg_betas
        self.reg_lambdas = reg_lambdas
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.refit = refit
        self.hidden_layer_sizes = hidden_layer_sizes
        self.acyclicity = acyclicity
        self.acyclicity_schedule = acyclicity_schedule
        self.sparsity = sparsity
        self.reconstruct = reconstruct
        self.regularizers = regularizers
        self.constraints = constraints
        self.input_init = input_init
        self.categorical_features = categorical_features
        self.scaling = scaling
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.n_members = n_members
        self.random_state = random_state
        self.verbose = verbose

    def fit(  # type: ignore[override]
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        graph: CausalGraph | None = None,
    ) -> Self:
        """Train all folds and candidates in one run, and choose.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array-like of shape (rows, features)
        y : array-like of shape (rows,) or (rows, targets)
        sample_weight : array-like of shape (rows,), optional
            As in :meth:`castlereg.CastleRegressor.fit`; copies of a row are in the same fold.
        groups : array-like of shape (rows,), optional
            For splitters that keep groups together.
        graph : CausalGraph, optional
            Train with the edges of this graph and no others.

        Returns
        -------
        self
        """
        return self._fit_folds(X, y, sample_weight, groups, graph)

    @property
    def reg_beta_(self) -> float:
        """The chosen strength of the sparsity."""
        return float(self.best_params_["reg_beta"])

    @property
    def reg_lambda_(self) -> float:
        """The chosen strength of the terms together."""
        return float(self.best_params_["reg_lambda"])

    def _candidates(self) -> list[tuple[Regularizer, ...]]:
        for name in ("reg_betas", "reg_lambdas"):
            values = getattr(self, name)
            if isinstance(values, str) or not hasattr(values, "__iter__") or not len(list(values)):
                raise ValueError(f"{name}={values!r} must be a sequence of numbers, such as (0.01, 0.1)")
            for value in values:
                check_number(f"each of {name}", value, least=0)
        castle, *others = self._castle(1.0, 1.0)
        return [
            (replace(castle, reg_beta=float(beta), reg_lambda=float(lam)), *others)  # type: ignore[type-var]
            for beta, lam in itertools.product(self.reg_betas, self.reg_lambdas)
        ]
