"""The choice of strengths by cross-validation in one batched run, and what falls out of it.

Every fold and candidate is a member of one stack. The chosen candidate's fold networks predict together, and what
each of them said of the rows it had not seen gives prediction intervals and class sets.
"""

from __future__ import annotations

import copy
import time
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from castlereg.data.rows import Coding, Rows
from castlereg.data.targets import ClassTarget
from castlereg.estimators.base import NetworkEstimator, _check_enough, _check_required, _checked_weight, _spawn
from castlereg.estimators.fitted_network import FittedNetwork
from castlereg.graph import CausalGraph
from castlereg.options import check_flag, check_integer
from castlereg.regularizers import Regularizer
from castlereg.selection import Fold, FoldGrid, choose, strengths_of, train_folds

_FOLD_ROWS, _FOLD_SEEDS, _REFIT = 2, 3, 4  # purposes of random streams; 0 and 1 are the plain estimators'


class CrossValidation(NetworkEstimator):
    """What every estimator does that chooses by cross-validation."""

    bootstrap = False  # folds take its place
    cv: Any
    scoring: Any
    one_standard_error: bool
    refit: bool

    def _candidates(self) -> list[tuple[Regularizer, ...]]:
        """Return the regularizers to choose among."""
        raise NotImplementedError

    def fit(  # type: ignore[override]
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Train all folds and candidates in one run, and choose.

        Parameters
        ----------
        X, y, sample_weight, groups : array-like
            As in :meth:`castlereg.CastleRegressorCV.fit`.

        Returns
        -------
        self
        """
        return self._fit_folds(X, y, sample_weight, groups)

    def _fit_folds(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        graph: CausalGraph | None = None,
    ) -> Self:
        self._check_options()
        rows, names = self._read(X, y)
        edges = self._edge_rules(names, len(rows.targets), graph)
        n_rows = len(rows)
        rows = rows.weighted(None if sample_weight is None else _checked_weight(sample_weight, n_rows))
        _check_enough(rows)
        seed = self._seed()
        coding, (rows,) = self._coded(rows, None, names)
        _check_required(coding, edges)
        rows = self._with_target_weights(coding, rows)
        folds = self._folds(coding, rows, y, groups, n_rows, seed)
        own = [(_places(rows, train), _places(rows, held)) for train, held in folds]
        fold_seeds = [int(one) for one in _spawn(seed, _FOLD_SEEDS).generate_state(len(folds))]
        starts = range(int(self.n_members))  # networks of a fold differ in their start and the order of rows
        begun = time.perf_counter()
        grid = train_folds(
            coding.table(rows, edges=edges),
            [fold for fold in own for _ in starts],
            candidates=self._candidates(),
            seeds=[_spawn(np.random.SeedSequence(one), 0, start) for one in fold_seeds for start in starts],
            hidden_layer_sizes=self._sizes(coding.layout.n_features),
            schedule=self._schedule(),
            input_init=self.input_init,
            progress=bool(self.verbose),
        )
        seconds = (time.perf_counter() - begun) / grid.losses.size
        losses = grid.losses.reshape(len(grid.candidates), len(folds), -1).mean(axis=-1)
        scores = -losses if self.scoring is None else self._scores(X, y, coding, grid, folds, names)
        strengths = [strengths_of(candidate) for candidate in grid.candidates]
        best = choose(scores, [tuple(one.values()) for one in strengths] if self.one_standard_error else None)
        trained = np.flatnonzero(np.isfinite(grid.losses[best]))  # a network may have failed, with a warning
        chosen = grid.stack.take(grid.members(best)[trained])
        regularizers = grid.candidates[best]
        self._fold_networks = FittedNetwork.from_stack(chosen, coding.layout, coding.encoder)
        stack, held_out = chosen, [own[k // len(starts)][1] for k in trained]
        if self.refit:
            stack, held_out = self._trained(coding, rows, [], regularizers, _spawn(seed, _REFIT), edges)
        self._keep(coding, stack, names)
        self._keep_graph(coding, names, [rows], held_out, edges, replicas=self._fold_networks)
        self.cv_results_ = _results(strengths, scores, losses, seconds)
        self.best_index_, self.best_params_, self.best_score_ = best, strengths[best], float(scores[best].mean())
        self.best_regularizers_ = regularizers
        self.folds_, self.fold_seeds_ = folds, fold_seeds
        self._fold_of = trained // len(starts)
        self._left_out = self._what_folds_left_out(coding, rows, [own[fold][1] for fold in np.unique(self._fold_of)])
        return self

    def _scores(
        self, X: Any, y: Any, coding: Coding, grid: FoldGrid, folds: list[Fold], names: list[str]
    ) -> NDArray[np.float64]:
        """Score the networks of every fold on the rows it leaves out; without one that trained there is no score."""
        scorer = check_scoring(self, scoring=self.scoring)
        losses = grid.losses.reshape(len(grid.candidates), len(folds), -1)
        scores = np.full(losses.shape[:2], -np.inf)
        for candidate, fold in np.argwhere(np.isfinite(losses).any(axis=-1)):
            one = copy.copy(self)
            own = fold * losses.shape[-1] + np.flatnonzero(np.isfinite(losses[candidate, fold]))
            one._keep(coding, grid.stack.take(grid.members(candidate)[own]), names)
            held = folds[fold][1]
            scores[candidate, fold] = scorer(one, _safe_indexing(X, held), _safe_indexing(y, held))
        return scores

    def _what_folds_left_out(
        self, coding: Coding, rows: Rows, left_out: list[NDArray[np.int64]]
    ) -> list[list[NDArray[np.float64]]]:
        """Return how far the networks of each fold were off on the rows it left out: for each fold, and each target.

        The absolute error of numbers, and one minus the probability of the true class.
        """
        cells = coding.encoder.cells(rows.columns)
        off: list[list[NDArray[np.float64]]] = []
        for fold, held in zip(np.unique(self._fold_of), left_out, strict=True):
            own = self._fold_networks.of_members(np.flatnonzero(self._fold_of == fold))
            outputs = own.target_outputs(cells[held])
            of_fold = []
            for k, (target, values) in enumerate(zip(coding.targets, rows.targets, strict=True)):
                predicted = target.decode(outputs[:, :, k]).mean(axis=0)
                if isinstance(target, ClassTarget):
                    of_fold.append(1 - predicted[np.arange(len(held)), target.codes(values[held])])
                else:
                    of_fold.append(np.abs(predicted - values[held]))
            off.append(of_fold)
        return off

    def _by_fold(self, X: ArrayLike) -> list[NDArray[np.float64]]:
        """Predict by fold: for each target, values of shape (folds, rows) or probabilities of classes."""
        check_is_fitted(self)
        outputs = self._fold_networks.target_outputs(self._cells(X))
        by_network = [target.decode(outputs[:, :, k]) for k, target in enumerate(self._coding.targets)]
        folds = [self._fold_of == fold for fold in np.unique(self._fold_of)]
        return [np.stack([values[own].mean(axis=0) for own in folds]) for values in by_network]

    def _check_options(self) -> None:
        if not self._candidates():
            raise ValueError(f"{type(self).__name__} has no candidates to choose among")
        super()._check_options()
        for flag in ("one_standard_error", "refit"):
            check_flag(flag, getattr(self, flag))

    def _all_regularizers(self) -> tuple[Regularizer, ...]:
        return self._candidates()[0]

    def _folds(
        self,
        coding: Coding,
        rows: Rows,
        y: Any,
        groups: ArrayLike | None,
        n_rows: int,
        seed: np.random.SeedSequence,
    ) -> list[Fold]:
        """Split the rows, by their places in the user's table.

        A number of folds is dealt out in the rows' own order, so that the user's order does not matter; a splitter gets
        the user's order, which may mean something.
        """
        assert rows.index is not None  # rows are in their own order
        if isinstance(self.cv, int | np.integer):
            check_integer("cv", self.cv, least=2)
            first = np.sort(np.unique(rows.index, return_index=True)[1])
            kept = rows.index[first]
            if self.cv > len(kept):
                raise ValueError(f"cv={self.cv} folds of {len(kept)} rows: lower cv")
            classes = coding.classes_of(rows.take(first))
            if classes is not None and self.cv > (most := int(np.bincount(classes).max())):
                raise ValueError(
                    f"cv={self.cv} folds of classes with at most {most} rows each: lower cv, or use a regressor if the "
                    "classes are numbers"
                )
            make = KFold if classes is None else StratifiedKFold
            state = int(_spawn(seed, _FOLD_ROWS).generate_state(1)[0])
            splits = make(int(self.cv), shuffle=True, random_state=state).split(kept, classes)
        else:
            kept = np.arange(n_rows)
            if groups is not None:
                check_consistent_length(kept, groups)
            splits = check_cv(self.cv, y, classifier=is_classifier(self)).split(np.empty((n_rows, 1)), y, groups)
        folds = [(kept[train], kept[held]) for train, held in splits]
        for number, fold in enumerate(folds):
            train, held = (_places(rows, part) for part in fold)
            if len(train) < 2 or len(held) < 1:
                raise ValueError(
                    f"fold {number} of cv={self.cv!r} has {len(train)} rows to train on and {len(held)} to stop by: a "
                    "network needs at least two and one"
                )
        if len(folds) < 2:
            raise ValueError(f"cv={self.cv!r} gives {len(folds)} fold, and a choice needs at least two")
        return folds


def _places(rows: Rows, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Find rows of the user's table, all copies of those that are there, ascending."""
    assert rows.index is not None
    order = np.argsort(rows.index, kind="stable")
    by_index = rows.index[order]
    first, last = np.searchsorted(by_index, wanted, "left"), np.searchsorted(by_index, wanted, "right")
    found = [order[a:b] for a, b in zip(first, last, strict=True)]
    return np.sort(np.concatenate([np.empty(0, np.int64), *found]))


def _results(
    strengths: list[dict[str, float]], scores: NDArray[np.float64], losses: NDArray[np.float64], seconds: float
) -> dict[str, Any]:
    """Lay the scores out as scikit-learn's searches do."""
    names = list(dict.fromkeys(name for one in strengths for name in one))
    zeros = np.zeros(len(scores))
    results: dict[str, Any] = {
        "mean_fit_time": zeros + seconds,
        "std_fit_time": zeros,
        "mean_score_time": zeros,
        "std_score_time": zeros,
    }
    for name in names:
        values = [one.get(name, np.nan) for one in strengths]
        results[f"param_{name}"] = np.ma.masked_invalid(np.array(values))
    results["params"] = strengths
    for fold in range(scores.shape[1]):
        results[f"split{fold}_test_score"] = scores[:, fold]
    results["mean_test_score"], results["std_test_score"] = scores.mean(axis=1), scores.std(axis=1)
    results["rank_test_score"] = rankdata(-results["mean_test_score"], method="min").astype(np.int32)
    results["mean_validation_loss"] = losses.mean(axis=1)
    return results
