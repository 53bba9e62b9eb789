"""castlereg's searches with the constructor and the ``fit`` of pytabkit's estimators. Needs only castlereg."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from castlereg.estimators import CastleClassifierCV, CastleRegressorCV
from castlereg.integrations.cores import at_most
from castlereg.integrations.validation_rows import joined, splits_of
from castlereg.options import check_integer


class CastleInterface(BaseEstimator):
    """Base class of both estimators."""

    search_class: Any

    def __init__(
        self,
        *,
        search: Literal["fast", "best"] = "fast",
        n_cv: int = 5,
        n_threads: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbosity: int = 0,
    ) -> None:
        self.search = search
        self.n_cv = n_cv
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbosity = verbosity

    def fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        val_idxs: ArrayLike | None = None,
        cat_indicator: ArrayLike | None = None,
        cat_col_names: list[str] | None = None,
        time_to_fit_in_seconds: float | None = None,
    ) -> Self:
        """Run the search; the arguments are those of pytabkit.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
            Missing values are allowed, unlike in pytabkit.
        y : array-like of shape (rows,)
        X_val, y_val : optional
            Validation rows. By default, every row is a validation row in one of ``n_cv`` folds.
        val_idxs : array-like of shape (rows,) or (splits, rows), optional
            Indices of validation rows in X, instead of ``X_val``. A single split trains ``n_cv`` networks.
        cat_indicator : array-like of bool, optional
            Mask of categorical columns; columns of text and of pandas categories are always categorical.
        cat_col_names : list of str, optional
            Names of categorical columns, instead of ``cat_indicator``.
        time_to_fit_in_seconds : float, optional
            See ``time_limit`` of :class:`castlereg.CastleRegressorCV`.
        """
        check_integer("n_cv", self.n_cv, least=2)
        if (X_val is None) != (y_val is None):
            missing = "X_val" if X_val is None else "y_val"
            raise ValueError(f"{missing} is missing; pass both X_val and y_val, or neither")
        if X_val is not None and val_idxs is not None:
            raise ValueError("X_val and val_idxs cannot be combined: both define the validation rows; pass only one")
        if cat_indicator is not None and cat_col_names is not None:
            raise ValueError(
                "cat_indicator and cat_col_names cannot be combined: both define the categorical columns; pass only one"
            )
        if X_val is not None:
            val_idxs = np.arange(len(X), len(X) + len(X_val))
            X, y = joined(X, X_val), joined(y, y_val)
        categorical: Any = cat_col_names if cat_indicator is None else [bool(marked) for marked in cat_indicator]  # type: ignore[union-attr]
        search = self.search_class(
            search=self.search,
            time_limit=time_to_fit_in_seconds,
            cv=self.n_cv if val_idxs is None else splits_of(len(X), val_idxs, self.n_cv),
            categorical_features=categorical or None,
            unusable_columns="drop",
            random_state=self.random_state,
            verbose=self.verbosity > 0,
        )
        with at_most(self.n_threads):
            self.castle_ = search.fit(X, y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict values, or the most probable classes.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
        """
        check_is_fitted(self)
        return self.castle_.predict(X)

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return int(self._attribute("n_features_in_"))

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of columns, if X was a DataFrame."""
        return self._attribute("feature_names_in_")

    def _attribute(self, name: str) -> Any:
        if "castle_" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not fitted, so it has no {name}; call fit first")
        return getattr(self.castle_, name)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags


class Castle_Regressor(RegressorMixin, CastleInterface):
    """:class:`castlereg.CastleRegressorCV` for code written for pytabkit's regressors.

    Parameters
    ----------
    search : {"fast", "best"}
        The pool of candidates.
    n_cv : int
        Number of folds, at least 2; their networks predict together.
    n_threads : int, optional
        Cores to train on; all by default.
    random_state : int, RandomState or None
        Seed.
    verbosity : int
        Above 0, show a progress bar.

    Attributes
    ----------
    castle_ : CastleRegressorCV
        The fitted search, with its graph, intervals and importances.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = Castle_Regressor(n_cv=2, random_state=0)
    >>> model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:], time_to_fit_in_seconds=1).predict(X).shape
    (442,)
    >>> model.castle_.graph_.is_dag
    True
    """

    search_class = CastleRegressorCV


class Castle_Classifier(ClassifierMixin, CastleInterface):
    """:class:`castlereg.CastleClassifierCV` for code written for pytabkit's classifiers.

    Parameters are those of :class:`Castle_Regressor`.

    Attributes
    ----------
    castle_ : CastleClassifierCV
        The fitted search.
    classes_ : array
        The classes, sorted.
    """

    search_class = CastleClassifierCV

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of every class.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
        """
        check_is_fitted(self)
        return self.castle_.predict_proba(X)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, sorted."""
        return self._attribute("classes_")
