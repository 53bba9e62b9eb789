"""Regressors that choose their strengths by cross-validation."""

from __future__ import annotations

from castlereg.estimators.castle_cv import CastleCV, NetworkCV
from castlereg.estimators.out_of_fold import IntervalCV
from castlereg.estimators.regression import Regression


class CastleRegressorCV(Regression, IntervalCV, CastleCV):
    """CASTLE for regression, with ``reg_beta`` and ``reg_lambda`` chosen by cross-validation in one batched run.

    Folds, betas and lambdas are trained together. The candidate with the lowest mean validation loss is taken, and its
    fold networks predict together, which lowers the error at no extra training.

    Parameters
    ----------
    reg_betas, reg_lambdas : sequence of float
        Strengths to choose among.
    cv : int or splitter
        Number of folds, which are random and keep classes in proportion; or any splitter of scikit-learn, or an
        iterable of splits.
    scoring : str or callable, optional
        Choose by a scorer of scikit-learn on the left-out rows instead of by the validation loss.
    one_standard_error : bool
        Take the strongest candidate whose mean is within one standard error of the best one's.
    refit : bool
        Predict with a single network that is trained on all rows with the chosen strengths, not with the mean of the
        fold networks.
    validation_fraction : float
        Share of rows held out to stop by when refitting.
    n_members : int
        Networks for each fold, which differ in their starting weights; all of them choose and predict.
    hidden_layer_sizes, acyclicity, acyclicity_schedule, sparsity, reconstruct, regularizers, constraints, \
input_init, categorical_features, scaling, learning_rate, batch_size, max_epochs, patience, random_state, verbose
        As in :class:`CastleRegressor`.

    Attributes
    ----------
    reg_beta_, reg_lambda_ : float
        The chosen strengths.
    cv_results_ : dict
        As in scikit-learn's searches; scores are negative validation losses unless ``scoring`` is given.
    best_index_, best_params_, best_score_
        As in scikit-learn's searches.
    folds_ : list of (train, held_out)
        Rows of each fold.
    fold_seeds_ : list of int
        ``CastleRegressor(reg_beta_, random_state=fold_seeds_[k])``, trained on fold k with its left-out rows as
        ``X_val``, is the network of that fold.
    graph_, acyclicity_, history_, schema_, validation_loss_, network_, n_outputs_, n_features_in_, feature_names_in_
        As in :class:`CastleRegressor`, of the fold networks; ``graph_.confidence`` is always from these.

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
    """


class NetworkRegressorCV(Regression, IntervalCV, NetworkCV):
    """The same network with regularizers chosen among candidates by cross-validation in one batched run.

    Parameters
    ----------
    candidates : sequence of sequence of Regularizer
        To choose among; those with the same regularizers in different strengths are trained together.
    cv, scoring, one_standard_error, refit, validation_fraction, hidden_layer_sizes, input_init, categorical_features, \
scaling, learning_rate, batch_size, max_epochs, patience, n_members, random_state, verbose
        As in :class:`CastleRegressorCV`.

    Attributes
    ----------
    best_regularizers_ : tuple of Regularizer
        The chosen candidate.
    cv_results_, best_index_, best_params_, best_score_, folds_, fold_seeds_, history_, schema_, validation_loss_, \
network_, n_outputs_, n_features_in_, feature_names_in_
        As in :class:`CastleRegressorCV`.

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
