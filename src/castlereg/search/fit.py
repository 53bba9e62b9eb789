"""The one fit: prepare rows and splits, train stages of candidates on the same splits, choose or blend, and assemble.

A plain fit, a grid and a pool differ only in their stages, in their splits and in how the weights of the candidates are
chosen: a pool blends them, and a grid puts the weight 1 on one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from castlereg.layout import EdgeRules
from castlereg.notices import FitWarning, warn_user
from castlereg.random_streams import OfFit, fit_stream
from castlereg.regularizers import Castle, Regularizer
from castlereg.regularizers.castle import castle_of
from castlereg.regularizers.protocol import check_regularizers
from castlereg.search.candidates import Regularizers, Stage, strengths_of
from castlereg.search.held_out import HeldOut, RowLosses, one_by_one, prediction_errors, selected_columns
from castlereg.search.model import FittedModel, FoldRecord, HeldOutPredictions
from castlereg.search.networks import Blend, Networks
from castlereg.search.recipe import TrainingOptions, network_stages, paper_grid, pool
from castlereg.table.encoding import Encoded, Preprocessing, Rows, weighted_by_class
from castlereg.table.splits import Fold, cross_validation_folds, times_of, validation_split
from castlereg.table.targets import ClassTarget, ClassWeight, Target, TargetKind, fit_target
from castlereg.target_losses import TargetLoss
from castlereg.training import Control, TimeLimit, TrainedStack
from castlereg.training.engines import all_names

if TYPE_CHECKING:
    from castlereg.causal import CausalGraph

Search = Literal["fast", "best", "paper", "one_standard_error"]
# Score of known predictions for rows of the user's table, higher is better.
Score = Callable[["Predicted", NDArray[np.int64]], float]

_FEWEST_ROWS = 3  # two for training, one for validation
FOLDS, FOLDS_OF_POOL, REPEATS_OF_BEST = 10, 5, 2
_LEADERS = 5  # best candidates that share half of the weight of a blend
_ROUNDS = 20  # rounds of the greedy selection
_ROWS_TO_SCORE = 10  # with fewer rows, a comparison with their mean is not meaningful
_FEW_ROWS = 50
_ROWS_BEYOND_COLUMNS = 10
_ROWS_OF_A_CLASS = 10
_MOST_NAMED = 3
_CLEARLY = 2.0  # standard errors


@dataclass(frozen=True)
class Predicted:
    """A model whose predictions of some rows are known, for scorers."""

    preprocessing: Preprocessing
    values: Sequence[NDArray[np.float64]]  # of each target, decoded

    @property
    def targets(self) -> tuple[Target, ...]:
        """Targets, with their names and values."""
        return self.preprocessing.targets

    @property
    def classes(self) -> list[NDArray[Any]]:
        """Classes of each target that has classes."""
        return [target.classes for target in self.targets if isinstance(target, ClassTarget)]

    def predict(self, columns: Any) -> list[NDArray[np.float64]]:
        """Return the known predictions."""
        return [target.predicted(values) for target, values in zip(self.targets, self.values, strict=True)]

    def predict_quantiles(self, columns: Any) -> NDArray[np.float64]:
        """Return the known quantiles, shape (rows, targets, quantiles)."""
        return np.stack(self.values, axis=1)


@dataclass(frozen=True)
class FitRequest:
    """The rows and options of a fit."""

    rows: Rows  # as read
    target_names: Sequence[str]
    target_kinds: Sequence[TargetKind]
    seed: np.random.SeedSequence
    options: TrainingOptions
    validation: Rows | None = None  # validation rows passed by the user, as read
    categorical: Sequence[bool] = ()  # columns that the user marked as categorical
    class_weight: ClassWeight = None
    loss: TargetLoss | None = None  # of numeric targets; None for the squared error
    monotone: Sequence[int] | None = None  # 1 or -1 for columns with which the targets rise or fall
    edges: EdgeRules | None = None
    graph: CausalGraph | None = None  # passed by the user
    groups: NDArray[np.int64] | None = None  # group of each row
    time_column: int | None = None  # column with the times of the rows
    candidates: Sequence[Regularizers] = ()  # of a plain fit
    n_members: int = 1  # networks with different seeds, in a plain fit
    bootstrap: bool = False  # whether each network has its own bootstrap sample of the training rows
    search: Search | None = None  # None for a plain fit
    cv: Any = None  # number of folds, splitter or iterable of splits
    splitter_data: tuple[Any, Any, bool] = (None, None, False)  # y and groups as passed, and whether y has classes
    score: Score | None = None  # None for the loss
    control: Control = field(default_factory=Control)

    @property
    def is_pool(self) -> bool:
        """Whether candidates are blended."""
        return self.search in ("fast", "best")


@dataclass(frozen=True)
class TrainingData:
    """Rows prepared for training: coded, encoded, and assigned to the networks of a candidate."""

    preprocessing: Preprocessing
    parts: list[Rows]  # coded: training rows, and validation rows of the user if there are any
    encoded: Encoded  # of all parts, one after the other
    folds: list[Fold]  # training and validation rows of each network
    seeds: list[np.random.SeedSequence]  # of each network
    kept: NDArray[np.int64]  # the user's row of each training row: those with a positive weight
    fold_seeds: list[int] | None = None  # of cross-validation, as integers

    @cached_property
    def held_out(self) -> HeldOut:
        """Validation rows of the networks."""
        return HeldOut.of(self.parts, [held for _, held in self.folds])

    @cached_property
    def losses(self) -> RowLosses:
        """Losses of these rows."""
        return RowLosses(self.preprocessing.targets, self.held_out.truth, self.held_out.weight)

    def class_counts(self, k: int, fold: int | None = None) -> NDArray[np.int64]:
        """Return the number of training rows of each class of a target; or those of a fold."""
        target, values = self.preprocessing.targets[k], self.parts[0].targets[k]
        assert isinstance(target, ClassTarget)
        rows = slice(None) if fold is None else np.unique(self.folds[fold][0])
        return np.bincount(target.codes(values[rows]), minlength=len(target.classes))


def prepare(request: FitRequest) -> TrainingData:
    """Code and encode the rows of a request, and assign them to networks."""
    rows = request.rows
    kept = np.arange(len(rows)) if rows.weight is None else np.flatnonzero(rows.weight)
    rows = rows if rows.weight is None else rows.take(kept)
    _check_enough(rows)
    described = zip(rows.targets, request.target_names, request.target_kinds, strict=True)
    targets = tuple(fit_target(values, name, kind, request.loss) for values, name, kind in described)
    if request.class_weight is not None:
        rows = weighted_by_class(rows, targets, request.class_weight)
        assert rows.weight is not None
        positive = np.flatnonzero(rows.weight)
        rows, kept = rows.take(positive), kept[positive]
        _check_enough(rows)
    clipped = request.options.recipe.scaling == "robust"
    preprocessing = Preprocessing.fit(
        rows, targets, categorical=request.categorical, clipped=clipped, monotone=request.monotone
    )
    _check_rules(preprocessing, request.edges)
    parts = [preprocessing.coded(rows)]
    if request.validation is not None:
        parts.append(preprocessing.coded(request.validation, "X_val", "y_val"))
        preprocessing.warn_of_new_missing(parts[1].columns.cells, "X_val")
    encoded = preprocessing.encoded(*parts, edges=request.edges)
    time = request.time_column
    related: dict[str, Any] = {
        "classes": preprocessing.classes_of(parts[0]),
        "groups": None if request.groups is None else request.groups[kept],
        "times": None if time is None else times_of(rows.columns, preprocessing.schema, time),
    }
    if request.search is None:
        return TrainingData(preprocessing, parts, encoded, *_networks_of_split(request, parts, related), kept)
    folds = _folds(request, kept, related)
    numbers = [int(n) for n in fit_stream(request.seed, OfFit.FOLD_SEEDS).generate_state(len(folds))]
    seeds = [fit_stream(np.random.SeedSequence(number), OfFit.NETWORKS, 0) for number in numbers]
    return TrainingData(preprocessing, parts, encoded, folds, seeds, kept, numbers)


def _networks_of_split(
    request: FitRequest, parts: list[Rows], related: dict[str, Any]
) -> tuple[list[Fold], list[np.random.SeedSequence]]:
    """Assign the same split to every network; with bootstrap, each has its own sample of the training rows."""
    n_rows = len(parts[0])
    if len(parts) > 1:
        train, held = np.arange(n_rows), n_rows + np.arange(len(parts[1]))
    else:
        fraction = request.options.recipe.validation_fraction or 0.1
        seed = int(fit_stream(request.seed, OfFit.HELD_OUT_ROWS).generate_state(1)[0])
        train, held = validation_split(n_rows, fraction, seed=seed, **related)
    folds = []
    for i in range(request.n_members):
        drawn = np.random.default_rng(fit_stream(request.seed, OfFit.BOOTSTRAP, i))
        folds.append((np.sort(drawn.choice(train, len(train))) if request.bootstrap else train, held))
    return folds, [fit_stream(request.seed, OfFit.NETWORKS, i) for i in range(request.n_members)]


def _folds(request: FitRequest, kept: NDArray[np.int64], related: dict[str, Any]) -> list[Fold]:
    """Split the training rows into folds; repeats use other random folds, or train a splitter's folds again."""
    repeats = REPEATS_OF_BEST if request.search == "best" else 1
    cv = (FOLDS_OF_POOL if request.is_pool else FOLDS) if request.cv is None else request.cv
    if isinstance(cv, int | np.integer):
        states = fit_stream(request.seed, OfFit.FOLD_ROWS).generate_state(repeats)
        cuts = [cross_validation_folds(cv, len(kept), seed=int(state), **related) for state in states]
        return [fold for cut in cuts for fold in cut]
    y, groups, has_classes = request.splitter_data
    splits: dict[str, Any] = {"y": y, "groups": groups, "is_classifier": has_classes, "kept": kept}
    return cross_validation_folds(cv, len(request.rows), seed=0, **splits) * repeats


def _check_enough(rows: Rows) -> None:
    if len(rows) < _FEWEST_ROWS:
        raise ValueError(
            f"n_samples={len(rows)} is too few: a network needs at least {_FEWEST_ROWS} rows with a positive weight, "
            "two for training and one for validation"
        )


def _check_rules(preprocessing: Preprocessing, edges: EdgeRules | None) -> None:
    """Raise for monotone columns of classes without an order, and for required edges of columns that have none."""
    for target in preprocessing.targets:
        if preprocessing.layout.is_monotone and target.node.kind == "categorical":
            raise ValueError(
                f"monotone needs a target of numbers or of two classes, but {target.name} has "
                f"{target.node.levels} classes"
            )
    for k, column in enumerate(preprocessing.schema):
        if edges is not None and column.constant and (edges.required[k].any() or edges.required[:, k].any()):
            state = "unusable" if column.kind == "unusable" else "constant"
            raise ValueError(f"an edge of {column.name!r} is required, but the column is {state}: drop this edge")


# --- training and choice ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A trained candidate with one network per fold."""

    name: str
    stage: str
    regularizers: Regularizers
    stack: TrainedStack
    networks: Networks
    data: TrainingData
    seconds: float

    @cached_property
    def fold_values(self) -> list[list[NDArray[np.float64]]]:
        """Predictions of each fold's network for the rows that it did not train on, for each target."""
        return self.data.held_out.member_values(one_by_one(self.networks, self.networks.n_members))

    @cached_property
    def predicted(self) -> list[NDArray[np.float64]]:
        """Predictions of all held-out rows, for each target."""
        return self.data.held_out.mean(self.fold_values)

    @cached_property
    def row_losses(self) -> NDArray[np.float64]:
        """Loss of every held-out row."""
        return self.data.losses(self.predicted)

    @property
    def loss(self) -> float:
        """Mean loss of the held-out rows."""
        return float(self.row_losses.mean())


def fit(request: FitRequest) -> FittedModel:
    """Train the candidates of a request on its splits, choose or blend them, and collect the result."""
    for candidate in (*request.candidates, request.options.regularizers):
        check_regularizers(candidate, request.options.hidden_layer_sizes)
    data, options = prepare(request), request.options
    layout, stages = data.preprocessing.layout, list[Stage]()
    if request.is_pool:
        stages = pool(options, layout, len(data.parts[0]))
    elif request.search is not None:
        stages = paper_grid(options, layout)
    else:
        names = tuple(f"network {i}" for i in range(len(data.folds)))
        stages = network_stages(request.candidates, options, layout, "training", names)
    run = _Run(request, data)
    run.train(stages)
    return run.model()


class _Run:
    """State of a fit: the candidates trained so far."""

    def __init__(self, request: FitRequest, data: TrainingData) -> None:
        self.request, self.data = request, data
        self.candidates: list[Candidate] = []
        self.used: NDArray[np.bool_] | None = None  # (folds, features), selected for the refit
        self.fold_of, self.all_folds = np.arange(len(data.folds)), data.folds

    @property
    def _networks(self) -> list[Candidate]:
        """Candidates with hidden layers."""
        return [candidate for candidate in self.candidates if candidate.stage != "linear"]

    def train(self, stages: Sequence[Stage]) -> None:
        """Train stage by stage, until the time limit or, with "keep", Ctrl-C."""
        control = self.request.control
        limits = [callback for callback in control.callbacks if isinstance(callback, TimeLimit)]
        total = sum(stage.epochs for stage in stages) * len(self.data.folds)
        failure = FloatingPointError("no network of the search had a finite loss on every fold: lower learning_rate")
        with tqdm(total=total, desc="training", unit="epoch", leave=False, disable=not control.progress) as bar:
            for number, stage in enumerate(stages):
                if self._networks and any(limit.is_over for limit in limits):
                    break
                try:
                    interrupted = self._train(stage, bar)
                except KeyboardInterrupt:
                    if control.on_interrupt == "raise" or not self._networks:
                        raise
                    interrupted = True
                except FloatingPointError as error:
                    if not self.request.is_pool:
                        raise
                    failure = error
                    warn_user(f"the candidates of stage {stage.name!r} are skipped: {error}", ConvergenceWarning)
                    continue
                if interrupted:
                    if number < len(stages) - 1 or self.request.is_pool:
                        n = len(self.candidates)
                        warn_user(f"the search was interrupted: the {n} candidates trained so far are used")
                    break
        if not self._networks:
            raise failure

    def _train(self, stage: Stage, bar: tqdm[Any]) -> bool:
        """Train the candidates of a stage; return whether Ctrl-C interrupted it."""
        begun, before, epochs = time.perf_counter(), bar.n, stage.epochs * len(self.data.folds)
        used = self._selected() if stage.refit else None
        if stage.refit and used is None:
            bar.update(epochs)
            return False
        bar.set_description(stage.name)
        control = replace(self.request.control, progress=bar)
        results = stage.train(self.data.encoded, self.data.folds, self.data.seeds, control, used)
        bar.update(max(before + epochs - bar.n, 0))
        seconds = (time.perf_counter() - begun) / len(results)
        for name, regularizers, stack in results:
            networks = Networks.of(self.data.preprocessing, stack)
            candidate = Candidate(name, stage.name, regularizers, stack, networks, self.data, seconds)
            finite = np.isfinite(stack.validation_loss).all()
            if not self.request.is_pool or (finite and np.isfinite(candidate.row_losses).all()):
                self.candidates.append(candidate)
        if not self.request.is_pool and not stage.refit:
            self._keep_trained_folds()
        return any(stack.interrupted for _, _, stack in results)

    def _keep_trained_folds(self) -> None:
        """Keep the folds on which the chosen candidate has a network; the others have warned."""
        finite = np.isfinite(self._chosen.stack.validation_loss)
        if finite.all():
            return
        kept, data = np.flatnonzero(finite), self.data
        self.fold_of = kept
        self.data = replace(data, folds=[data.folds[k] for k in kept], seeds=[data.seeds[k] for k in kept])
        self.candidates = [
            replace(c, stack=c.stack.take(kept), networks=c.networks.take(kept), data=self.data)
            for c in self.candidates
        ]

    def _selected(self) -> list[NDArray[np.bool_]] | None:
        """Select the columns of each fold with the CASTLE networks trained so far; return masks of nodes.

        None if there is nothing to refit: no such networks, or none of their columns can be left out.
        """
        castles = [c for c in self._networks if castle_of(c.regularizers) is not None]
        if not castles:
            return None
        if self.request.is_pool:
            first = [c for c in castles if c.stage == castles[0].stage]
            networks = min(first, key=lambda candidate: candidate.loss).networks
        else:
            networks = self._chosen.networks
        self.used = selected_columns(networks, self.data.held_out)
        if self.request.is_pool and np.array_equal(self.used, networks.target_edge_weights() > 0):
            return None
        targets = np.ones(len(self.data.preprocessing.targets), bool)
        return [np.r_[mask, targets] for mask in self.used]

    # --- choice -----------------------------------------------------------------------------------

    @property
    def scored(self) -> list[Candidate]:
        """Candidates that are compared: all of a pool, those of the grid otherwise."""
        return [c for c in self.candidates if self.request.is_pool or c.stage != "refit"]

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Score of each compared candidate on each fold, higher is better; minus infinity where it failed."""
        rows_of_folds = self.data.held_out.by_member
        if self.request.is_pool and self.request.score is None:
            return -np.array([[c.row_losses[rows].mean() for rows in rows_of_folds] for c in self.scored])
        losses = np.array([c.stack.validation_loss for c in self.scored], np.float64)
        if self.request.score is not None:
            scores = np.full(losses.shape, -np.inf)
            for i, fold in zip(*np.nonzero(np.isfinite(losses)), strict=True):
                scores[i, fold] = self._score(self.scored[i].fold_values[fold], rows_of_folds[fold])
            return scores
        return np.where(np.isfinite(losses), -losses, -np.inf)

    def _score(self, values: Sequence[NDArray[np.float64]], rows: NDArray[np.int64]) -> float:
        """Score predictions of some held-out rows by the user's scorer."""
        assert self.request.score is not None
        predicted, user_rows = Predicted(self.data.preprocessing, values), self.data.kept[self.data.held_out.rows[rows]]
        score = self.request.score(predicted, user_rows)
        if np.isnan(score):
            warn_user(f"scoring gives NaN for {len(rows)} held-out rows, which counts as the lowest score")
            return -np.inf
        return score

    @property
    def _chosen_index(self) -> int:
        """Index of the candidate that a grid chooses, or of the CASTLE networks of a pool with the lowest loss."""
        if self.request.is_pool:
            with_graph = [i for i, c in enumerate(self.scored) if c.networks.has_all_nodes]
            networks = [i for i, c in enumerate(self.scored) if c.stage != "linear"]
            return min(with_graph or networks, key=lambda i: self.scored[i].loss)
        strengths = [tuple(strengths_of(c.regularizers).values()) for c in self.scored]
        return choose(self.scores, strengths if self.request.search == "one_standard_error" else None)

    @property
    def _chosen(self) -> Candidate:
        return self.scored[self._chosen_index]

    def _weights(self) -> NDArray[np.float64]:
        if self.request.is_pool:
            all_rows = np.arange(len(self.data.held_out.cells))

            def mean_loss(values: Sequence[NDArray[np.float64]]) -> float:
                scored = self.request.score is not None
                return -self._score(values, all_rows) if scored else float(self.data.losses(values).mean())

            return greedy_weights([candidate.predicted for candidate in self.candidates], mean_loss)
        weights = np.zeros(len(self.candidates))
        is_refit = [candidate.stage == "refit" for candidate in self.candidates]
        weights[is_refit.index(True) if any(is_refit) else self._chosen_index] = 1.0
        return weights

    # --- the result -------------------------------------------------------------------------------

    def model(self) -> FittedModel:
        """Collect the result."""
        request, data, chosen = self.request, self.data, self._chosen
        weights = self._weights()
        parts = [self.candidates[i] for i in np.flatnonzero(weights)]
        blend = Blend(
            tuple(p.networks if p is chosen else p.networks.targets_only() for p in parts),
            weights[weights > 0],
            tuple(p.name for p in parts),
        )
        held_out, targets = data.held_out, data.preprocessing.targets
        values = [
            [sum(w * v for w, v in zip(blend.weights, by_part, strict=True)) for by_part in zip(*fold, strict=True)]
            for fold in zip(*(part.fold_values for part in parts), strict=True)
        ]
        mean = held_out.mean(values)
        predicted = [target.predicted(v) for target, v in zip(targets, mean, strict=True)]
        predictions = HeldOutPredictions(held_out.truth, predicted)
        record = None
        if data.fold_seeds is not None:
            folds = [(data.kept[train], data.kept[held]) for train, held in self.all_folds]
            errors = [
                [
                    prediction_errors(target, target.predicted(target_values), truth[rows])
                    for target, target_values, truth in zip(targets, fold_values, held_out.truth, strict=True)
                ]
                for fold_values, rows in zip(values, held_out.by_member, strict=True)
            ]
            results = self._results(weights)
            choice = self._chosen_index, chosen.regularizers
            record = FoldRecord(folds, data.fold_seeds, self.fold_of, errors, results, *choice)
        selected = None
        if self.used is not None and (request.is_pool or any(c.stage == "refit" for c in self.candidates)):
            selected = tuple(np.flatnonzero(self.used.mean(axis=0) >= 0.5).tolist())  # of at least half of the networks
        loss = float(data.losses(mean).mean()) if request.is_pool else float(chosen.stack.validation_loss.mean())
        for message in self._warnings(predictions):
            warn_user(message, FitWarning)
        return FittedModel(
            blend,
            chosen.networks,
            chosen.stack.history,
            loss,
            all_names(c.stack.engine for c in self._networks),
            int(fit_stream(request.seed, OfFit.GRAPH).generate_state(1)[0]),
            record,
            selected,
            request.edges,
            data.parts[0],
            known_graph=request.graph,
            held_out=predictions,
            held_out_rows=held_out,
        )

    def _warnings(self, predictions: HeldOutPredictions) -> list[str]:
        """Return reasons to doubt the fit, one line each."""
        data, request = self.data, self.request
        targets = data.preprocessing.targets
        reasons = [_few_rows(len(data.parts[0]), data.preprocessing.layout.n_features)]
        is_cross_validated = data.fold_seeds is not None
        for k, target in enumerate(targets):
            if isinstance(target, ClassTarget):
                in_folds = [data.class_counts(k, i) for i in range(len(data.folds) if is_cross_validated else 0)]
                reasons += [_rare_classes(target, data.class_counts(k)), _class_without_rows(target, in_folds)]
        if is_cross_validated and not request.is_pool:
            candidates = [candidate.regularizers for candidate in self.scored]
            reasons.append(_end_of_grid(candidates, self.scores, self._chosen_index))
        # Weights deliberately shift predictions away from the mean of the unweighted rows.
        if data.encoded.weight is None and len(predictions.truth[0]) >= _ROWS_TO_SCORE:
            reasons.append(_no_skill(predictions, targets))
        return [reason for reason in reasons if reason is not None]

    def _results(self, weights: NDArray[np.float64]) -> dict[str, Any]:
        """Return the results of the compared candidates in the format of scikit-learn's searches, with more columns."""
        scored, scores = self.scored, self.scores
        zeros = np.zeros(len(scored))
        params = _params([candidate.regularizers for candidate in scored])
        if self.request.is_pool:
            losses = np.array([candidate.loss for candidate in scored])
        else:
            weights = (np.arange(len(scored)) == self._chosen_index).astype(np.float64)
            losses = np.array([candidate.stack.validation_loss.mean() for candidate in scored], np.float64)
        results: dict[str, Any] = {
            "candidate": [candidate.name for candidate in scored],
            "stage": [candidate.stage for candidate in scored],
            "weight": weights,
            "loss": losses,
            "mean_fit_time": np.array([candidate.seconds for candidate in scored]) / scores.shape[1],
        }
        results |= dict.fromkeys(("std_fit_time", "mean_score_time", "std_score_time"), zeros)
        for name in dict.fromkeys(name for named in params for name in named if name != "castle"):
            results[f"param_{name}"] = np.ma.masked_invalid([named.get(name, np.nan) for named in params])
        results["params"] = params
        results |= {f"split{fold}_test_score": scores[:, fold] for fold in range(scores.shape[1])}
        with np.errstate(invalid="ignore"):  # failed folds have minus infinity
            results["mean_test_score"], results["std_test_score"] = scores.mean(axis=1), scores.std(axis=1)
        results["rank_test_score"] = rankdata(-results["mean_test_score"], method="min").astype(np.int32)
        return results


def _params(candidates: Sequence[Regularizers]) -> list[dict[str, Any]]:
    """Return the CASTLE options that correspond to each candidate, and other strengths that differ."""
    named = [strengths_of(candidate) for candidate in candidates]
    differ = {name for strengths in named for name in strengths if len({other.get(name) for other in named}) > 1}
    params: list[dict[str, Any]] = [
        {name: value for name, value in strengths.items() if "." not in name or name in differ} for strengths in named
    ]
    castles = [castle_of(candidate) for candidate in candidates]
    if any(c is None or callable(c.acyclicity) for c in castles):  # functions cannot be saved in files
        return params
    if len({replace(c, reg_beta=0.0, reg_lambda=0.0) for c in castles if c is not None}) == 1:
        return params
    return [p | {"castle": c} for p, c in zip(params, castles, strict=True)]


def choose(scores: NDArray[np.float64], strengths: Sequence[tuple[float, ...]] | None = None) -> int:
    """Choose a candidate by its mean score over folds, shape (candidates, folds); higher is better.

    With ``strengths``, choose by the one-standard-error rule: the strongest candidate whose mean is within one standard
    error of the best one.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[-1.0, -1.2], [-1.05, -1.2], [-3.0, -3.0]])
    >>> choose(scores)
    0
    >>> choose(scores, strengths=[(0.01,), (0.1,), (1.0,)])
    1
    """
    means = scores.mean(axis=1)
    if not np.isfinite(means).any():  # all have failed folds: choose by the fewest of them, then the best mean
        finite = np.isfinite(scores)
        sums = np.where(finite, scores, 0.0).sum(axis=1)
        return max(range(len(scores)), key=lambda i: (finite[i].sum(), sums[i]))
    best = int(np.where(np.isfinite(means), means, -np.inf).argmax())
    if strengths is None:
        return best
    n_folds = scores.shape[1]
    error = scores[best].std(ddof=1) / np.sqrt(n_folds) if n_folds > 1 else 0.0
    near = [i for i in range(len(scores)) if means[i] >= means[best] - error]
    return max(near, key=lambda i: (strengths[i], means[i]))


def greedy_weights(
    predictions: Sequence[Sequence[NDArray[np.float64]]],
    mean_loss: Callable[[Sequence[NDArray[np.float64]]], float],
    leaders: int = _LEADERS,
    rounds: int = _ROUNDS,
) -> NDArray[np.float64]:
    """Return weights of candidates, with sum 1, for which their mean prediction of held-out rows has a low loss.

    Half of the weight is shared equally by the best candidates, the leaders, which is robust for few rows. The other
    half comes from a greedy selection (Caruana et al., ICML 2004): each round adds the candidate that lowers the loss
    of the mean most, possibly one that was added before; its weight is proportional to how often it was added.

    Parameters
    ----------
    predictions : sequence of sequence of array
        Predictions of each candidate for each target, on rows that its networks were not trained on.
    mean_loss : callable
        Function from predictions of all targets to their loss.
    leaders, rounds : int

    Examples
    --------
    Two candidates whose errors cancel, and an uninformative one:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth, wrong = rng.normal(size=200), rng.normal(size=200)
    >>> predictions = [[truth + wrong], [truth - wrong], [np.full(200, 9.0)]]
    >>> greedy_weights(predictions, lambda p: ((p[0] - truth) ** 2).mean(), leaders=0).round(2)
    array([0.5, 0.5, 0. ])
    """
    counts = np.zeros(len(predictions))
    total: list[NDArray[np.float64]] = [np.zeros_like(values) for values in predictions[0]]
    for size in range(1, rounds + 1):
        losses = [
            mean_loss([(t + p) / size for t, p in zip(total, candidate, strict=True)]) for candidate in predictions
        ]
        best = int(np.argmin(losses))
        counts[best] += 1
        total = [t + p for t, p in zip(total, predictions[best], strict=True)]
    if not leaders:
        return counts / rounds
    first = np.argsort([mean_loss(candidate) for candidate in predictions], kind="stable")[:leaders]
    share = np.zeros(len(predictions))
    share[first] = 1 / len(first)
    return np.asarray((counts / rounds + share) / 2)


# --- reasons to doubt a fit ----------------------------------------------------------------------------


def _few_rows(n_rows: int, n_columns: int) -> str | None:
    """Return a warning about few rows: fewer than 50, or hardly more than columns."""
    if n_rows >= max(_FEW_ROWS, n_columns + _ROWS_BEYOND_COLUMNS):
        return None
    return (
        f"{n_rows} rows for {n_columns} column{'' if n_columns == 1 else 's'} are few: scores and edges may change "
        "with other rows; compare several folds or seeds"
    )


def _rare_classes(target: ClassTarget, counts: NDArray[np.int64]) -> str | None:
    """Return a warning about classes with fewer than ten rows, given the number of rows of each class."""
    rare = np.flatnonzero(counts < _ROWS_OF_A_CLASS)
    if len(rare) == 0:
        return None
    order = rare[np.argsort(counts[rare], kind="stable")]
    labels = target.classes.tolist()
    named = [f"{labels[k]!r} ({counts[k]} row{'' if counts[k] == 1 else 's'})" for k in order[:_MOST_NAMED]]
    more = f" and {len(rare) - _MOST_NAMED} more" if len(rare) > _MOST_NAMED else ""
    return (
        f"{target.name!r} has rare classes, {', '.join(named)}{more}: they are hard to learn and to score; merge "
        "them or collect more rows"
    )


def _class_without_rows(target: ClassTarget, counts: Sequence[NDArray[np.int64]]) -> str | None:
    """Return a warning about the first class without training rows in a fold, given the counts of each fold."""
    for fold, fold_counts in enumerate(counts):
        if (fold_counts == 0).any():
            label = target.classes.tolist()[int(np.argmax(fold_counts == 0))]
            return (
                f"fold {fold} has no training rows of class {label!r} of {target.name!r}, so it cannot predict it: use "
                "a stratified splitter"
            )
    return None


def _end_of_grid(candidates: Sequence[Sequence[Regularizer]], scores: NDArray[np.float64], best: int) -> str | None:
    """Return a warning if the chosen beta is the largest or smallest tried, and clearly better than its neighbour.

    Clearly better means by more than two standard errors of the difference over folds. Scores have shape (candidates,
    folds); higher is better. Only candidates that differ from the chosen one only in beta are compared.
    """
    castles = [castle_of(candidate) for candidate in candidates]
    chosen = castles[best]
    if chosen is None:
        return None
    beta = float(chosen.reg_beta)
    at = {
        float(castle.reg_beta): i
        for i, (castle, candidate) in enumerate(zip(castles, candidates, strict=True))
        if castle is not None and _with_beta(candidate, castle, chosen) == tuple(candidates[best])
    }
    betas = sorted(at)
    if len(betas) < 2 or beta == 0 or beta not in (betas[0], betas[-1]):
        return None
    end, further, neighbour = (
        ("largest", "larger", betas[-2]) if beta == betas[-1] else ("smallest", "smaller", betas[1])
    )
    if not np.isfinite(scores[[best, at[neighbour]]]).all():
        return None
    gain = scores[best] - scores[at[neighbour]]
    if gain.mean() <= _CLEARLY * gain.std(ddof=1) / np.sqrt(len(gain)):
        return None
    return f"reg_beta={beta:g} is the {end} value tried and clearly better than {neighbour:g}: try {further} values too"


def _with_beta(candidate: Sequence[Regularizer], castle: Castle, like: Castle) -> tuple[Regularizer, ...]:
    """Replace the beta of a candidate's CASTLE by that of another one."""
    return tuple(replace(castle, reg_beta=like.reg_beta) if part is castle else part for part in candidate)


def _no_skill(held_out: HeldOutPredictions, targets: Sequence[Target]) -> str | None:
    """Return a warning about targets with predictions of held-out rows no better than a constant."""
    pairs = zip(targets, held_out.truth, held_out.predicted, strict=True)
    without = [target for target, truth, predicted in pairs if _is_no_better(target, truth, predicted)]
    if not without:
        return None
    means = [
        "the class shares"
        if isinstance(target, ClassTarget)
        else "the mean (R² below 0)"
        if target.loss is None
        else "a constant (by the target's own loss)"
        for target in without
    ]
    return (
        f"predictions of {', '.join(repr(target.name) for target in without)} on held-out rows are no better than "
        f"{' and '.join(dict.fromkeys(means))}: train longer, or add columns"
    )


def _is_no_better(target: Target, truth: NDArray[Any], predicted: NDArray[np.float64]) -> bool:
    if not isinstance(target, ClassTarget):
        constant = target.predicted(target.constant(truth))
        losses = (target.errors_of_predictions(values, truth).mean() for values in (predicted, constant))
        return float(next(losses)) >= float(next(losses))
    codes = target.codes(truth)
    shares = np.bincount(codes, minlength=predicted.shape[1]) / len(codes)
    probabilities = np.maximum(predicted[np.arange(len(codes)), codes], 1e-12)
    return float(np.log(probabilities).mean()) <= float(np.log(shares[codes]).mean())
