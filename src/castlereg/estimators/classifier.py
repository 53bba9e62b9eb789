"""Classifiers: CASTLE, and the same network with any regularizers."""

from __future__ import annotations

from castlereg.estimators.base import NetworkEstimator
from castlereg.estimators.castle import CastleEstimator
from castlereg.estimators.class_target import ClassTarget


class CastleClassifier(ClassTarget, CastleEstimator):
    """Neural network for two or more classes, regularized by learning the causal graph of columns and target.

    The target's loss is the cross-entropy, in the supervised and in the reconstruction term.
    The target is one node of the graph, however many classes it has.

    Parameters
    ----------
    reg_beta, reg_lambda, hidden_layer_sizes, acyclicity, sparsity, reconstruct, regularizers, setting, input_init, \
learning_rate, batch_size, max_epochs, patience, validation_fraction, n_members, random_state, verbose
        As in :class:`CastleRegressor`. Rows held out to stop by are a share of every class.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    graph_, history_, validation_loss_, network_, n_features_in_, feature_names_in_
        As in :class:`CastleRegressor`; losses are cross-entropies.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from castlereg import CastleClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CastleClassifier(max_epochs=40, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    """


class NetworkClassifier(ClassTarget, NetworkEstimator):
    """Neural network for two or more classes with any regularizers; none is early stopping alone, the paper's Baseline.

    Parameters
    ----------
    regularizers, hidden_layer_sizes, input_init, learning_rate, batch_size, max_epochs, patience, \
validation_fraction, n_members, random_state, verbose
        As in :class:`NetworkRegressor`. Rows held out to stop by are a share of every class.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    history_, validation_loss_, network_, graph_, n_features_in_, feature_names_in_
        As in :class:`NetworkRegressor`; losses are cross-entropies.

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
