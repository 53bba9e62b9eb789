"""One function for every fit: plain, cross-validated, or from a file that is read in chunks."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from castlereg.data.preprocessing import Preprocessing
from castlereg.data.rows import Rows
from castlereg.data.splits import Fold
from castlereg.data.table import Table
from castlereg.data.targets import ClassTarget
from castlereg.fitted.graph import learned_graph
from castlereg.fitted.model import FittedModel, FoldBook
from castlereg.fitted.networks import Networks
from castlereg.fitted.threshold import HeldOut
from castlereg.graph.column_traits import ColumnTraits
from castlereg.layout import EdgeRules
from castlereg.regularizers.protocol import check_regularizers
from castlereg.search.grid import Candidate, FoldGrid, choose, strengths_of, train_folds
from castlereg.training import Plan
from castlereg.training.sources import Source

Score = Callable[[FittedModel, NDArray[np.int64]], float]


@dataclass(frozen=True)
class CrossValidation:
    """How candidates are compared.

    Parameters
    ----------
    cv : int, splitter or iterable of splits
    y, groups : array-like, optional
        For the splitter, in the user's order.
    is_classifier : bool
    score : callable, optional
        Score of a model on some of the user's rows, higher is better; by default the negative validation loss.
    one_standard_error : bool
        Choose the strongest candidate within one standard error of the best.
    """

    cv: Any
    y: Any = None
    groups: ArrayLike | None = None
    is_classifier: bool = False
    score: Score | None = None
    one_standard_error: bool = False


@dataclass(frozen=True)
class FoldRows:
    """The folds of cross-validation, which :class:`castlereg.fitted.FoldBook` keeps."""

    folds: list[Fold]  # in the user's order of rows
    seeds: list[int]
    left_out: Callable[[int], Rows]  # coded rows that a fold leaves out


@dataclass(frozen=True)
class Assignment(ABC):
    """Rows prepared for training: encoded, and assigned to networks."""

    preprocessing: Preprocessing
    source: Table | Source
    folds: Sequence[Fold]  # training and validation rows of each network of a candidate
    seeds: Sequence[np.random.SeedSequence]  # of each
    fold_rows: FoldRows | None = field(default=None, kw_only=True)  # of cross-validation

    @abstractmethod
    def held_out(self, networks: NDArray[np.int64]) -> HeldOut:
        """Return the validation rows of some networks."""

    @abstractmethod
    def some_rows(self, most: int) -> Table:
        """Return at most ``most`` rows, evenly spaced."""

    @abstractmethod
    def traits(self) -> ColumnTraits | None:
        """Measure the columns and targets that are numbers, in the units of the table."""


class Data(Protocol):
    """Rows to learn from, in memory or in a file."""

    @property
    def names(self) -> Sequence[str]:
        """Names of features and targets."""

    def prepared(self, request: FitRequest) -> AbstractContextManager[Assignment]:
        """Encode the rows, and assign them to networks."""


@dataclass(frozen=True)
class FitRequest:
    """What to fit, and how.

    Parameters
    ----------
    data : Data
        :class:`castlereg.search.table_data.TableData` or :class:`castlereg.search.file_data.FileData`.
    plan : Plan
    candidates : sequence of tuple of Regularizer
        To choose among; one without cross-validation.
    seed : SeedSequence
    edges : EdgeRules, optional
        Which edges may be and which must be, in the user's order.
    clipped : bool
        Whether numeric columns are clipped.
    validation_fraction : float
        Share of rows held out for early stopping, without cross-validation.
    n_members : int
        Networks with different seeds, without cross-validation.
    bootstrap : bool
        Whether each of them has its own training rows, drawn with replacement.
    cross_validation : CrossValidation, optional
    verbose : bool
    """

    data: Data
    plan: Plan
    candidates: Sequence[Candidate]
    seed: np.random.SeedSequence
    edges: EdgeRules | None = None
    clipped: bool = False
    validation_fraction: float = 0.1
    n_members: int = 1
    bootstrap: bool = False
    cross_validation: CrossValidation | None = None
    verbose: bool = False


def fit(request: FitRequest) -> FittedModel:
    """Train the networks that a request asks for, choose among candidates, and learn the graph."""
    for candidate in request.candidates:
        check_regularizers(candidate, request.plan.hidden_layer_sizes)
    with request.data.prepared(request) as rows:
        _check_required(rows.preprocessing, request.edges)
        begun = time.perf_counter()
        grid = train_folds(
            rows.source,
            rows.folds,
            request.plan,
            candidates=request.candidates,
            seeds=rows.seeds,
            progress=request.verbose,
        )
        seconds = (time.perf_counter() - begun) / grid.losses.size
        rules, best, results = request.cross_validation, 0, None
        if rules is not None:
            scores = -grid.losses if rules.score is None else _scores(rules.score, grid, rows)
            strengths = [strengths_of(candidate) for candidate in grid.candidates]
            order = [tuple(named.values()) for named in strengths] if rules.one_standard_error else None
            best, results = choose(scores, order), _results(_searched(strengths), scores, grid.losses, seconds)
        trained = grid.trained(best)  # a network may have failed, with a warning
        stack = grid.networks(best, trained)
        networks = Networks.of(rows.preprocessing, stack)
        graph = None
        if networks.has_all_nodes:
            graph = learned_graph(
                networks,
                request.data.names,
                grid.candidates[best],
                held_out=rows.held_out(trained),
                some_rows=rows.some_rows,
                traits=rows.traits(),
                edges=request.edges,
            )
        book = None
        if results is not None and rows.fold_rows is not None:
            folds, seeds, left_out = rows.fold_rows.folds, rows.fold_rows.seeds, rows.fold_rows.left_out
            errors = [_errors(networks.of_members(np.array([i])), left_out(fold)) for i, fold in enumerate(trained)]
            book = FoldBook(folds, seeds, trained, errors, results, best, grid.candidates[best])
        return FittedModel(networks, stack.history, float(stack.validation_loss.mean()), graph, book)


def _scores(score: Score, grid: FoldGrid, rows: Assignment) -> NDArray[np.float64]:
    """Score the network of every fold on the rows it leaves out; one that did not train has no score."""
    assert rows.fold_rows is not None
    scores = np.full(grid.losses.shape, -np.inf)
    for candidate, fold in np.argwhere(np.isfinite(grid.losses)):
        stack = grid.networks(candidate, np.array([fold]))
        model = FittedModel(Networks.of(rows.preprocessing, stack), stack.history, float(stack.validation_loss[0]))
        scores[candidate, fold] = score(model, rows.fold_rows.folds[fold][1])
    return scores


def _errors(networks: Networks, rows: Rows) -> list[NDArray[np.float64]]:
    """Return how far a network is off on coded rows, for each target; see :class:`castlereg.fitted.FoldBook`."""
    errors = []
    predicted = networks.predict(rows.columns.cells)
    for target, values, (of_target,) in zip(networks.preprocessing.targets, rows.targets, predicted, strict=True):
        if isinstance(target, ClassTarget):
            errors.append(1 - of_target[np.arange(len(values)), target.codes(values)])
        else:
            errors.append(np.abs(of_target - values))
    return errors


def _check_required(preprocessing: Preprocessing, edges: EdgeRules | None) -> None:
    """Reject required edges of constant columns, which have no edges."""
    for k, column in enumerate(preprocessing.schema):
        if edges is not None and column.constant and (edges.required[k].any() or edges.required[:, k].any()):
            raise ValueError(f"an edge of {column.name!r} is required, but the column is constant")


def _searched(strengths: list[dict[str, float]]) -> list[dict[str, float]]:
    """Keep the strengths of CASTLE, which are options of its estimators, and those that differ between candidates."""
    differ = {name for named in strengths for name in named if len({other.get(name) for other in strengths}) > 1}
    return [{name: named[name] for name in named if "." not in name or name in differ} for named in strengths]


def _results(
    strengths: list[dict[str, float]], scores: NDArray[np.float64], losses: NDArray[np.float64], seconds: float
) -> dict[str, Any]:
    """Lay the scores out as scikit-learn's searches do."""
    zeros = np.zeros(len(scores))
    results: dict[str, Any] = {
        "mean_fit_time": zeros + seconds,
        "std_fit_time": zeros,
        "mean_score_time": zeros,
        "std_score_time": zeros,
    }
    for name in dict.fromkeys(name for named in strengths for name in named):
        values = [named.get(name, np.nan) for named in strengths]
        results[f"param_{name}"] = np.ma.masked_invalid(np.array(values))
    results["params"] = strengths
    for fold in range(scores.shape[1]):
        results[f"split{fold}_test_score"] = scores[:, fold]
    results["mean_test_score"], results["std_test_score"] = scores.mean(axis=1), scores.std(axis=1)
    results["rank_test_score"] = rankdata(-results["mean_test_score"], method="min").astype(np.int32)
    results["mean_validation_loss"] = losses.mean(axis=1)
    return results
