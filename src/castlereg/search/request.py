"""The request for a fit, and the interface of its data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castlereg.causal.graph.sortability import ColumnTraits
from castlereg.fitted.held_out import HeldOut
from castlereg.fitted.model import FittedModel
from castlereg.layout import EdgeRules
from castlereg.search.grid import Candidate
from castlereg.table.preprocessing import Preprocessing
from castlereg.table.rows import Fold, Rows
from castlereg.table.table import Table
from castlereg.training import Plan
from castlereg.training.callbacks import Callback
from castlereg.training.loop import OnInterrupt
from castlereg.training.sources import Source

Score = Callable[[FittedModel, NDArray[np.int64]], float]


@dataclass(frozen=True)
class CrossValidation:
    """How candidates are compared."""

    cv: Any  # number of folds, splitter or iterable of splits
    y: Any = None  # for the splitter, in the user's order
    groups: ArrayLike | None = None  # for the splitter, in the user's order
    is_classifier: bool = False
    score: Score | None = None  # of a model on some of the user's rows, higher is better; None for the validation loss
    one_standard_error: bool = False  # choose the strongest candidate within one standard error of the best
    repeats: int = 1  # number of new sets of folds, or of repeated trainings of a splitter's folds
    pool: bool = False  # whether to search a pool and blend its candidates, instead of those of the request
    causal: bool = True  # whether the pool includes the terms of CASTLE
    time_limit: float | None = None  # of a pool, in seconds


@dataclass(frozen=True)
class FoldRows:
    """The folds of cross-validation, which :class:`castlereg.fitted.FoldBook` stores."""

    folds: list[Fold]  # in the user's order of rows
    seeds: list[int]
    left_out: Callable[[int], Rows]  # coded rows that a fold leaves out


@dataclass(frozen=True)
class Assignment(ABC):
    """Rows prepared for training: encoded, and assigned to networks."""

    preprocessing: Preprocessing
    source: Table | Source
    folds: Sequence[Fold]  # training and validation rows of each network of a candidate
    seeds: Sequence[np.random.SeedSequence]  # of each network
    fold_rows: FoldRows | None = field(default=None, kw_only=True)  # of cross-validation

    @property
    def training_rows(self) -> Rows | None:
        """Rows in memory, coded by the schema; None for those of a file."""
        return None

    def with_edges(self, edges: EdgeRules) -> Self:
        """Return the same rows with edge rules, in the order of the nodes."""
        if isinstance(self.source, Table):
            return replace(self, source=replace(self.source, edges=edges))
        return replace(self, source=self.source.with_edges(edges))

    @abstractmethod
    def held_out(self, networks: NDArray[np.int64]) -> HeldOut:
        """Return the validation rows of some networks."""

    @abstractmethod
    def some_rows(self, most: int) -> Table:
        """Return at most ``most`` rows, evenly spaced."""

    @abstractmethod
    def traits(self) -> ColumnTraits | None:
        """Measure the columns and targets that are numbers, in the units of the table."""

    @abstractmethod
    def counts(self, fold: int | None = None) -> list[NDArray[np.int64]]:
        """Return the number of rows of each class of every target, or of all rows; of a fold, of its training rows."""


class Data(Protocol):
    """Rows to learn from, in memory or in a file."""

    @property
    def names(self) -> Sequence[str]:
        """Names of features and targets."""

    def prepared(self, request: FitRequest) -> AbstractContextManager[Assignment]:
        """Encode the rows, and assign them to networks."""


@dataclass(frozen=True)
class FitRequest:
    """The data, the training plan and the candidates of a fit."""

    data: Data  # castlereg.search.fit.TableData or castlereg.search.file_data.FileData
    plan: Plan
    candidates: Sequence[Candidate]  # to choose among; a single one without cross-validation
    seed: np.random.SeedSequence
    edges: EdgeRules | None = None  # in the user's order
    clipped: bool = False  # whether numeric columns are clipped
    validation_fraction: float = 0.1  # share of rows held out for early stopping, without cross-validation
    n_members: int = 1  # networks with different seeds, without cross-validation
    bootstrap: bool = False  # whether each network has its own bootstrap sample of the training rows
    cross_validation: CrossValidation | None = None
    refit: bool = False  # whether to train new networks, without CASTLE, on the columns that it selected
    verbose: bool = False
    on_interrupt: OnInterrupt = "raise"  # whether Ctrl-C raises, or ends the fit with the best networks so far
    callbacks: Sequence[Callback] = ()  # called after epochs; they can stop networks
