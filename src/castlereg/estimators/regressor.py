"""Regressors: CASTLE, and the same network with any regularizers; each with a fixed or a chosen strength."""

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
    """What every regressor does."""

    target_kind = "numbers"
    loss: Loss = field(default="squared", kw_only=True)  # type: ignore[misc]

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the target, or every target.

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
            In the order of the levels; the mean over networks.

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
                f"this {type(self).__name__} has not learned quantiles: fit it with loss=Quantiles((0.1, 0.5, 0.9))"
            )
        quantiles = self.model_.predict_quantiles(read_features(self, X))
        return quantiles[:, 0] if quantiles.shape[1] == 1 else quantiles


@dataclass(eq=False, repr=False)
class CastleRegressor(Regression, FileFit, PartialFit, CastleEstimator):
    """Neural network for regression, regularized by learning the causal graph of the columns and the target.

    Parameters
    ----------
    reg_beta : float
        Factor of the sparsity term; the paper chooses among 0.001, 0.01, 0.1 and 1 by cross-validation.
    reg_lambda : float
        Factor of the three regularizing terms together.
    objective : {"prediction", "graph"}
        ``"prediction"`` is the paper's penalty. ``"graph"`` is for the graph: likelihood loss, exactly acyclic
        networks, and edge strengths (:mod:`castlereg.fitted.strengths`) as edge weights.
    castle : Castle, optional
        Details of the penalty: acyclicity function, norm, features per step; see
        :class:`castlereg.regularizers.Castle`. ``reg_beta``, ``reg_lambda`` and ``objective`` are options of the
        estimator, which replace the defaults of ``Castle``; a ``Castle`` with other values raises.
    loss : {"squared", "huber", "poisson", "quantiles"} or object of castlereg.losses
        What errors of the target cost: their squares; :class:`castlereg.losses.Huber` for targets with wild values;
        :class:`castlereg.losses.Poisson` for counts; :class:`castlereg.losses.Quantiles` for several quantiles at once.
    monotone : dict of str or int to {1, -1}, optional
        Columns with which the prediction never falls (1) or never rises (-1) while all others stay as they are, such as
        ``{"age": 1}``. The promise is exact.
    hidden_layer_sizes : "auto" or tuple of int
        ``"auto"`` is two layers of d + 1 units for d features (the paper), at least 8; ``()`` is the linear form.
    regularizers : sequence of Regularizer
        Others beside CASTLE, such as ``[Dropout(0.2), L2(0.01)]``; see :mod:`castlereg.regularizers`.
    constraints : EdgeConstraints, optional
        Edges that are known to exist or not to exist.
    recipe : Recipe, optional
        Details of training: scaling, start, early stopping; see :class:`castlereg.Recipe`.
    categorical_features : sequence of str, int or bool, optional
        Names, indices or a mask of columns whose numbers are codes without an order. Text and pandas categories are
        categorical anyway; ``schema_`` shows how every column was read.
    unusable_columns : {"raise", "drop"}
        What to do about identifiers and free text, of which a network cannot learn: raise an error that lists them, or
        keep them as columns without influence and ignore what they hold in ``predict``. Numbers that look like
        identifiers only warn with ``"raise"``.
    learning_rate : float
        Of Adam.
    max_epochs : int
        Most passes over the rows.
    n_members : int
        Networks with different seeds, trained together; predictions are their mean.
    bootstrap : bool
        Whether each network has its own training rows, drawn with replacement: edges that survive this are more
        reliable, see ``graph_.confidence``.
    random_state : int, RandomState, Generator or None
        Seed. The same seed gives the same bits, whatever the order of the rows.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    graph_ : CausalGraph
        The learned graph, without cycles.
    history_ : DataFrame
        One row per network and epoch; losses are in units of the target's variance.
    schema_ : DataFrame
        One row per column of X: its kind, levels, number of missing values, and what else was noticed.
    feature_importances_ : array of shape (features,)
        The share of the target's loss explained through each column, on held-out rows; the values need not sum to 1.
    validation_loss_ : float
        At the best epoch.
    engine_ : str
        What trained the networks, ``"jax"`` or ``"native"``; see :class:`castlereg.Recipe`.
    model_ : FittedModel
        Everything that was learned: preprocessing, networks, graph, history.
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
    """Neural network for regression with any regularizers; none is only early stopping, the paper's Baseline.

    The same network as :class:`CastleRegressor`'s, from the same starting weights for the same seed, but only the
    target's sub-network, unless a regularizer needs the others. Options and attributes are as there, without those of
    CASTLE.

    Parameters
    ----------
    regularizers : sequence of Regularizer
        Such as ``[Dropout(0.2), L2(0.01)]``; see :mod:`castlereg.regularizers`.

    Attributes
    ----------
    graph_ : CausalGraph
        Only with a regularizer that trains the sub-networks of all columns, such as ``Castle``.

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

    With ``search="paper"``, folds and strengths of CASTLE are trained together. The candidate with the lowest mean
    validation loss is chosen, and its fold networks predict together, which lowers the error at no extra training. For
    a single network on all rows, fit ``CastleRegressor(**model.best_params_)`` with the other options as here.

    With ``search="fast"`` or ``"best"``, a pool of candidates is trained on common folds: linear forms, CASTLE, wide
    networks with and without embeddings of numbers, and networks on the columns that CASTLE selects. A weighted mean of
    them predicts, with weights chosen by the rows that their networks were not trained on; this is the most accurate.
    The graph is that of the best CASTLE candidate, its confidence that of all CASTLE networks of the pool.

    All other options and attributes are those of :class:`CastleRegressor`; a pool has its own training options, and
    raises for those of the grid.

    Parameters
    ----------
    reg_betas : sequence of float, optional
        Strengths of the sparsity to choose among; the paper's by default: 0.001, 0.01, 0.1 and 1.
    search : {"auto", "fast", "best", "paper", "one_standard_error"}
        ``"fast"`` and ``"best"`` are pools; ``"best"`` trains on two sets of folds and takes twice as long.
        ``"paper"`` chooses the best of ``reg_betas``; ``"one_standard_error"`` the strongest whose mean is within one
        standard error of the best one's. ``"auto"`` is ``"fast"``, or ``"paper"`` if an option of the grid is given:
        ``reg_betas``, ``castle``, ``regularizers``, ``scoring``, ``loss``, ``monotone``, or how networks are trained.
    time_limit : float, optional
        Seconds after which the training of a pool ends; the linear forms and the first epochs of CASTLE are always
        trained. The result then depends on the speed of the machine.
    cv : int or splitter, optional
        Number of folds, which are random and keep classes in proportion; or any splitter of scikit-learn, or an
        iterable of splits. By default 10, and 5 for a pool.
    scoring : str or callable, optional
        Choose by a scorer of scikit-learn on the left-out rows instead of by the validation loss. With metadata routing
        (``sklearn.set_config(enable_metadata_routing=True)``), it gets the rows' weights if it requests them.
    castle : Castle or sequence of Castle, optional
        Details of the penalty, ``objective`` and ``reg_lambda`` among them. Several are all tried with every beta, such
        as ``[Castle(reg_lambda=strength) for strength in (0.3, 1, 3)]``. The betas are those of ``reg_betas``.

    Attributes
    ----------
    reg_beta_, reg_lambda_ : float
        The chosen strengths.
    cv_results_ : dict
        As in scikit-learn's searches; scores are negative validation losses unless ``scoring`` is given.
    best_index_, best_params_, best_score_
        As in scikit-learn's searches; of a pool, those of the CASTLE candidate that the graph comes from.
    search_results_ : DataFrame
        Of a pool: loss, weight and seconds of every candidate; ``plot_search()`` draws it.
    selected_features_ : list of str
        Of a pool: the columns that CASTLE selected.
    best_regularizers_ : tuple of Regularizer
        The chosen candidate.
    folds_ : list of (train, held_out)
        Rows of each fold.
    fold_seeds_ : list of int
        ``CastleRegressor(reg_beta_, random_state=fold_seeds_[k])``, trained on fold k with its left-out rows as
        ``X_val``, is the network of that fold; not so for a pool.

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

    A pool, here with very little time:

    >>> pooled = CastleRegressorCV(search="fast", time_limit=1, random_state=0).fit(X, y)
    >>> list(pooled.search_results_)
    ['candidate', 'stage', 'loss', 'weight', 'seconds']
    """


@dataclass(eq=False, repr=False)
class NetworkRegressorCV(Regression, IntervalCV, NetworkCV):
    """The same network with regularizers chosen among candidates by cross-validation in one batched run.

    All other options and attributes are as in :class:`CastleRegressorCV`, without those of CASTLE.

    Parameters
    ----------
    candidates : sequence of sequence of Regularizer, optional
        To choose among, only the plain network by default; those with the same regularizers in different strengths are
        trained together. The pools of ``search="fast"`` and ``"best"`` have their own: those of
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
