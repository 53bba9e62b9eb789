"""Quick measurements of a table: size, redundancy, and how well simple models predict the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import f as f_distribution
from sklearn.covariance import ledoit_wolf
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict

from castlereg.estimators import NetworkClassifier, NetworkRegressor
from castlereg.estimators.base import NetworkEstimator, read_training_rows
from castlereg.options import check_choice
from castlereg.table.preprocessing import Preprocessing
from castlereg.table.table import measure, standardize
from castlereg.table.targets import fit_target, inferred_task

_MOST_ROWS = 3000  # enough for all measurements; larger tables are sampled
_SIGNIFICANT = 0.05
_PENALTIES = np.geomspace(0.1, 1000, 9)


@dataclass(frozen=True)
class TableFacts:
    """A table in a few numbers.

    Attributes
    ----------
    rows, columns : int
    redundancy : float
        Share of the variance of a column that a linear model predicts from all the others; the mean over columns. 0 for
        independent columns, 1 for copies.
    unrelated : float
        Share of the columns whose linear relation to the target is not significant (5 %).
    linear : float
        Share of the target's variance that ridge regression predicts in cross-validation. For classes, the variance of
        their indicators.
    flexible : float
        The same for randomized trees.
    """

    rows: int
    columns: int
    redundancy: float
    unrelated: float
    linear: float
    flexible: float

    @property
    def rows_per_column(self) -> float:
        """Number of rows per column."""
        return self.rows / self.columns

    @property
    def nonlinearity(self) -> float:
        """Share of the target's variance that trees predict, minus that of a linear model."""
        return self.flexible - self.linear


def table_facts(
    X: ArrayLike, y: ArrayLike, *, task: Literal["auto", "regression", "classification"] = "auto"
) -> TableFacts:
    """Measure a table.

    Parameters
    ----------
    X : DataFrame of pandas or polars, or array-like of shape (rows, features)
        Text, missing values and dates are allowed, as in :meth:`castlereg.CastleRegressor.fit`.
    y : array-like of shape (rows,)
    task : {"auto", "regression", "classification"}
        By default inferred from ``y``.

    Returns
    -------
    TableFacts

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> facts = table_facts(*load_diabetes(return_X_y=True))
    >>> facts.rows, facts.columns, round(facts.redundancy, 1), round(facts.linear, 1)
    (442, 10, 0.6, 0.5)
    """
    check_choice("task", task, ["auto", "regression", "classification"])
    inputs, nodes, target = _standardized(X, y, task)
    n_rows, n_columns = len(inputs), int(nodes.max()) + 1
    if n_rows > _MOST_ROWS:
        chosen = np.random.default_rng(0).permutation(n_rows)[:_MOST_ROWS]
        inputs, target = inputs[chosen], target[chosen]
    ridge = RidgeCV(_PENALTIES * len(inputs) / 100)
    trees = ExtraTreesRegressor(100, min_samples_leaf=3, max_features=0.5, random_state=0)
    return TableFacts(
        n_rows,
        n_columns,
        _redundancy(inputs, nodes),
        float(np.mean([_is_unrelated(inputs[:, nodes == node], target) for node in range(n_columns)])),
        _predicted_share(ridge, inputs, target),
        _predicted_share(trees, inputs, target),
    )


def _standardized(
    X: ArrayLike, y: ArrayLike, task: str
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Return standardized channels of the columns, the column of each, and channels of the target; missing are 0."""
    is_classification = (inferred_task(y)[0] if task == "auto" else task) == "classification"
    model: NetworkEstimator = (NetworkClassifier if is_classification else NetworkRegressor)(unusable_columns="drop")
    rows, names = read_training_rows(model, X, y)
    if len(rows.targets) > 1:
        raise ValueError(
            f"y has {len(rows.targets)} targets, but advice() takes one; call it for each target separately"
        )
    preprocessing, (rows,) = Preprocessing.fit(
        rows,
        None,
        lambda rows: (fit_target(rows.targets[0], names[-1], model.target_kind),),
        categorical=[False] * len(rows.columns.names),
        drop_unusable=True,
    )
    table = preprocessing.table(rows)
    by = measure(table, [np.arange(len(rows), dtype=np.int32)])[0].of_member(0)
    channels = np.nan_to_num(np.asarray(standardize(table.inputs, by, table.layout), np.float64))
    split = table.layout.n_feature_channels
    return channels[:, :split], table.layout.channel_nodes[:split], channels[:, split:]


def _redundancy(inputs: NDArray[np.float64], nodes: NDArray[np.int64]) -> float:
    """Return the mean share of a column's variance that the others predict, from a shrunk covariance.

    The covariance of a block of channels, given all others, is the inverse of its block of the precision matrix.
    """
    varies = inputs.std(axis=0) > 0
    inputs, nodes = inputs[:, varies], nodes[varies]
    if len(np.unique(nodes)) < 2:
        return 0.0
    covariance, _ = ledoit_wolf(inputs)
    precision = np.linalg.inv(covariance)
    shares = []
    for node in np.unique(nodes):
        of_node = np.flatnonzero(nodes == node)
        block = np.ix_(of_node, of_node)
        shares.append(1 - np.trace(np.linalg.inv(precision[block])) / np.trace(covariance[block]))
    return float(np.clip(np.mean(shares), 0, 1))


def _is_unrelated(channels: NDArray[np.float64], target: NDArray[np.float64]) -> bool:
    """Return whether an F test finds no linear relation of a column to the target."""
    channels = channels[:, channels.std(axis=0) > 0]
    n_rows, n_channels = channels.shape
    if not n_channels or n_rows <= n_channels + 1:
        return True
    design = np.column_stack([np.ones(n_rows), channels])
    fitted = design @ np.linalg.lstsq(design, target, rcond=None)[0]
    residual, total = np.square(target - fitted).sum(), np.square(target - target.mean(axis=0)).sum()
    freedom = n_rows - n_channels - 1
    ratio = (total - residual) / n_channels / max(residual / freedom, 1e-12 * total / n_rows)
    return bool(f_distribution.sf(ratio, n_channels, freedom) > _SIGNIFICANT)


def _predicted_share(model: Any, inputs: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    """Return the share of the target's variance that a model predicts in cross-validation."""
    if len(inputs) < 5:
        return 0.0
    folds = KFold(5, shuffle=True, random_state=0)
    predicted = cross_val_predict(model, inputs, target if target.shape[1] > 1 else target[:, 0], cv=folds)
    error = np.square(predicted.reshape(target.shape) - target).sum()
    return float(max(0.0, 1 - error / np.square(target - target.mean(axis=0)).sum()))
