"""CASTLE with a search by cross-validation: a grid of strengths, or a pool of candidates whose blend predicts."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from castlereg.estimators.base import NetworkEstimator, other_regularizers, read_features
from castlereg.options import check_choice, check_fraction, check_number
from castlereg.regularizers import Castle, Regularizer
from castlereg.search.candidates import Regularizers
from castlereg.search.fit import Predicted, Score, Search
from castlereg.search.model import FoldRecord
from castlereg.search.recipe import PAPER_BETAS, TrainingOptions
from castlereg.training import Callback, OnInterrupt

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from castlereg.causal import CausalGraph, EdgeConstraints

_CHOSEN, _OTHER = "#1f6fb2", "#c3cbd3"  # colours of candidates with and without a weight


@dataclass(eq=False, repr=False)
class CastleCV(NetworkEstimator):
    """CASTLE with strengths chosen by cross-validation, with one network per fold and candidate."""

    reg_betas: Sequence[float] | None = None
    search: Search = field(default="fast", kw_only=True)
    cv: Any = field(default=None, kw_only=True)
    scoring: Any = field(default=None, kw_only=True)
    castle: Castle | Sequence[Castle] | None = field(default=None, kw_only=True)
    regularizers: Sequence[Regularizer] = field(default=(), kw_only=True)
    constraints: EdgeConstraints | None = field(default=None, kw_only=True)

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
        """Train all folds and candidates, stage by stage, and choose the best or blend them.

        Parameters
        ----------
        X, y, sample_weight, graph
            As in :meth:`castlereg.CastleRegressor.fit`.
        groups : array-like of shape (rows,), optional
            Labels of rows that belong together. If ``cv`` is a number, every group is kept in one fold, by
            scikit-learn's ``GroupKFold`` or, for classes, ``StratifiedGroupKFold``. A splitter receives them unchanged.
        time_column : str or int, optional
            Name or index of a column of ``X`` with numbers or dates. Each fold then trains on earlier rows and leaves
            out the next ones, like scikit-learn's ``TimeSeriesSplit``, but rows with the same time stay together. With
            ``groups``, so do the rows of a group.
        callbacks : sequence of callable
            As in :meth:`castlereg.CastleRegressor.fit`; each stage reports its name. A
            :class:`castlereg.callbacks.TimeLimit` also ends the search: the stages that have not begun are skipped.
        on_interrupt : {"raise", "keep"}
            Effect of Ctrl-C: raise KeyboardInterrupt and leave the estimator unchanged, or choose among the candidates
            that were trained on all folds so far, with a warning.
        """
        if groups is not None:
            check_consistent_length(X, groups)
        has_splitter = not isinstance(self.cv, int | np.integer | None)
        if time_column is not None and has_splitter:
            raise ValueError(
                f"cv={self.cv!r} cannot be combined with time_column: pass a number of folds, or drop time_column"
            )
        return self._fit(
            X,
            y,
            sample_weight,
            groups=None if has_splitter else groups,
            time_column=time_column,
            graph=graph,
            callbacks=callbacks,
            on_interrupt=on_interrupt,
            **self._choice_options(X, y, sample_weight, groups),
        )

    def _choice_options(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> dict[str, Any]:
        return {"splitter_data": (y, groups, is_classifier(self)), "score": self._score(X, y, sample_weight)}

    def _score(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Score | None:
        """Return the user's scorer as a function of known predictions of some rows."""
        if self.scoring is None:
            return None
        scorer = check_scoring(self, scoring=self.scoring)
        routed: dict[str, Any] = {}
        if sample_weight is not None and get_config()["enable_metadata_routing"]:
            by_method = MethodMapping().add(caller="fit", callee="score")
            router = MetadataRouter(owner="search").add(scorer=scorer, method_mapping=by_method)
            weights = {"sample_weight": np.asarray(sample_weight)}
            routed = dict(router.route_params(caller="fit", params=weights).scorer.score)

        def score(predicted: Predicted, rows: NDArray[np.int64]) -> float:
            fitted: Any = copy.copy(self)
            fitted.model_ = predicted
            selected = {name: _safe_indexing(values, rows) for name, values in routed.items()}
            return float(scorer(fitted, _safe_indexing(X, rows), _safe_indexing(y, rows), **selected))

        return score

    def _candidates(self) -> list[Regularizers]:
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
            if castle.reg_beta != Castle.reg_beta:
                raise ValueError(f"castle has reg_beta={castle.reg_beta!r}, which has no effect here: pass reg_betas")
        return [(castle, *other_regularizers(self)) for castle in castles]

    def _training_options(self) -> TrainingOptions:
        castles = tuple(castle for castle, *_ in self._candidates() if isinstance(castle, Castle))
        return replace(
            super()._training_options(),
            castles=None if self.castle is None else castles,
            reg_betas=None if self.reg_betas is None else tuple(map(float, self.reg_betas)),
            regularizers=other_regularizers(self),
        )

    def _request_options(self) -> dict[str, Any]:
        return {"search": self.search, "cv": self.cv}

    def _check_options(self) -> None:
        super()._check_options()
        check_choice("search", self.search, get_args(Search))
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise ValueError(f"scoring={self.scoring!r} must be the name of one scorer, a callable or None")
        if self.recipe is not None and self.recipe.validation_fraction is not None:
            raise ValueError(
                f"recipe has validation_fraction={self.recipe.validation_fraction}, but with cross-validation the "
                "validation rows are those that each fold leaves out: drop it"
            )

    # --- what the search found --------------------------------------------------------------------

    @property
    def search_results_(self) -> pd.DataFrame:
        """One row per candidate, best first.

        Columns: ``candidate``, ``stage``, ``loss`` on the rows that its networks were not trained on (1 is the loss of
        predicting the mean or the class shares), ``weight`` in the prediction, and ``seconds``.
        """
        import pandas as pd

        results = self._record.results
        frame = pd.DataFrame({name: results[name] for name in ("candidate", "stage", "loss", "weight")})
        frame["seconds"] = results["mean_fit_time"] * len(self._record.folds)
        return frame.sort_values("loss", ignore_index=True)

    def plot_search(self, ax: Axes | None = None) -> Axes:
        """Draw the losses of the candidates, best at the top, and their weights in the prediction.

        The line is the loss of the blend. Needs ``castlereg[plot]``.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.
        """
        try:
            from matplotlib import pyplot as plt
        except ImportError:
            raise ImportError("plot_search needs the package matplotlib: pip install 'castlereg[plot]'") from None
        shown, blend_loss = self.search_results_[::-1], self.validation_loss_
        axes: Any = ax
        if axes is None:
            _, axes = plt.subplots(figsize=(7.5, 0.27 * len(shown) + 1.2), layout="constrained")
        colours = [_CHOSEN if weight > 0 else _OTHER for weight in shown["weight"]]
        axes.barh(range(len(shown)), shown["loss"], color=colours, height=0.7)
        axes.set_yticks(range(len(shown)), shown["candidate"], fontsize=8)
        for y, (loss, weight) in enumerate(zip(shown["loss"], shown["weight"], strict=True)):
            if weight > 0:
                axes.text(loss, y, f" {100 * weight:.0f} %", va="center", fontsize=8, color=_CHOSEN)
        axes.axvline(blend_loss, color="black", lw=1, ls="--")
        axes.text(blend_loss, len(shown) - 0.4, "together", ha="center", va="bottom", fontsize=8)
        axes.set_xlabel("loss of held-out rows (1: predicting the mean or the class shares)")
        axes.set_ylim(-0.6, len(shown) - 0.4)
        axes.spines[["top", "right"]].set_visible(False)
        drawn: Axes = axes
        return drawn

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Scores of all candidates as in scikit-learn's searches; negative losses unless ``scoring`` is set."""
        return dict(self._record.results)

    @property
    def best_index_(self) -> int:
        """Index of the chosen candidate; of a pool, of the CASTLE networks that have the input graph."""
        return self._record.best

    @property
    def best_params_(self) -> dict[str, Any]:
        """Strengths of the chosen candidate, and its ``castle`` if details of the penalty were searched."""
        return dict(self._record.results["params"][self._record.best])

    @property
    def best_score_(self) -> float:
        """Mean score of the chosen candidate over folds."""
        return float(self._record.results["mean_test_score"][self._record.best])

    @property
    def best_regularizers_(self) -> tuple[Regularizer, ...] | None:
        """Regularizers of the chosen candidate; None if the model was loaded and its file could not hold them."""
        return self._record.regularizers

    @property
    def reg_beta_(self) -> float:
        """The chosen strength of the sparsity."""
        return float(self.best_params_["reg_beta"])

    @property
    def reg_lambda_(self) -> float:
        """The chosen strength of all CASTLE terms together."""
        return float(self.best_params_["reg_lambda"])

    @property
    def folds_(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Training and left-out rows of each fold."""
        return self._record.folds

    @property
    def fold_seeds_(self) -> list[int]:
        """Seed of each fold's network."""
        return self._record.seeds

    @property
    def _record(self) -> FoldRecord:
        record = self._fitted().folds
        assert record is not None
        return record

    def _by_fold(self, X: ArrayLike, coverage: float) -> list[tuple[NDArray[np.float64], list[NDArray[np.float64]]]]:
        """Return for each target the predictions of each fold, and its errors on the rows that it left out."""
        check_is_fitted(self)
        check_fraction("coverage", coverage)
        predictions = self.model_.predict_by_fold(read_features(self, X))
        return [(values, [fold[k] for fold in self._record.errors]) for k, values in enumerate(predictions)]
