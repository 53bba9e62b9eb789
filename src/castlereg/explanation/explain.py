"""The function :func:`explain`, for both kinds of explanations."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from castlereg.estimators.base import NetworkEstimator, Seed, read_features, read_known_rows, seed_sequence
from castlereg.explanation.permutation import PermutationImportance, permutation_importance
from castlereg.explanation.shap_values import ShapValues, shap_values
from castlereg.fitted.held_out import evenly
from castlereg.notices import shows_progress
from castlereg.options import check_choice, check_integer
from castlereg.table.targets import has_targets

_BACKGROUND_ROWS = 100


@overload
def explain(
    model: NetworkEstimator,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    method: Literal["permutation"] = "permutation",
    n_repeats: int = 10,
    background: None = None,
    random_state: Seed = 0,
    verbose: bool | None = None,
) -> PermutationImportance: ...


@overload
def explain(
    model: NetworkEstimator,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    method: Literal["shap"],
    n_repeats: int = 10,
    background: ArrayLike | int | None = None,
    random_state: Seed = 0,
    verbose: bool | None = None,
) -> ShapValues: ...


def explain(
    model: NetworkEstimator,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    method: Literal["permutation", "shap"] = "permutation",
    n_repeats: int = 10,
    background: ArrayLike | int | None = None,
    random_state: Seed = 0,
    verbose: bool | None = None,
) -> PermutationImportance | ShapValues:
    """Explain the predictions of a fitted model, by permutation importance or SHAP values.

    ``"permutation"`` measures how much the loss over all rows increases when one column is permuted, and shows which
    columns the model needs. ``"shap"`` splits the prediction of every row into one part per column, and shows why the
    model predicts this value. Both describe the model, not the world: a column that is only correlated with a cause can
    be important, too.

    Each column gets one value, also if it contains text, categories, dates or missing values.

    Parameters
    ----------
    model : fitted estimator of castlereg
        It may be loaded from a file. ``"permutation"`` explains several targets together, by their mean loss;
        ``"shap"`` explains each separately.
    X : DataFrame of pandas or polars, or array-like of shape (rows, features)
        Rows to explain. For ``"permutation"``, use rows that the model was not trained on: training rows overstate the
        importance of columns.
    y : array-like of shape (rows,) or (rows, targets), optional
        Targets of the rows, needed for ``"permutation"``. Rows without a target are left out.
    method : {"permutation", "shap"}
        ``"shap"`` needs ``castlereg[shap]``.
    n_repeats : int
        Number of permutations of every column. For ``"shap"``, number of orders in which the columns become known, for
        each row; each order is used forwards and backwards.
    background : int or table with the columns of X, optional
        Only for ``"shap"``: rows that replace the values of unknown columns. Either a number of evenly spaced rows of
        ``X``, by default 100, or other rows, such as training rows.
    random_state : int, RandomState, Generator or None
        Seed of the permutations. NumPy's global random state does not change.
    verbose : bool, optional
        Show a progress bar after two seconds; by default in a terminal or notebook.

    Returns
    -------
    PermutationImportance or ShapValues
        Both have ``to_frame()`` and ``plot()``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressor, explain
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = CastleRegressor(random_state=0).fit(X[:300], y[:300])
    >>> explanation = explain(model, X[300:], y[300:])
    >>> sorted(explanation.to_frame()["column"][:2])
    ['bmi', 's5']
    """
    if not isinstance(model, NetworkEstimator):
        raise TypeError(
            f"{type(model).__name__} is not an estimator of castlereg; use sklearn.inspection.permutation_importance "
            "or the package shap"
        )
    check_is_fitted(model)
    check_choice("method", method, ["permutation", "shap"])
    check_integer("n_repeats", n_repeats)
    seed = int(seed_sequence(random_state).generate_state(1)[0])
    if method == "permutation":
        if background is not None:
            raise ValueError('background has no effect with method="permutation"; drop it, or pass method="shap"')
        if y is None:
            raise ValueError('y is missing; method="permutation" needs the targets of the rows')
        has_target = has_targets(y)
        known = np.flatnonzero(has_target)
        if not len(known):
            raise ValueError("every row of y has a missing value; pass at least one row with all targets")
        X, y = (data if has_target.all() else _safe_indexing(data, known) for data in (X, y))
        rows = read_known_rows(model, X, y, model.model_.target_kinds)
        cells = model.model_.cells(rows.columns)
        return permutation_importance(model, cells, rows.targets, n_repeats, seed, shows_progress(verbose))
    cells = model.model_.cells(read_features(model, X))
    behind = _background(model, cells, background)
    index = X.index if isinstance(X, pd.DataFrame) else None
    return shap_values(model.model_, cells, behind, n_repeats, seed, shows_progress(verbose), index)


def _background(model: NetworkEstimator, cells: NDArray[np.float64], background: Any) -> NDArray[np.float64]:
    """Return the cells of the background rows."""
    if background is None:
        background = _BACKGROUND_ROWS
    if np.ndim(background) == 0 and not hasattr(background, "columns"):
        check_integer("background", background)
        return cells[evenly(np.arange(len(cells)), int(background))]
    return model.model_.cells(read_features(model, background, what="background"), "background")
