"""Regressors and classifiers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from castlereg.estimators.base import FixedCastle, FixedNetwork, Loss, NetworkEstimator, read_features
from castlereg.estimators.cross_validation import CastleCV
from castlereg.regularizers import Regularizer
from castlereg.search.model import class_sets, cv_plus
from castlereg.table.targets import ClassWeight, check_class_weight
from castlereg.target_losses import Poisson, Quantiles


@dataclass(eq=False, repr=False)
class _Regression(RegressorMixin, NetworkEstimator):
    """Predictions of all regressors."""

    target_kind = "numbers"
    loss: Loss = field(default="squared", kw_only=True)  # type: ignore[misc]

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict one or several targets.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
        """
        values = self._predicted(X)
        return values[0] if len(values) == 1 else np.column_stack(values)

    def predict_quantiles(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the quantiles of ``loss=Quantiles(...)``, which never cross.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)

        Returns
        -------
        array of shape (rows, quantiles), or (rows, targets, quantiles) for several targets
            Mean over networks, in the order of the levels.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from castlereg import NetworkRegressor
        >>> from castlereg.losses import Quantiles
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = NetworkRegressor(loss=Quantiles((0.1, 0.5, 0.9)), max_epochs=20, random_state=0).fit(X, y)
        >>> low, median, high = model.predict_quantiles(X).T
        >>> bool((low <= median).all() and (median <= high).all())
        True
        """
        check_is_fitted(self)
        if not all(isinstance(target.node.loss, Quantiles) for target in self.model_.targets):
            raise AttributeError(
                f"this {type(self).__name__} has no quantiles: fit it with loss=Quantiles((0.1, 0.5, 0.9))"
            )
        quantiles = self.model_.predict_quantiles(read_features(self, X))
        return quantiles[:, 0] if quantiles.shape[1] == 1 else quantiles


@dataclass(eq=False, repr=False)
class CastleRegressor(_Regression, FixedCastle):
    """Neural network for regression, regularized by learning the causal graph of the columns and the target.

    Parameters
    ----------
    reg_beta : float
        Strength of the sparsity term. The paper chooses among 0.001, 0.01, 0.1 and 1 by cross-validation.
    reg_lambda : float
        Strength of all three regularization terms together.
    castle : Castle, optional
        Details of the penalty: acyclicity function, norm, features per step; see
        :class:`castlereg.regularizers.Castle`. Pass ``reg_beta`` and ``reg_lambda`` to the estimator instead; a
        ``Castle`` with values that contradict them raises.
    loss : {"squared", "huber", "poisson", "quantiles"} or object of castlereg.losses
        Loss of the target: the squared error; :class:`castlereg.losses.Huber` for targets with outliers;
        :class:`castlereg.losses.Poisson` for counts; :class:`castlereg.losses.Quantiles` for several quantiles.
    monotone : dict of str or int to {1, -1}, optional
        Columns in which the prediction never falls (1) or never rises (-1) when all other columns are fixed, such as
        ``{"age": 1}``. The constraint holds exactly.
    hidden_layer_sizes : "auto" or tuple of int
        Widths of the hidden layers. ``"auto"`` uses two layers of d + 1 units for d features, as in the paper, but at
        least 8; ``()`` is the linear form.
    regularizers : sequence of Regularizer
        Regularizers in addition to CASTLE, such as ``[Dropout(0.2), L2(0.01)]``; see :mod:`castlereg.regularizers`.
    constraints : EdgeConstraints, optional
        Edges that must or must not exist, in the networks and in the graph.
    recipe : Recipe, optional
        Details of training: scaling, initial weights, early stopping; see :class:`castlereg.Recipe`.
    categorical_features : sequence of str, int or bool, optional
        Names, indices or a mask of columns whose numbers are codes without an order. Text and pandas categories are
        always categorical. Identifiers and free text are left out with a warning unless they are listed here;
        ``schema_`` shows how every column was read.
    learning_rate : float
        Learning rate of Adam.
    max_epochs : int
        Maximum number of passes over the rows.
    n_members : int
        Number of networks with different seeds, trained together; predictions are their mean.
    bootstrap : bool
        Whether each network has its own bootstrap sample of the training rows.
    random_state : int, RandomState, Generator or None
        Seed. The same seed gives exactly the same model for the same rows in the same order.
    verbose : bool
        Whether to show a progress bar.

    Attributes
    ----------
    model_ : FittedModel
        The complete fitted model: preprocessing, networks, history.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = CastleRegressor(max_epochs=20, random_state=0).fit(X, y)
    >>> model.predict(X).shape
    (442,)
    >>> model.graph_.targets
    ('target',)
    """


@dataclass(eq=False, repr=False)
class NetworkRegressor(_Regression, FixedNetwork):
    """Neural network for regression with any regularizers; without any, the paper's Baseline with early stopping.

    This is the network of :class:`CastleRegressor`, with the same initial weights for the same seed, but with only the
    target's sub-network, unless a regularizer needs the others. Options and attributes are the same, except for those
    of CASTLE.

    Parameters
    ----------
    regularizers : sequence of Regularizer
        Regularizers, such as ``[Dropout(0.2), L2(0.01)]``; see :mod:`castlereg.regularizers`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import NetworkRegressor
    >>> from castlereg.regularizers import Dropout, L2
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = NetworkRegressor([Dropout(0.2), L2(0.01)], max_epochs=20, random_state=0).fit(X, y)
    >>> model.predict(X).shape
    (442,)
    """

    regularizers: tuple[Regularizer, ...] | list[Regularizer] = ()


@dataclass(eq=False, repr=False)
class CastleRegressorCV(_Regression, CastleCV):
    """CASTLE for regression, chosen by cross-validation: the most accurate estimator.

    With ``search="fast"`` or ``"best"``, a pool of candidates is trained on the same folds: linear forms, CASTLE, wide
    networks with and without embeddings of numbers, and networks on the columns that CASTLE selects. Predictions are a
    weighted mean of the candidates, with weights chosen on the rows that their networks were not trained on.

    With ``search="paper"``, all folds and all strengths of CASTLE are trained together. The candidate with the lowest
    mean validation loss is chosen, with weight 1. Predictions are the mean of its fold networks, which lowers the error
    without extra training. For a single network on all rows, fit ``CastleRegressor(**model.best_params_)`` with the
    same options.

    All other options and attributes are those of :class:`CastleRegressor`. An option that is None, and ``"auto"`` for
    ``hidden_layer_sizes``, takes the value of the search, which may differ between its stages; any other value holds in
    every stage. The linear forms have no training options, and are left out for other losses and monotone columns.

    Parameters
    ----------
    reg_betas : sequence of float, optional
        Strengths of the sparsity term of CASTLE; those of the paper are 0.001, 0.01, 0.1 and 1.
    search : {"fast", "best", "paper", "one_standard_error"}
        ``"fast"`` and ``"best"`` blend a pool; ``"best"`` trains on two sets of folds and takes twice as long.
        ``"paper"`` chooses the best of ``reg_betas``; ``"one_standard_error"`` chooses the strongest one whose mean is
        within one standard error of the best. For a limit in seconds, pass
        ``callbacks=[castlereg.callbacks.TimeLimit(60)]`` to ``fit``.
    cv : int or splitter, optional
        Number of random folds, stratified for classes; or a scikit-learn splitter, or an iterable of splits. The
        default is 5 for a pool and 10 for a grid.
    scoring : str or callable, optional
        scikit-learn scorer to choose or blend by, on the left-out rows, instead of the loss. With metadata routing
        (``sklearn.set_config(enable_metadata_routing=True)``), it receives the weights of the rows if it requests them.
    castle : Castle or sequence of Castle, optional
        Details of the penalty, including ``reg_lambda``. If several are passed, each is tried with every one of
        ``reg_betas``, such as ``[Castle(reg_lambda=strength) for strength in (0.3, 1, 3)]``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressorCV
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = CastleRegressorCV((0.01, 1.0), search="paper", cv=3, max_epochs=30, random_state=0).fit(X, y)
    >>> model.reg_beta_ in (0.01, 1.0)
    True
    >>> model.predict_interval(X, coverage=0.8).shape
    (442, 2)

    A pool, here with very few epochs:

    >>> pooled = CastleRegressorCV(max_epochs=3, random_state=0).fit(X, y)
    >>> list(pooled.search_results_)
    ['candidate', 'stage', 'loss', 'weight', 'seconds']
    """

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> NDArray[np.float64]:
        """Predict an interval for every row, by CV+ (the jackknife+ over folds).

        For each training row, take the network of the fold that left it out, and its error on this row. The interval is
        formed by the predictions of these networks for the new row, plus or minus their errors, of at most 20,000 rows.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
        coverage : float
            Share of new rows whose target should be inside. The theorem guarantees at least ``2 * coverage - 1`` for
            exchangeable rows. Here this holds approximately, because left-out rows are also used for early stopping.

        Returns
        -------
        array of shape (rows, 2), or (rows, targets, 2) for several targets
            Lower and upper ends; infinite if there are too few rows for the coverage.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from castlereg import CastleRegressorCV
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = CastleRegressorCV((0.01,), search="paper", cv=3, max_epochs=20, random_state=0)
        >>> lower, upper = model.fit(X[:300], y[:300]).predict_interval(X[300:]).T
        >>> bool(((lower <= y[300:]) & (y[300:] <= upper)).mean() > 0.8)
        True
        """
        intervals = [cv_plus(values, errors, coverage) for values, errors in self._by_fold(X, coverage)]
        for interval, target in zip(intervals, self.model_.targets, strict=True):
            if isinstance(target.node.loss, Poisson):
                np.maximum(interval, 0.0, out=interval)
        return intervals[0] if len(intervals) == 1 else np.stack(intervals, axis=1)


@dataclass(eq=False, repr=False)
class _Classification(ClassifierMixin, NetworkEstimator):
    """Predictions and scores of all classifiers."""

    target_kind = "classes"
    class_weight: ClassWeight = field(default=None, kw_only=True)  # type: ignore[misc]

    @property
    def classes_(self) -> Any:
        """The classes, sorted; a list of arrays for several targets."""
        classes = self._fitted().classes
        return classes[0] if len(classes) == 1 else classes

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64] | list[NDArray[np.float64]]:
        """Predict the probability of every class.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)

        Returns
        -------
        array of shape (rows, classes), or a list of these for several targets
            Mean over networks, in the order of ``classes_``.
        """
        probabilities = self._predicted(X)
        return probabilities[0] if len(probabilities) == 1 else probabilities

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the most probable class.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
        """
        probabilities = self._predicted(X)
        classes = self.model_.classes
        predicted = [labels[shares.argmax(axis=1)] for labels, shares in zip(classes, probabilities, strict=True)]
        return predicted[0] if len(predicted) == 1 else np.column_stack(predicted)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy; with several targets, the share of rows with correct predictions for all of them.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
        y : array-like of shape (rows,) or (rows, targets)
        sample_weight : array-like of shape (rows,), optional
        """
        if self.n_outputs_ == 1:
            return float(super().score(X, y, sample_weight))
        right = np.all(self.predict(X) == np.asarray(y), axis=1)
        return float(np.average(right, weights=sample_weight))  # type: ignore[arg-type]

    def _check_options(self) -> None:
        super()._check_options()
        check_class_weight(self.class_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@dataclass(eq=False, repr=False)
class CastleClassifier(_Classification, FixedCastle):
    """Neural network for classification, regularized by learning the causal graph of the columns and the target.

    The target's loss is the cross-entropy, in both the supervised and the reconstruction term, divided by that of the
    base rates; a loss of 1 is no better than predicting these. The target is one node of the graph, whatever its number
    of classes. Validation rows are stratified by class. All other options and attributes are those of
    :class:`CastleRegressor`.

    Parameters
    ----------
    class_weight : "balanced", dict or None
        Weights of the classes, which multiply the weights of rows, as in scikit-learn: ``"balanced"`` gives every class
        the same total weight. For several targets, pass a list with one entry per target; the factors are multiplied.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from castlereg import CastleClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CastleClassifier(max_epochs=40, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    """


@dataclass(eq=False, repr=False)
class NetworkClassifier(_Classification, FixedNetwork):
    """Neural network for classification with any regularizers; without any, the paper's Baseline with early stopping.

    Options and attributes are those of :class:`NetworkRegressor`, with ``class_weight`` and ``classes_`` as in
    :class:`CastleClassifier`. Validation rows are stratified by class.

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

    regularizers: tuple[Regularizer, ...] | list[Regularizer] = ()


@dataclass(eq=False, repr=False)
class CastleClassifierCV(_Classification, CastleCV):
    """CASTLE for classification, chosen by cross-validation: the most accurate classifier.

    If ``cv`` is a number, folds are stratified by class. Options and attributes are those of
    :class:`CastleRegressorCV`, with ``class_weight`` and ``classes_`` as in :class:`CastleClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from castlereg import CastleClassifierCV
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CastleClassifierCV((0.01,), search="paper", cv=3, max_epochs=40, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    >>> model.predict_set(X, coverage=0.95).shape  # which classes cannot be ruled out
    (150, 3)
    """

    def predict_set(self, X: ArrayLike, coverage: float = 0.9) -> NDArray[np.bool_] | list[NDArray[np.bool_]]:
        """Predict the classes that cannot be ruled out, by CV+.

        A class is ruled out if the fold networks give it a lower probability than the true class of most rows that they
        were not trained on.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
        coverage : float
            Share of new rows whose class should be in the set.

        Returns
        -------
        array of bool, shape (rows, classes), or a list of these for several targets
            In the order of ``classes_``.
        """
        sets = [class_sets(shares, errors, coverage) for shares, errors in self._by_fold(X, coverage)]
        return sets[0] if len(sets) == 1 else sets
