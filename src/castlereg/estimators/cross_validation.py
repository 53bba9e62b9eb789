"""Estimators that search by cross-validation: a grid of strengths, or a pool of candidates whose blend predicts.

Every fold and candidate of a stage is a member of one stack. Prediction intervals and class sets come from the errors
of the fold networks on the rows that they were not trained on.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from castlereg.estimators.base import NetworkEstimator, read_features
from castlereg.estimators.castle import CastleOptions
from castlereg.estimators.recipe import Recipe
from castlereg.fitted.model import FittedModel, FoldBook, class_sets, cv_plus
from castlereg.options import check_choice, check_fraction, check_number
from castlereg.regularizers import Castle, Regularizer
from castlereg.regularizers.castle import castle_beside
from castlereg.regularizers.protocol import check_regularizers
from castlereg.search.request import CrossValidation
from castlereg.target_losses import Poisson
from castlereg.training.callbacks import Callback
from castlereg.training.loop import OnInterrupt

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from castlereg.causal.graph import CausalGraph


Search = Literal["auto", "fast", "best", "paper", "one_standard_error"]
PAPER_BETAS = (0.001, 0.01, 0.1, 1.0)
FOLDS, FOLDS_OF_POOL, REPEATS_OF_BEST = 10, 5, 2
# Options for training and choosing the candidates of a grid; a pool has its own.
_OF_THE_GRID = (
    *("reg_betas", "candidates", "castle", "regularizers", "hidden_layer_sizes", "recipe"),
    *("loss", "monotone", "learning_rate", "max_epochs", "scoring"),
)


@dataclass(eq=False, repr=False)
class CrossValidated(NetworkEstimator):
    """Estimators that choose by cross-validation, with one network per fold and candidate."""

    search: Search = field(default="auto", kw_only=True)
    time_limit: float | None = field(default=None, kw_only=True)
    cv: Any = field(default=None, kw_only=True)
    scoring: Any = field(default=None, kw_only=True)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        time_column: str | int | None = None,
        callbacks: Sequence[Callback] = (),
        on_interrupt: OnInterrupt = "raise",
    ) -> Self:
        """Train all folds and candidates in one run and choose; see :meth:`castlereg.CastleRegressorCV.fit`."""
        how: dict[str, Any] = {"callbacks": callbacks, "on_interrupt": on_interrupt}
        return self._fit_folds(X, y, sample_weight, groups, time_column, **how)

    def _fit_folds(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        time_column: str | int | None,
        graph: CausalGraph | None = None,
        *,
        callbacks: Sequence[Callback],
        on_interrupt: OnInterrupt,
    ) -> Self:
        if groups is not None:
            check_consistent_length(X, groups)
        has_splitter = not isinstance(self.cv, int | np.integer | None)
        if time_column is not None and has_splitter:
            raise ValueError(
                f"cv={self.cv!r} cannot be combined with time_column: pass a number of folds, or drop time_column"
            )
        score = None
        if self.scoring is not None:
            scorer = check_scoring(self, scoring=self.scoring)
            routed = _requested(scorer, sample_weight)

            def score(model: FittedModel, rows: NDArray[np.int64]) -> float:
                fitted = copy.copy(self)
                fitted.model_ = model
                of_rows = {name: _safe_indexing(values, rows) for name, values in routed.items()}
                return float(scorer(fitted, _safe_indexing(X, rows), _safe_indexing(y, rows), **of_rows))

        cv = self.cv if self.cv is not None else FOLDS_OF_POOL if self._has_pool else FOLDS
        rules = CrossValidation(
            cv,
            y,
            groups,
            is_classifier(self),
            score,
            one_standard_error=self.search == "one_standard_error",
            repeats=REPEATS_OF_BEST if self.search == "best" else 1,
            pool=self._has_pool,
            causal=isinstance(self, CastleOptions),
            time_limit=self.time_limit,
        )
        return self._fit(
            X,
            y,
            sample_weight,
            groups=None if has_splitter else groups,
            time_column=time_column,
            graph=graph,
            cross_validation=rules,
            callbacks=callbacks,
            on_interrupt=on_interrupt,
        )

    def _check_options(self) -> None:
        super()._check_options()
        if not self._candidates():
            raise ValueError(f"{type(self).__name__} has no candidates to choose among")
        check_choice("search", self.search, get_args(Search))
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, above=0)
            if not self._has_pool:
                raise ValueError(
                    f"time_limit={self.time_limit!r} has no effect without a pool: use search='fast' or 'best'"
                )
        if self.search in ("fast", "best") and self._of_the_grid():
            option = self._of_the_grid()[0]
            raise ValueError(
                f"{option}={getattr(self, option)!r} has no effect with search={self.search!r}, which has its own "
                "candidates: drop this argument, or use search='paper'"
            )
        if self.recipe is not None and self.recipe.validation_fraction != Recipe().validation_fraction:
            raise ValueError(
                f"recipe has validation_fraction={self.recipe.validation_fraction}, but with cross-validation the "
                "validation rows are those that each fold leaves out: drop it"
            )

    @property
    def _has_pool(self) -> bool:
        return self.search in ("fast", "best") or (self.search == "auto" and not self._of_the_grid())

    def _of_the_grid(self) -> list[str]:
        """Return the names of the options for a grid that differ from their defaults."""
        fields: dict[str, Any] = type(self).__dataclass_fields__
        names = (name for name in _OF_THE_GRID if name in fields)
        values = {name: getattr(self, name) for name in names}
        # The engine may be set for any search.
        if isinstance(self.recipe, Recipe) and replace(self.recipe, engine="auto") == Recipe():
            del values["recipe"]
        is_changed = {name: not np.array_equal(value, fields[name].default) for name, value in values.items()}
        return [
            name for name, value in values.items() if is_changed[name] and not (isinstance(value, dict) and not value)
        ]

    @property
    def search_results_(self) -> pd.DataFrame:
        """One row per candidate of ``search="fast"`` or ``"best"``, best first.

        Columns: ``candidate``, ``stage``, ``loss`` on the rows that its networks were not trained on (1 is the loss of
        predicting the mean or the class shares), ``weight`` in the prediction, and ``seconds``.
        """
        import pandas as pd

        results = self._book.results
        if "weight" not in results:
            raise AttributeError("this model searched a grid, not a pool: see cv_results_")
        names = ("candidate", "stage", "loss", "weight")
        frame = pd.DataFrame({name: results[name] for name in names})
        frame["seconds"] = results["mean_fit_time"] * len(self._book.folds)
        return frame.sort_values("loss", ignore_index=True)

    def plot_search(self, ax: Axes | None = None) -> Axes:
        """Draw the losses of the candidates of ``search="fast"`` or ``"best"``, and their weights in the prediction.

        Needs ``castlereg[plot]``.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.
        """
        from castlereg.estimators.search_plot import plot_search

        return plot_search(self.search_results_, self.validation_loss_, ax)

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Scores of all candidates, in the format of scikit-learn's searches."""
        return dict(self._book.results)

    @property
    def best_index_(self) -> int:
        """Index of the chosen candidate."""
        return self._book.best

    @property
    def best_params_(self) -> dict[str, Any]:
        """Strengths of the chosen candidate, and its ``castle`` if details of the penalty were searched."""
        return dict(self._book.results["params"][self._book.best])

    @property
    def best_score_(self) -> float:
        """Mean score of the chosen candidate over folds."""
        return float(self._book.results["mean_test_score"][self._book.best])

    @property
    def best_regularizers_(self) -> tuple[Regularizer, ...]:
        """Regularizers of the chosen candidate."""
        return self._book.regularizers

    @property
    def folds_(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Training and left-out rows of each fold."""
        return self._book.folds

    @property
    def fold_seeds_(self) -> list[int]:
        """Seed of each fold's network."""
        return self._book.seeds

    @property
    def _book(self) -> FoldBook:
        book = self._fitted().folds
        assert book is not None
        return book

    def _by_fold(self, X: ArrayLike, coverage: float) -> list[tuple[NDArray[np.float64], list[NDArray[np.float64]]]]:
        """Return for each target the predictions of each fold, and its errors on the rows that it left out."""
        check_is_fitted(self)
        check_fraction("coverage", coverage)
        predictions = self.model_.predict_by_fold(read_features(self, X))
        return [(values, [fold[k] for fold in self._book.errors]) for k, values in enumerate(predictions)]


def _requested(scorer: Any, sample_weight: ArrayLike | None) -> dict[str, Any]:
    """Return the weights if scikit-learn's metadata routing is enabled and the scorer requests them."""
    if sample_weight is None or not get_config()["enable_metadata_routing"]:
        return {}
    by_method = MethodMapping().add(caller="fit", callee="score")
    router = MetadataRouter(owner="search").add(scorer=scorer, method_mapping=by_method)
    weights = {"sample_weight": np.asarray(sample_weight)}
    return dict(router.route_params(caller="fit", params=weights).scorer.score)


class IntervalCV(CrossValidated):
    """Regressors that also predict intervals."""

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> NDArray[np.float64]:
        """Predict an interval for every row, by CV+ (the jackknife+ over folds).

        For each training row, take the network of the fold that left it out, and its error on this row. The interval is
        formed by the predictions of these networks for the new row, plus or minus their errors.

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
        >>> model = CastleRegressorCV((0.01,), cv=3, max_epochs=20, random_state=0).fit(X[:300], y[:300])
        >>> lower, upper = model.predict_interval(X[300:]).T
        >>> bool(((lower <= y[300:]) & (y[300:] <= upper)).mean() > 0.8)
        True
        """
        intervals = [cv_plus(values, errors, coverage) for values, errors in self._by_fold(X, coverage)]
        for interval, target in zip(intervals, self.model_.targets, strict=True):
            if isinstance(target.node.loss, Poisson):
                np.maximum(interval, 0.0, out=interval)
        return intervals[0] if len(intervals) == 1 else np.stack(intervals, axis=1)


class ClassSetCV(CrossValidated):
    """Classifiers that also predict sets of classes."""

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


@dataclass(eq=False, repr=False)
class NetworkCV(CrossValidated):
    """A network with regularizers chosen among candidates."""

    candidates: Sequence[Sequence[Regularizer]] | None = None

    def _candidates(self) -> list[tuple[Regularizer, ...]]:
        if self.candidates is None:
            return [()]
        if not hasattr(self.candidates, "__iter__") or any(isinstance(c, Regularizer) for c in self.candidates):
            raise ValueError(
                f"candidates={self.candidates!r} must be a sequence of sequences of regularizers, such as "
                "[[L2(0.1)], [L2(0.01)]]"
            )
        return [check_regularizers(candidate) for candidate in self.candidates]


@dataclass(eq=False, repr=False)
class CastleCV(CrossValidated, CastleOptions):
    """CASTLE with strengths chosen by cross-validation."""

    reg_betas: Sequence[float] | None = None

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        time_column: str | int | None = None,
        graph: CausalGraph | None = None,
        callbacks: Sequence[Callback] = (),
        on_interrupt: OnInterrupt = "raise",
    ) -> Self:
        """Train all folds and candidates in one run, and choose the best.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array-like of shape (rows, features)
        y : array-like of shape (rows,) or (rows, targets)
        sample_weight : array-like of shape (rows,), optional
            As in :meth:`castlereg.CastleRegressor.fit`; all copies of a row are in the same fold.
        groups : array-like of shape (rows,), optional
            Labels of rows that belong together. If ``cv`` is a number, every group is kept in one fold, by
            scikit-learn's ``GroupKFold`` or, for classes, ``StratifiedGroupKFold``. A splitter receives them unchanged.
        time_column : str or int, optional
            Name or index of a column of ``X`` with numbers or dates. Each fold then trains on earlier rows and leaves
            out the next ones, like scikit-learn's ``TimeSeriesSplit``, but rows with the same time stay together. With
            ``groups``, so do the rows of a group.
        graph : CausalGraph, optional
            Train with only the edges of this graph.
        callbacks : sequence of callable
            As in :meth:`castlereg.CastleRegressor.fit`; each stage of a pool reports its name.
        on_interrupt : {"raise", "keep"}
            Effect of Ctrl-C: raise KeyboardInterrupt and leave the estimator unchanged, or choose among the candidates
            that were trained on all folds so far, with a warning.
        """
        how: dict[str, Any] = {"callbacks": callbacks, "on_interrupt": on_interrupt}
        return self._fit_folds(X, y, sample_weight, groups, time_column, graph, **how)

    @property
    def reg_beta_(self) -> float:
        """The chosen strength of the sparsity."""
        return float(self.best_params_["reg_beta"])

    @property
    def reg_lambda_(self) -> float:
        """The chosen strength of all CASTLE terms together."""
        return float(self.best_params_["reg_lambda"])

    def _candidates(self) -> list[tuple[Regularizer, ...]]:
        betas = PAPER_BETAS if self.reg_betas is None else self.reg_betas
        if isinstance(betas, str) or not hasattr(betas, "__iter__") or not len(list(betas)):
            raise ValueError(f"reg_betas={betas!r} must be a sequence of numbers, such as (0.01, 0.1)")
        for beta in betas:
            check_number("each of reg_betas", beta, least=0)
        option = self.castle
        castles = list(option) if isinstance(option, Sequence) else [Castle() if option is None else option]
        if not castles or not all(isinstance(castle, Castle) for castle in castles):
            raise ValueError(f"castle={option!r} must be Castle(...), a sequence of them, or None")
        for castle in castles:
            if castle.reg_beta != type(castle).reg_beta:
                raise ValueError(f"castle has reg_beta={castle.reg_beta!r}, which has no effect here: pass reg_betas")
        return [
            castle_beside(self, replace(castle, reg_beta=float(beta)))
            for beta, castle in itertools.product(betas, castles)
        ]
