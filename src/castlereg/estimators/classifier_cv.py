"""Classifiers that choose their strengths by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from castlereg.estimators.castle_cv import CastleCV, NetworkCV
from castlereg.estimators.classification import Classification, ClassWeight
from castlereg.estimators.out_of_fold import ClassSetCV
from castlereg.graph.constraints import EdgeConstraints
from castlereg.regularizers import Regularizer


class CastleClassifierCV(Classification, ClassSetCV, CastleCV):
    """CASTLE for classes, with ``reg_beta`` and ``reg_lambda`` chosen by cross-validation in one batched run.

    The fold networks of the chosen candidate predict together: probabilities are their mean.

    Parameters
    ----------
    reg_betas, reg_lambdas, cv, scoring, one_standard_error, refit, validation_fraction, hidden_layer_sizes, \
acyclicity, acyclicity_schedule, sparsity, reconstruct, regularizers, constraints, input_init, \
categorical_features, scaling, learning_rate, \
batch_size, max_epochs, patience, n_members, random_state, verbose
        As in :class:`CastleRegressorCV`. A number of folds keeps classes in proportion.
    class_weight : "balanced", dict or None
        As in :class:`CastleClassifier`.

    Attributes
    ----------
    classes_ : array
        The classes, sorted; a list of arrays for several targets.
    reg_beta_, reg_lambda_, cv_results_, best_index_, best_params_, best_score_, folds_, fold_seeds_, graph_, \
acyclicity_, history_, schema_, validation_loss_, network_, n_outputs_, n_features_in_, feature_names_in_
        As in :class:`CastleRegressorCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from castlereg import CastleClassifierCV
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CastleClassifierCV((0.01,), cv=3, max_epochs=40, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    >>> model.predict_set(X, coverage=0.95).shape  # which classes cannot be ruled out
    (150, 3)
    """

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
        class_weight: ClassWeight = None,
        learning_rate: float = 1e-3,
        batch_size: int = 32,
        max_epochs: int = 200,
        patience: int = 30,
        validation_fraction: float = 0.1,
        n_members: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            reg_betas,
            reg_lambdas=reg_lambdas,
            cv=cv,
            scoring=scoring,
            one_standard_error=one_standard_error,
            refit=refit,
            hidden_layer_sizes=hidden_layer_sizes,
            acyclicity=acyclicity,
            acyclicity_schedule=acyclicity_schedule,
            sparsity=sparsity,
            reconstruct=reconstruct,
            regularizers=regularizers,
            constraints=constraints,
            input_init=input_init,
            categorical_features=categorical_features,
            scaling=scaling,
            learning_rate=learning_rate,
            batch_size=batch_size,
            max_epochs=max_epochs,
            patience=patience,
            validation_fraction=validation_fraction,
            n_members=n_members,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight


class NetworkClassifierCV(Classification, ClassSetCV, NetworkCV):
    """The same network with regularizers chosen among candidates by cross-validation in one batched run.

    Parameters
    ----------
    candidates, cv, scoring, one_standard_error, refit, validation_fraction, hidden_layer_sizes, input_init, \
categorical_features, scaling, learning_rate, batch_size, max_epochs, patience, n_members, random_state, verbose
        As in :class:`NetworkRegressorCV`.
    class_weight : "balanced", dict or None
        As in :class:`CastleClassifier`.

    Attributes
    ----------
    classes_ : array
        The classes, sorted; a list of arrays for several targets.
    best_regularizers_, cv_results_, best_index_, best_params_, best_score_, folds_, fold_seeds_, history_, schema_, \
validation_loss_, network_, n_outputs_, n_features_in_, feature_names_in_
        As in :class:`NetworkRegressorCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from castlereg import NetworkClassifierCV
    >>> from castlereg.regularizers import L2
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> grid = [[L2(0.1)], [L2(0.01)]]
    >>> model = NetworkClassifierCV(grid, cv=3, max_epochs=20, random_state=0).fit(X, y)
    >>> model.best_regularizers_ in [tuple(one) for one in grid]
    True
    """

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
        class_weight: ClassWeight = None,
        learning_rate: float = 1e-3,
        batch_size: int = 32,
        max_epochs: int = 200,
        patience: int = 30,
        validation_fraction: float = 0.1,
        n_members: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            candidates,
            cv=cv,
            scoring=scoring,
            one_standard_error=one_standard_error,
            refit=refit,
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
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight
