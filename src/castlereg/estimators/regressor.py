"""CASTLE for a numeric target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from castlereg.estimators.base import CastleEstimator, Rows
from castlereg.estimators.holdout import n_held_out
from castlereg.layout import Node
from castlereg.tables.encoding import Scaling, check_range, is_constant, target_node


class CastleRegressor(RegressorMixin, CastleEstimator):
    """Neural network for regression, regularized by learning the causal graph of the columns and the target.

    Parameters
    ----------
    reg_beta : float
        Factor of the sparsity term; the paper chooses among 0.001, 0.01, 0.1 and 1 by cross-validation.
    reg_lambda : float
        Factor of the three regularizing terms together.
    hidden_layer_sizes : "auto" or tuple of int
        ``"auto"`` is two layers of d + 1 units for d features (the paper), at least 8; ``()`` is the linear form.
    acyclicity : {"expm", "series"}
        Measure of cycles: the paper's matrix exponential, or the released code's series up to the ninth power.
    sparsity : {"l1", "group"}
        Norm of the input layers: the paper's l1, or one l2 norm per edge.
    reconstruct : "all" or int
        Features that are reconstructed in each step, drawn at random; a few are enough for wide tables.
    setting : {"paper", "released"}
        ``"released"`` trains as the authors' released code does, which departs from the paper:
        other weights of the terms, series, group norm, start, width 32, patience from epoch 50. Its ``reg_beta`` is 5.
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
    validation_loss_ : float
        At the best epoch.
    network_ : FittedNetwork
        The trained weights.
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

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the target.

        Parameters
        ----------
        X : array-like of shape (rows, features)

        Returns
        -------
        array of shape (rows,)
        """
        encoded = self._outputs(X)[:, :, 0].mean(axis=0)
        return self._target_scaling.decode(encoded)

    def _target_is_numeric(self) -> bool:
        return True

    def _target_node(self) -> Node:
        return target_node(None)

    def _check_target(self, y: NDArray[Any], what: str) -> None:
        check_range(y.astype(np.float64)[:, None], [what], what)

    def _encode_target(self, y: NDArray[Any]) -> NDArray[np.float64]:
        column = y.astype(np.float64)[:, None]
        if is_constant(column)[0]:
            raise ValueError(f"y is {column[0, 0]:g} in every row: there is nothing to learn from a constant target")
        self._target_scaling = Scaling.fit(column)
        return self._target_scaling.encode(column)

    def _encode_more_targets(self, y: NDArray[Any]) -> NDArray[np.float64]:
        return self._target_scaling.encode(y.astype(np.float64)[:, None])

    def _split(self, rows: Rows, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        held = n_held_out(len(rows), self.validation_fraction)
        order = rng.permutation(len(rows))
        return np.sort(order[held:]), np.sort(order[:held])
