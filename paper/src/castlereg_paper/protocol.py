"""What experiments use of the core of castlereg: preprocessing, training of folds, and fitted networks.

All other modules of the laboratory use this one, and otherwise only estimators, regularizers, formulas and synthetic
data.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold, check_cv, train_test_split
from sklearn.utils import check_consistent_length

from castlereg.estimators import CastleRegressor, CastleRegressorCV, NetworkClassifier, NetworkRegressor
from castlereg.estimators.base import NetworkEstimator, Seed, seed_sequence
from castlereg.layout import Layout
from castlereg.losses import Batch
from castlereg.network import Parameters
from castlereg.notices import warn_user
from castlereg.options import check_choice, check_fraction, check_integer
from castlereg.random_streams import OfFit, fit_stream
from castlereg.regularizers import Regularizer
from castlereg.regularizers.castle import castle_of
from castlereg.search.candidates import NetworkStage, Result
from castlereg.search.fit import FitRequest, TrainingData, choose, prepare
from castlereg.search.held_out import HeldOut, selected_columns
from castlereg.search.networks import Networks
from castlereg.search.recipe import Recipe, network_stages
from castlereg.table.encoding import Rows, measure, standardize
from castlereg.table.reading import read_columns
from castlereg.table.schema import named_columns
from castlereg.table.targets import check_target, inferred_task, read_target
from castlereg.training import Control, Plan, TrainedStack

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Candidates = tuple[tuple[Regularizer, ...], ...]

# --- the paper's protocol ------------------------------------------------------------------------------


class Split(NamedTuple):
    """Test rows, and folds of the remaining rows: training and validation rows of each."""

    test_rows: Indices
    rest: Indices
    folds: list[tuple[Indices, Indices]]


@dataclass(frozen=True)
class Problem:
    """A checked and encoded table with one target, and the settings for training and scoring."""

    data: TrainingData
    plan: Plan
    seed: np.random.SeedSequence
    refit: bool  # whether methods with CASTLE are refitted without it on the columns that it selects

    @classmethod
    def read(cls, X: ArrayLike, y: ArrayLike, task: str, random_state: Seed, network: dict[str, Any]) -> Problem:
        """Check and encode a table; ``network`` has options of :class:`castlereg.NetworkRegressor`."""
        recipe = network.get("recipe")
        refit = isinstance(recipe, Recipe) and bool(recipe.refit)
        if isinstance(recipe, Recipe):  # the model is a network without CASTLE, which has no refit
            network = {**network, "recipe": replace(recipe, refit=False)}
        model = _network(y, task)(**network)
        model._check_options()
        columns, (targets, names) = read_columns(X), read_target(y)
        check_consistent_length(columns.values, *targets)
        check_one_target(targets)
        rows = Rows(columns, (check_target(targets[0], names[0], model.target_kind),))
        options, seed = model._training_options(), seed_sequence(random_state)
        categorical = named_columns(model.categorical_features, columns.names)
        data = prepare(FitRequest(rows, names, [model.target_kind], seed, options, categorical=categorical))
        (stage,) = network_stages([()], options, data.preprocessing.layout, "training")
        assert isinstance(stage, NetworkStage)
        return cls(data, stage.plan, seed, refit)

    @property
    def rows(self) -> Rows:
        """Coded rows, in the user's order."""
        return self.data.parts[0]

    @property
    def target(self) -> NDArray[Any]:
        """Numbers, or codes of classes."""
        return self.rows.targets[0]

    @property
    def target_name(self) -> str:
        """Name of the target."""
        return self.data.preprocessing.targets[0].name

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""
        return len(self.rows), self.rows.columns.cells.shape[1]

    @property
    def is_classification(self) -> bool:
        """Whether the target has classes."""
        return not self.data.preprocessing.targets[0].is_numeric

    def splits(self, cv: Any, n_splits: int, test_size: float | int) -> list[Split]:
        """Hold out random test rows and split the others into folds, ``n_splits`` times; stratified for classes."""
        y = self.target
        check_integer("n_splits", n_splits)
        if isinstance(test_size, int | np.integer) and not isinstance(test_size, bool):
            check_integer("test_size", test_size)
        else:
            check_fraction("test_size", test_size)
        if self.is_classification:
            _check_classes(y, cv)
        if test_size > len(y) - 2:
            raise ValueError(f"test_size={test_size} leaves too few of the {len(y)} rows for training: lower it")
        splits = []
        for number in range(n_splits):
            rng = np.random.default_rng(fit_stream(self.seed, OfFit.HELD_OUT_ROWS, number))
            rest, test_rows = train_test_split(
                np.arange(len(y)),
                test_size=test_size,
                random_state=int(rng.integers(2**31)),
                stratify=y if self.is_classification else None,
            )
            splitter = check_cv(cv, y[rest], classifier=self.is_classification)
            if isinstance(cv, int | np.integer):
                kind = StratifiedKFold if self.is_classification else KFold
                splitter = kind(cv, shuffle=True, random_state=int(rng.integers(2**31)))
            folds = splitter.split(np.empty((len(rest), 1)), y[rest])
            splits.append(Split(test_rows, rest, [(rest[train], rest[held]) for train, held in folds]))
        return splits

    def run(
        self,
        method: str,
        candidates: Candidates,
        splits: list[Split],
        *,
        input_init: str | None = None,
        progress: bool = False,
    ) -> list[dict[str, Any]]:
        """Train a method on all folds of all splits together, and score it on the test rows.

        All methods have the same initial weights and batches in a fold. The candidate with the lowest mean validation
        loss is chosen.

        Returns
        -------
        list of dict
            For each split: ``score`` of the mean prediction, ``chosen`` strengths, ``unit`` of MSE, and ``folds``, with
            ``score`` and ``validation_loss`` of each network.
        """
        folds = [fold for split in splits for fold in split.folds]
        seeds = [fit_stream(self.seed, OfFit.NETWORKS, fold) for fold in range(len(folds))]
        plan: Any = self.plan if input_init is None else replace(self.plan, input_init=input_init)  # type: ignore[arg-type]
        parts = np.split(np.arange(len(folds)), np.cumsum([len(split.folds) for split in splits])[:-1])
        stage, scored = NetworkStage(method, plan, candidates), []
        try:
            results = stage.train(self.data.encoded, folds, seeds, Control(progress=progress))
            for number, (split, part) in enumerate(zip(splits, parts, strict=True)):
                of_split = [result._replace(stack=result.stack.take(part)) for result in results]
                losses = np.array([result.stack.validation_loss for result in of_split], np.float64)
                best = choose(np.where(np.isfinite(losses), -losses, -np.inf))
                stack = of_split[best].stack
                if self.refit and castle_of(candidates[best]) is not None:
                    stack = self._refitted(split, of_split[best], plan, [seeds[fold] for fold in part])
                scores = self._scored(f"method {method!r}, split {number}", split, stack)
                scored.append({"chosen": _chosen_strengths(candidates, best), **scores})
        except FloatingPointError as error:
            raise FloatingPointError(f"method {method!r}: {error}") from error
        return scored

    def _refitted(
        self, split: Split, best: Result, plan: Plan, seeds: Sequence[np.random.SeedSequence]
    ) -> TrainedStack:
        """Train the folds of the best candidate again without CASTLE, on the columns that its networks need."""
        trained = np.flatnonzero(np.isfinite(best.stack.validation_loss))
        networks = Networks.of(self.data.preprocessing, best.stack.take(trained))
        used = np.ones((len(split.folds), networks.layout.n_nodes), bool)
        held_out = HeldOut.of([self.rows], [split.folds[fold][1] for fold in trained])
        used[trained, : networks.layout.n_features] = selected_columns(networks, held_out)
        others = tuple(part for part in best.regularizers if castle_of([part]) is None)
        stage = NetworkStage("refit", plan, (others,), refit=True)
        (refitted,) = stage.train(self.data.encoded, split.folds, seeds, Control(), list(used))
        return refitted.stack

    def _scored(self, where: str, split: Split, stack: TrainedStack) -> dict[str, Any]:
        """Score the networks of the best candidate; a network without a finite loss has the score NaN."""
        trained, n_folds = np.flatnonzero(np.isfinite(stack.validation_loss)), len(split.folds)
        if len(trained) < n_folds:
            failed = f"{where}: {n_folds - len(trained)} of {n_folds} networks never had a finite loss"
            if not len(trained):
                raise FloatingPointError(f"{failed}; lower learning_rate or the strength of the regularizers")
            warn_user(f"{failed}; they have no score and rank last", ConvergenceWarning)
        networks = Networks.of(self.data.preprocessing, stack.take(trained))
        (values,) = networks.predict_values(self.rows.columns.take(split.test_rows).cells)
        predicted = self.data.preprocessing.targets[0].predicted(values)
        scores = np.full(n_folds, np.nan)
        scores[trained] = [self._score(of_network, split) for of_network in predicted]
        losses = zip(scores, stack.validation_loss, strict=True)
        return {
            "score": self._score(predicted.mean(axis=0), split),
            "unit": self._unit(split),
            "folds": [{"score": float(score), "validation_loss": float(loss)} for score, loss in losses],
        }

    def _score(self, predicted: Array, split: Split) -> float:
        """Return the MSE in units of the target's variance, or the AUROC, on the test rows."""
        truth = self.target[split.test_rows]
        if not self.is_classification:
            return float(np.mean((predicted - truth) ** 2) / self._unit(split))
        if predicted.shape[1] == 2:
            return float(roc_auc_score(truth, predicted[:, 1]))
        return float(roc_auc_score(truth, predicted, multi_class="ovr", labels=np.unique(self.target)))

    def _unit(self, split: Split) -> float:
        """Return the variance of a numeric target among the rows that are not held out."""
        return 1.0 if self.is_classification else float(np.var(self.target[split.rest]))


def check_one_target(targets: Sequence[Any]) -> None:
    """Raise for several targets."""
    if len(targets) > 1:
        raise ValueError(f"y has {len(targets)} targets instead of one; call it for each target separately")


def _network(y: ArrayLike, task: str) -> type[NetworkEstimator]:
    """Return the estimator for a task."""
    check_choice("task", task, ["auto", "regression", "classification"])
    is_classification = (inferred_task(y)[0] if task == "auto" else task) == "classification"
    return NetworkClassifier if is_classification else NetworkRegressor


def _check_classes(y: NDArray[Any], cv: Any) -> None:
    """Raise for a class with too few rows for folds and test rows."""
    classes, counts = np.unique(y, return_counts=True)
    least = counts.argmin()
    needed = 2 + (cv if isinstance(cv, int) else 1)
    if counts[least] < needed:
        raise ValueError(
            f"class {classes[least]!r} has {counts[least]} rows, but cv={cv!r} and the test rows need at least "
            f"{needed} rows of every class: lower cv or merge classes"
        )


def _chosen_strengths(candidates: Sequence[tuple[Regularizer, ...]], best: int) -> str:
    """Describe the strengths of the chosen candidate that differ between candidates."""
    strengths = [jax.tree_util.tree_leaves_with_path(candidate) for candidate in candidates]
    return ", ".join(
        f"{path[-1].name}={value:g}"
        for k, (path, value) in enumerate(strengths[best])
        if len({of_candidate[k][1] for of_candidate in strengths}) > 1
    )


# --- tables and fitted networks ------------------------------------------------------------------------


def standardized_columns(X: ArrayLike, y: ArrayLike, task: str) -> tuple[Array, Indices, Array]:
    """Return standardized channels of the columns, the column of each, and channels of the target; missing are 0."""
    encoded = Problem.read(X, y, task, 0, {}).data.encoded
    standardization, _ = measure(encoded, [np.arange(len(encoded.inputs))])
    layout = encoded.layout
    standardized = standardize(encoded.inputs, standardization.take(0), layout)
    channels = np.nan_to_num(np.asarray(standardized, np.float64))
    split = layout.n_feature_channels
    return channels[:, :split], layout.channel_nodes[:split], channels[:, split:]


def fitted_network(
    model: NetworkEstimator, X: ArrayLike, y: ArrayLike, member: int
) -> tuple[Parameters, Batch, Layout]:
    """Return one network of a fitted estimator, standardized rows, and their layout."""
    return *model.standardized(X, y, member), model.model_.networks.layout


def learned_weights(X: pd.DataFrame, y: pd.Series, *, cv: int, max_epochs: int, random_state: int) -> pd.DataFrame:
    """Return ``weights.loc[cause, effect]`` of CASTLE before the threshold, with beta chosen by cross-validation."""
    model = CastleRegressorCV(search="paper", cv=cv, max_epochs=max_epochs, random_state=random_state).fit(X, y)
    return model.input_graph_.learned_weights


def timed_fit(X: pd.DataFrame, y: pd.Series, *, width: int, epochs: int) -> tuple[CastleRegressor, float]:
    """Train CASTLE for exactly these epochs; return the model and the seconds."""
    begun = time.perf_counter()
    model = CastleRegressor(
        hidden_layer_sizes=(width, width), max_epochs=epochs, recipe=Recipe(patience=epochs), random_state=0
    )
    return model.fit(X, y), time.perf_counter() - begun
