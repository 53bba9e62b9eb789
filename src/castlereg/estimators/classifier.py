"""Classifiers: CASTLE, and the same network with any regularizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from castlereg.estimators.castle import CastleEstimator
from castlereg.estimators.classification import Classification, ClassWeight
from castlereg.estimators.file_fit import FileFit
from castlereg.graph.constraints import EdgeConstraints
from castlereg.regularizers import Regularizer


class CastleClassifier(Classification, FileFit, CastleEstimator):
    """Neural network for two or more classes, regularized by learning the causal graph of columns and target.

    The target's loss is the cross-entropy, in the supervised and in the reconstruction term.
    The target is one node of the graph, however many classes it has.

    Parameters
    ----------
    reg_beta, reg_lambda, hidden_layer_sizes, acyclicity, acyclicity_schedule, sparsity, reconstruct, regularizers, \
constraints, input_init, \
categorical_features, scaling, learning_rate, batch_size, max_epochs, patience, validation_fraction, n_members, \
bootstrap, random_state, verbose
        As in :class:`CastleRegressor`. Rows held out to stop by are a share of every class.
    class_weight : "balanced", dict or None
        Factors of the rows' weights by class, as in scikit-learn: ``"balanced"`` gives every class the same total. For
        several targets a list with one entry for each; the factors of a row are multiplied.

    Attributes
    ----------
    classes_ : array
        The classes, sorted; a list of arrays for several targets.
    graph_, acyclicity_, history_, schema_, validation_loss_, network_, n_outputs_, n_features_in_, feature_names_in_
        As in :class:`CastleRegressor`. Losses are cross-entropies as shares of that of the base rates: 1 means that
        nothing is known.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from castlereg import CastleClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CastleClassifier(max_epochs=40, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    """

    def __init__(
        self,
        reg_beta: float = 0.01,
        reg_lambda: float = 1.0,
        *,
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
        bootstrap: bool = False,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            reg_beta,
            reg_lambda,
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
            bootstrap=bootstrap,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight


class NetworkClassifier(Classification, FileFit):
    """Neural network for two or more classes with any regularizers; none is early stopping alone, the paper's Baseline.

    Parameters
    ----------
    regularizers, hidden_layer_sizes, input_init, categorical_features, scaling, learning_rate, batch_size, \
max_epochs, patience, validation_fraction, n_members, bootstrap, random_state, verbose
        As in :class:`NetworkRegressor`. Rows held out to stop by are a share of every class.
    class_weight : "balanced", dict or None
        As in :class:`CastleClassifier`.

    Attributes
    ----------
    classes_, history_, schema_, validation_loss_, network_, n_outputs_, n_features_in_, feature_names_in_
        As in :class:`CastleClassifier`.
    graph_ : CausalGraph
        As in :class:`NetworkRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from castlereg import NetworkClassifier
    >>> from castlereg.regularizers import MixUp
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = NetworkClassifier([MixUp(0.2)], max_epochs=40, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    """

    def __init__(
        self,
        regularizers: Sequence[Regularizer] = (),
        *,
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
        self.class_weight = class_weight
