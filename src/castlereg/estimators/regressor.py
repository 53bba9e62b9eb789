"""Regressors: CASTLE, and the same network with any regularizers, with fixed or cross-validated strengths."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from castlereg.estimators.base import Loss, NetworkEstimator, PlainNetwork, read_features
from castlereg.estimators.castle import CastleEstimator
from castlereg.estimators.cross_validation import CastleCV, IntervalCV, NetworkCV
from castlereg.estimators.file_fit import FileFit
from castlereg.estimators.partial_fit import PartialFit
from castlereg.target_losses import Quantiles


@dataclass(eq=False, repr=False)
class Regression(RegressorMixin, NetworkEstimator):
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
class CastleRegressor(Regression, FileFit, PartialFit, CastleEstimator):
    """Neural network for regression, regularized by learning the causal graph of the columns and the target.

    Parameters
    ----------
    reg_beta : float
        Strength of the sparsity term. The paper chooses among 0.001, 0.01, 0.1 and 1 by cross-validation.
    reg_lambda : float
        Strength of all three regularization terms together.
    objective : {"prediction", "graph"}
        ``"prediction"`` uses the paper's penalty. ``"graph"`` aims at the best graph: a likelihood loss, exactly
        acyclic networks, and edge strengths (:mod:`castlereg.fitted.strengths`) as edge weights.
    castle : Castle, optional
        Details of the penalty: acyclicity function, norm, features per step; see
        :class:`castlereg.regularizers.Castle`. Pass ``reg_beta``, ``reg_lambda`` and ``objective`` to the estimator
        instead; a ``Castle`` with values that contradict them raises.
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
        Edges that must or must not exist.
    recipe : Recipe, optional
        Details of training: scaling, initial weights, early stopping; see :class:`castlereg.Recipe`.
    categorical_features : sequence of str, int or bool, optional
        Names, indices or a mask of columns whose numbers are codes without an order. Text and pandas categories are
        always categorical; ``schema_`` shows how every column was read.
    unusable_columns : {"raise", "drop"}
        What to do with identifiers and free text, which a network cannot use: raise an error that lists them, or ignore
        their values in ``fit`` and ``predict``. With ``"raise"``, numbers that look like identifiers only give a
        warning.
    learning_rate : float
        Learning rate of Adam.
    max_epochs : int
        Maximum number of passes over the rows.
    n_members : int
        Number of networks with different seeds, trained together; predictions are their mean.
    bootstrap : bool
        Whether each network has its own bootstrap sample of the training rows. Edges that most networks share are more
        reliable, see ``graph_.confidence``.
    random_state : int, RandomState, Generator or None
        Seed. The same seed gives exactly the same model, whatever the order of the rows.
    verbose : bool
        Whether to show a progress bar.

    Attributes
    ----------
    graph_ : CausalGraph
        The learned graph, which has no cycles.
    history_ : DataFrame
        One row per network and epoch; losses are in units of the target's variance.
    schema_ : DataFrame
        One row per column of X: its kind, levels, number of missing values, and a note.
    feature_importances_ : array of shape (features,)
        Permutation importances on held-out rows, as shares of the explained loss; they need not sum to 1.
    validation_loss_ : float
        Validation loss at the best epoch, averaged over networks.
    engine_ : str
        The engine that trained the networks, ``"jax"`` or ``"native"``; see :class:`castlereg.Recipe`.
    model_ : FittedModel
        The complete fitted model: preprocessing, networks, graph, history.
    n_outputs_ : int
        Number of targets.
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
    >>> model.graph_.is_dag
    True
    """


@dataclass(eq=False, repr=False)
class NetworkRegressor(Regression, FileFit, PartialFit, PlainNetwork):
    """Neural network for regression with any regularizers; without any, the paper's Baseline with early stopping.

    This is the network of :class:`CastleRegressor`, with the same initial weights for the same seed, but with only the
    target's sub-network, unless a regularizer needs the others. Options and attributes are the same, except for those
    of CASTLE.

    Parameters
    ----------
    regularizers : sequence of Regularizer
        Regularizers, such as ``[Dropout(0.2), L2(0.01)]``; see :mod:`castlereg.regularizers`.

    Attributes
    ----------
    graph_ : CausalGraph
        Available only with a regularizer that trains the sub-networks of all columns, such as ``Castle``.

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


@dataclass(eq=False, repr=False)
class CastleRegressorCV(Regression, IntervalCV, CastleCV):
    """CASTLE for regression, chosen by cross-validation in one batched run.

    With ``search="paper"``, all folds and all strengths of CASTLE are trained together. The candidate with the lowest
    mean validation loss is chosen. Predictions are the mean of its fold networks, which lowers the error without extra
    training. For a single network on all rows, fit ``CastleRegressor(**model.best_params_)`` with the same options.

    With ``search="fast"`` or ``"best"``, a pool of candidates is trained on the same folds: linear forms, CASTLE, wide
    networks with and without embeddings of numbers, and networks on the columns that CASTLE selects. Predictions are a
    weighted mean of the candidates, with weights chosen on the rows that their networks were not trained on. This is
    the most accurate search. The graph is that of the best CASTLE candidate; its confidence uses all CASTLE networks of
    the pool.

    All other options and attributes are those of :class:`CastleRegressor`. A pool has its own training options and
    raises for those of the grid.

    Parameters
    ----------
    reg_betas : sequence of float, optional
        Strengths of the sparsity term to choose among; by default those of the paper: 0.001, 0.01, 0.1 and 1.
    search : {"auto", "fast", "best", "paper", "one_standard_error"}
        ``"fast"`` and ``"best"`` search a pool; ``"best"`` trains on two sets of folds and takes twice as long.
        ``"paper"`` chooses the best of ``reg_betas``; ``"one_standard_error"`` chooses the strongest one whose mean is
        within one standard error of the best. ``"auto"`` is ``"fast"``, or ``"paper"`` if an option of the grid is
        set: ``reg_betas``, ``castle``, ``regularizers``, ``scoring``, ``loss``, ``monotone`` or a training option.
    time_limit : float, optional
        Maximum training time of a pool in seconds; the linear forms and the first epochs of CASTLE are always trained.
        With a limit, the result depends on the speed of the machine.
    cv : int or splitter, optional
        Number of random folds, stratified for classes; or a scikit-learn splitter, or an iterable of splits. The
        default is 10, or 5 for a pool.
    scoring : str or callable, optional
        scikit-learn scorer to choose by, on the left-out rows, instead of the validation loss. With metadata routing
        (``sklearn.set_config(enable_metadata_routing=True)``), it receives the weights of the rows if it requests them.
    castle : Castle or sequence of Castle, optional
        Details of the penalty, including ``objective`` and ``reg_lambda``. If several are passed, each is tried with
        every one of ``reg_betas``, such as ``[Castle(reg_lambda=strength) for strength in (0.3, 1, 3)]``.

    Attributes
    ----------
    reg_beta_, reg_lambda_ : float
        The chosen strengths.
    cv_results_ : dict
        As in scikit-learn's searches; scores are negative validation losses unless ``scoring`` is set.
    best_index_, best_params_, best_score_
        As in scikit-learn's searches; for a pool, those of the CASTLE candidate that provides the graph.
    search_results_ : DataFrame
        For a pool: loss, weight and seconds of every candidate; ``plot_search()`` draws it.
    selected_features_ : list of str
        For a pool: the columns that CASTLE selected.
    best_regularizers_ : tuple of Regularizer
        Regularizers of the chosen candidate.
    folds_ : list of (train, held_out)
        Training and left-out rows of each fold.
    fold_seeds_ : list of int
        Seeds of the fold networks: ``CastleRegressor(reg_beta_, random_state=fold_seeds_[k])``, trained on fold k with
        its left-out rows as ``X_val``, is the network of that fold (not for a pool).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressorCV
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = CastleRegressorCV((0.01, 1.0), cv=3, max_epochs=30, random_state=0).fit(X, y)
    >>> model.reg_beta_ in (0.01, 1.0)
    True
    >>> model.predict_interval(X, coverage=0.8).shape
    (442, 2)

    A pool, here with a very short time limit:

    >>> pooled = CastleRegressorCV(search="fast", time_limit=1, random_state=0).fit(X, y)
    >>> list(pooled.search_results_)
    ['candidate', 'stage', 'loss', 'weight', 'seconds']
    """


@dataclass(eq=False, repr=False)
class NetworkRegressorCV(Regression, IntervalCV, NetworkCV):
    """Neural network for regression, with regularizers chosen by cross-validation in one batched run.

    All other options and attributes are those of :class:`CastleRegressorCV`, except for those of CASTLE.

    Parameters
    ----------
    candidates : sequence of sequence of Regularizer, optional
        Candidates to choose among; by default only the network without regularizers. Candidates with the same
        regularizers in different strengths are trained together. ``search="fast"`` and ``"best"`` use the pool of
        :class:`CastleRegressorCV` without the causal terms.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import NetworkRegressorCV
    >>> from castlereg.regularizers import Dropout, L2
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> grid = [[], [L2(0.1)], [L2(0.01)], [Dropout(0.2)]]
    >>> model = NetworkRegressorCV(grid, cv=3, max_epochs=20, random_state=0).fit(X, y)
    >>> len(model.cv_results_["params"])
    4
    """
