"""Compare methods on a table: same rows, same folds, same initial weights, and the grid of a method in one run."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from tqdm.auto import tqdm

from castlereg.comparison.methods import Candidates, checked_methods
from castlereg.comparison.result import Comparison
from castlereg.estimators import NetworkClassifier, NetworkRegressor
from castlereg.estimators.base import NetworkEstimator, Seed, checked_plan, read_training_rows, seed_sequence
from castlereg.estimators.recipe import Recipe
from castlereg.fitted.held_out import HeldOut
from castlereg.fitted.networks import Networks
from castlereg.fitted.thresholds import by_node, selected_columns
from castlereg.notices import shows_progress, warn_user
from castlereg.options import check_choice, check_fraction, check_integer, did_you_mean
from castlereg.random_streams import OfFit, fit_stream
from castlereg.regularizers import Regularizer
from castlereg.regularizers.castle import castle_of
from castlereg.search.grid import FoldGrid, train_folds
from castlereg.table.preprocessing import Preprocessing
from castlereg.table.rows import Rows, Split, splits_with_test_rows
from castlereg.table.schema import named_columns
from castlereg.table.table import Table
from castlereg.table.targets import fit_target, inferred_task
from castlereg.training import Plan
from castlereg.training.plan import Start

Task = Literal["auto", "regression", "classification"]
_NETWORK_OPTIONS = (
    *("hidden_layer_sizes", "categorical_features", "unusable_columns", "recipe"),
    *("learning_rate", "max_epochs"),
)


def compare(
    X: ArrayLike,
    y: ArrayLike,
    *,
    methods: Any = "paper",
    cv: Any = 10,
    n_splits: int = 1,
    test_size: float | int = 0.2,
    task: Task = "auto",
    input_init: str | Mapping[str, str] | None = None,
    random_state: Seed = None,
    verbose: bool | None = None,
    **network: Any,
) -> Comparison:
    """Train every method on the same folds and score it on the same held-out rows, as the paper does.

    A random part of the rows is held out. The other rows are split into folds; those that a fold leaves out are the
    validation rows of its network, for early stopping. For each method, the regularizer strength with the lowest mean
    validation loss is chosen, and its fold networks are scored on the held-out rows. All methods use the same initial
    weights and the same batches in a fold. Methods run one after the other in this process, or in parallel on the
    backend that :func:`joblib.parallel_config` selects.

    Parameters
    ----------
    X : DataFrame of pandas or polars, or array-like of shape (rows, features)
        Text, missing values and dates are allowed, as in :meth:`castlereg.CastleRegressor.fit`.
    y : array-like of shape (rows,)
    methods : "paper", sequence of str, or mapping
        ``"paper"`` means the ten methods of the paper (:data:`castlereg.comparison.PAPER_METHODS`). A sequence names
        methods, including two later ones, ``"TANGOS"`` and ``"Deep Lasso"``
        (:data:`castlereg.comparison.LATER_METHODS`). A mapping defines custom methods as regularizers or as lists of
        candidates to choose from, such as ``{"both": [Dropout(0.2), L2(0.01)], "L2": [[L2(0.1)], [L2(0.01)]]}``.
    cv : int or splitter
        Number of folds, or a splitter of scikit-learn.
    n_splits : int
        Number of random choices of the held-out rows, each with its own folds. The choice of these rows often changes
        the error more than the method does, so prefer five splits to one.
    test_size : float or int
        Share or number of held-out rows.
    task : {"auto", "regression", "classification"}
        By default inferred from ``y``: text, booleans and few whole numbers that repeat are classes.
    input_init : {"small", "glorot"} or mapping of method to these, optional
        Scale of the initial weights of the input layers; by default, and for methods missing from a mapping, that of
        the recipe.
    random_state : int, RandomState, Generator or None
        Seed for splits, folds, initial weights and batches.
    verbose : bool, optional
        Show a progress bar; by default in a terminal or notebook.
    **network
        Options of :class:`castlereg.NetworkRegressor`: ``hidden_layer_sizes``, ``categorical_features``,
        ``unusable_columns``, ``recipe``, ``learning_rate``, ``max_epochs``. With ``Recipe(refit=True)``, methods with
        CASTLE select columns, and networks without CASTLE are trained on these.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import compare
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> result = compare(X, y, methods=["Baseline", "L2", "CASTLE"], cv=3, max_epochs=20, random_state=0)
    >>> sorted(result.to_frame().index)
    ['Baseline', 'CASTLE', 'L2']
    >>> result.ranks().shape  # one row per fold
    (3, 3)
    """
    problem = _Problem.read(X, y, task, random_state, network)
    grids = checked_methods(methods, problem.plan.hidden_layer_sizes)
    starts = _checked_starts(input_init, grids)
    splits = problem.splits(cv, n_splits, test_size)
    show = shows_progress(verbose)
    kind = "classification" if problem.is_classification else "regression"

    is_here = effective_n_jobs(None) == 1  # the bars of several processes would overwrite each other

    with tqdm(grids.items(), desc="comparing", unit="method", disable=not show) as bar:

        def calls() -> Iterator[Any]:
            for name, candidates in bar:
                bar.set_postfix_str(name)
                yield delayed(problem.run)(name, candidates, splits, starts.get(name), show and is_here)

        results, seconds = zip(*Parallel()(calls()), strict=True)
    scores, by_split = zip(*(of_split for of_method in results for of_split in of_method), strict=True)
    return Comparison(
        pd.concat(scores, ignore_index=True),
        pd.DataFrame(by_split),
        pd.Series(seconds, list(grids), name="seconds"),
        "AUROC" if problem.is_classification else "MSE",
        f"{len(grids)} methods on {len(problem.cells)} rows x {problem.cells.shape[1]} features, "
        f"{kind} of {problem.preprocessing.targets[0].name!r}: "
        f"{len(splits[0].folds)} folds, {len(splits[0].test_rows)} rows held out, "
        f"{n_splits} random split{'s' if n_splits > 1 else ''}.",
    )


def held_out_splits(
    X: ArrayLike, y: ArrayLike, *, task: Task, cv: Any, n_splits: int, test_size: float | int, random_state: int
) -> list[Split]:
    """Return the held-out rows and the folds of :func:`compare`, for methods of other packages."""
    return _Problem.read(X, y, task, random_state, {}).splits(cv, n_splits, test_size)


@dataclass(frozen=True)
class _Problem:
    """A checked and encoded table, and the settings for training and scoring."""

    rows: Rows  # coded, in the user's order
    table: Table
    preprocessing: Preprocessing
    plan: Plan
    seed: np.random.SeedSequence
    refit: bool  # whether methods with CASTLE are refitted without it on the columns that it selects

    @classmethod
    def read(cls, X: ArrayLike, y: ArrayLike, task: str, random_state: Seed, network: dict[str, Any]) -> _Problem:
        check_choice("task", task, ["auto", "regression", "classification"])
        for option in network.keys() - set(_NETWORK_OPTIONS):
            known = [*_NETWORK_OPTIONS, *(name for name in inspect.signature(compare).parameters if name != "network")]
            hint = did_you_mean(option, known) or f"; the options are {', '.join(known)}"
            raise TypeError(f"compare() has no option {option!r}{hint}")
        is_classification = (inferred_task(y)[0] if task == "auto" else task) == "classification"
        recipe = network.get("recipe")
        refit = isinstance(recipe, Recipe) and recipe.refit
        if isinstance(recipe, Recipe):  # this model is a network without CASTLE, which has no refit
            network = {**network, "recipe": replace(recipe, refit=False)}
        model: NetworkEstimator = (NetworkClassifier if is_classification else NetworkRegressor)(**network)
        rows, names = read_training_rows(model, X, y)
        if len(rows.targets) > 1:
            raise ValueError(
                f"y has {len(rows.targets)} targets, but compare() takes one; call it for each target separately"
            )
        plan = checked_plan(model, len(names) - 1)
        preprocessing, (rows,) = Preprocessing.fit(
            rows,
            None,
            lambda rows: (fit_target(rows.targets[0], names[-1], model.target_kind),),
            categorical=named_columns(model.categorical_features, rows.columns.names),
            clipped=model.recipe is not None and model.recipe.scaling == "robust",
            drop_unusable=model.unusable_columns == "drop",
        )
        assert rows.index is not None  # rows are in an internal order
        rows = rows.take(np.argsort(rows.index))  # in the user's order
        table = preprocessing.table(rows)
        return cls(rows, table, preprocessing, plan, seed_sequence(random_state), refit)

    @property
    def cells(self) -> NDArray[np.float64]:
        return self.rows.columns.cells

    @property
    def target(self) -> NDArray[Any]:
        return self.rows.targets[0]

    @property
    def is_classification(self) -> bool:
        return not self.preprocessing.targets[0].is_numeric

    def splits(self, cv: Any, n_splits: int, test_size: float | int) -> list[Split]:
        """Hold out test rows and split the others into folds."""
        check_integer("n_splits", n_splits)
        if isinstance(test_size, int | np.integer) and not isinstance(test_size, bool):
            check_integer("test_size", test_size)
        else:
            check_fraction("test_size", test_size)
        return splits_with_test_rows(
            cv,
            self.target,
            n_splits=n_splits,
            test_size=test_size,
            is_classification=self.is_classification,
            seed=self.seed,
        )

    def run(
        self, method: str, candidates: Candidates, splits: list[Split], input_init: Start | None, progress: bool
    ) -> tuple[list[tuple[pd.DataFrame, dict[str, Any]]], float]:
        """Train a method on all folds of all splits together; return the scores of each split, and the seconds."""
        begun = time.perf_counter()
        folds = [fold for split in splits for fold in split.folds]
        seeds = [fit_stream(self.seed, OfFit.NETWORKS, fold) for fold in range(len(folds))]
        plan = self.plan if input_init is None else replace(self.plan, input_init=input_init)
        try:
            grid = train_folds(self.table, folds, plan, candidates=candidates, seeds=seeds, progress=progress)
            of_splits = np.split(np.arange(len(folds)), np.cumsum([len(split.folds) for split in splits])[:-1])
            scored = []
            for number, (split, of_split) in enumerate(zip(splits, of_splits, strict=True)):
                of_folds = grid.of(of_split)
                chosen = _chosen_strengths(of_folds.candidates, of_folds.best)
                if self.refit and castle_of(of_folds.candidates[of_folds.best]) is not None:
                    of_folds = self._refitted(split, of_folds, plan, [seeds[fold] for fold in of_split])
                scored.append(self._scored({"method": method, "split": number}, chosen, split, of_folds))
        except FloatingPointError as error:
            raise FloatingPointError(f"method {method!r}: {error}") from error
        return scored, time.perf_counter() - begun

    def _refitted(self, split: Split, grid: FoldGrid, plan: Plan, seeds: Sequence[np.random.SeedSequence]) -> FoldGrid:
        """Train the folds of the best candidate again without CASTLE, on the columns that its networks need."""
        best, trained = grid.best, grid.trained(grid.best)
        networks = Networks.of(self.preprocessing, grid.networks(best, trained))
        held_out = HeldOut.of(self.preprocessing.targets, [self.rows], [split.folds[fold][1] for fold in trained])
        used = np.ones((len(split.folds), networks.layout.n_features), bool)
        used[trained] = selected_columns(networks, held_out)
        return train_folds(
            self.table,
            split.folds,
            plan,
            candidates=[[part for part in grid.candidates[best] if castle_of([part]) is None]],
            seeds=seeds,
            used=by_node(used, self.preprocessing),
        )

    def _scored(
        self, names: dict[str, Any], chosen: str, split: Split, grid: FoldGrid
    ) -> tuple[pd.DataFrame, dict[str, Any]]:
        best, trained, n_folds = grid.best, grid.trained(grid.best), len(split.folds)
        if len(trained) < n_folds:
            failed = f"{n_folds - len(trained)} of {n_folds} networks never had a finite loss"
            message = f"method {names['method']!r}, split {names['split']}: {failed}"
            if not len(trained):
                raise FloatingPointError(f"{message}; lower learning_rate or the strength of the regularizers")
            warn_user(f"{message}; they have no score and rank last", ConvergenceWarning)
        networks = Networks.of(self.preprocessing, grid.networks(best, trained))
        (predicted,) = networks.predict(self.cells[split.test_rows])
        scores = np.full(n_folds, np.nan)
        scores[trained] = [self._score(by_network, split) for by_network in predicted]
        of_folds = {"fold": np.arange(n_folds), "score": scores, "validation_loss": grid.losses[best]}
        of_split = {
            "score": self._score(predicted.mean(axis=0), split),
            "chosen": chosen,
            "unit": self._unit(split),
        }
        return pd.DataFrame(names | of_folds), names | of_split

    def _score(self, predicted: NDArray[np.float64], split: Split) -> float:
        truth = self.target[split.test_rows]
        if not self.is_classification:
            return float(np.mean((predicted - truth) ** 2) / self._unit(split))
        if predicted.shape[1] == 2:
            return float(roc_auc_score(truth, predicted[:, 1]))
        return float(roc_auc_score(truth, predicted, multi_class="ovr", labels=np.unique(self.target)))

    def _unit(self, split: Split) -> float:
        return 1.0 if self.is_classification else float(np.var(self.target[split.rest]))


def _chosen_strengths(candidates: Sequence[tuple[Regularizer, ...]], best: int) -> str:
    """Describe the strengths of the chosen candidate that differ between candidates."""
    strengths = [jax.tree_util.tree_leaves_with_path(candidate) for candidate in candidates]
    return ", ".join(
        f"{path[-1].name}={value:g}"
        for k, (path, value) in enumerate(strengths[best])
        if len({of_candidate[k][1] for of_candidate in strengths}) > 1
    )


def _checked_starts(input_init: str | Mapping[str, str] | None, methods: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scale of initial weights for each method for which it differs from the recipe."""
    if not isinstance(input_init, Mapping):
        input_init = {} if input_init is None else dict.fromkeys(methods, input_init)
    for name, start in input_init.items():
        check_choice("method in input_init", name, methods)
        check_choice("input_init", start, ["small", "glorot"])
    return dict(input_init)
