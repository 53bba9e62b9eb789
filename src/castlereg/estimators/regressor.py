"""Regressors: CASTLE, and the same network with any regularizers."""

from __future__ import annotations

from castlereg.estimators.castle import CastleEstimator
from castlereg.estimators.file_fit import FileFit
from castlereg.estimators.regression import Regression


class CastleRegressor(Regression, FileFit, CastleEstimator):
    """Neural network for regression, regularized by learning the causal graph of the columns and the target.

    Parameters
    ----------
    reg_beta : float
        Factor of the sparsity term; the paper chooses among 0.001, 0.01, 0.1 and 1 by cross-validation.
    reg_lambda : float
        Factor of the three regularizing terms together.
    hidden_layer_sizes : "auto" or tuple of int
        ``"auto"`` is two layers of d + 1 units for d features (the paper), at least 8; ``()`` is the linear form.
    acyclicity : {"expm", "logdet", "auto"} or callable
        Acyclicity function: the paper's matrix exponential, the log-determinant, or a JAX function of the square matrix
        of edge weights (:mod:`castlereg.acyclicity`). ``"auto"`` is ``"expm"`` up to 200 nodes and the cheaper
        ``"logdet"`` beyond.
    acyclicity_schedule : {"fixed", "exact"}
        The paper's fixed penalty of cycles; or one that grows, after which cycles are cut and training goes on without
        them, with the columns scored by their likelihood and edges weighed by it
        (:mod:`castlereg.edge_strength`). Exact is for the graph, see :class:`castlereg.regularizers.Castle`; fixed is
        for prediction.
    sparsity : {"l1", "group"}
        Norm of the input layers: the paper's l1, or one l2 norm per edge.
    reconstruct : "all" or int
        Features that are reconstructed in each step, drawn at random; a few are enough for wide tables.
    regularizers : sequence of Regularizer
        Others beside CASTLE, such as ``[Dropout(0.2), L2(0.01)]``; see :mod:`castlereg.regularizers`.
    constraints : EdgeConstraints, optional
        Edges that are known to be or not to be.
    input_init : {"small", "glorot"}
        Scale of the input layers' start: normal with sd 0.01, or the usual one, with which the acyclicity term of wide
        tables drowns all others.
    categorical_features : sequence of str, int or bool, optional
        Names, indices or a mask of columns whose numbers are codes without an order. Text and pandas categories are
        categorical anyway; ``schema_`` shows what every column was taken for.
    scaling : {"standard", "robust"}
        ``"robust"`` scales numeric columns by their quartiles and draws far values in smoothly, before standardizing
        them: for columns with long tails or wild values. The paper standardizes.
    learning_rate : float
        Of Adam.
    batch_size : int
        Rows in a step.
    max_epochs : int
        Most passes over the rows.
    patience : int
        Epochs without a lower validation loss after which training stops. The best epoch's weights are kept.
    validation_fraction : float
        Share of rows held out to stop by, unless ``fit`` is given ``X_val`` and ``y_val``.
    n_members : int
        Networks with different seeds, trained together; predictions are their mean.
    bootstrap : bool
        Whether each network has training rows of its own, drawn with replacement: edges that survive this can be
        relied on more, see ``graph_.confidence``.
    random_state : int, RandomState, Generator or None
        Seed. The same seed gives the same bits, whatever the order of the rows.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    graph_ : CausalGraph
        The learned graph, without cycles.
    acyclicity_ : str or callable
        The measure of cycles that was used, also where ``acyclicity="auto"``.
    history_ : DataFrame
        One row per network and epoch; losses are in units of the target's variance.
    schema_ : DataFrame
        One row per column of X: its kind, levels, number of gaps, and what else was noticed.
    validation_loss_ : float
        At the best epoch.
    network_ : FittedNetwork
        The trained weights.
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


class NetworkRegressor(Regression, FileFit):
    """Neural network for regression with any regularizers; none is early stopping alone, the paper's Baseline.

    The same network as :class:`CastleRegressor`'s, from the same starting weights for the same seed, but the target's
    sub-network alone, unless a regularizer asks for the others.

    Parameters
    ----------
    regularizers : sequence of Regularizer
        Such as ``[Dropout(0.2), L2(0.01)]``; see :mod:`castlereg.regularizers`.
    input_init : {"small", "glorot"}
        Scale of the input layer's start: normal with sd 0.01, which often predicts better, or the usual one.
    hidden_layer_sizes, categorical_features, scaling, learning_rate, batch_size, max_epochs, patience, \
validation_fraction, n_members, bootstrap, random_state, verbose
        As in :class:`CastleRegressor`.

    Attributes
    ----------
    history_, schema_, validation_loss_, network_, n_outputs_, n_features_in_, feature_names_in_
        As in :class:`CastleRegressor`.
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
