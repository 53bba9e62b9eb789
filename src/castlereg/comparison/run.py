"""Compare methods on a table: same rows, same folds, same starting weights, each method's grid in one run."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score
from tqdm.auto import tqdm

from castlereg.comparison.methods import Candidates, checked_methods
from castlereg.comparison.result import Comparison
from castlereg.data.preprocessing import Preprocessing
from castlereg.data.splits import Split, splits_with_test_rows
from castlereg.data.table import Table
from castlereg.data.task import inferred_task
from castlereg.estimators.base import NetworkEstimator
from castlereg.estimators.classifier import NetworkClassifier
from castlereg.estimators.fitted_network import FittedNetwork
from castlereg.estimators.regressor import NetworkRegressor
from castlereg.options import check_choice, check_fraction, check_integer, did_you_mean
from castlereg.regularizers import Regularizer
from castlereg.regularizers.protocol import check_regularizers
from castlereg.selection import FoldGrid, train_folds

Task = Literal["auto", "regression", "classification"]
_NETWORK_OPTIONS = (
    "hidden_layer_sizes",
    "categorical_features",
    "scaling",
    "learning_rate",
    "batch_size",
    "max_epochs",
    "patience",
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
    input_init: str | Mapping[str, str] = "small",
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
    progress: bool | None = None,
    **network: Any,
) -> Comparison:
    """Train every method on the same folds and score it on the same held-out rows, as the paper does.

    A random part of the rows is held out. The rest is cut into folds; each fold's network stops by the rows that the
    fold leaves out and keeps its best epoch. Of each method the regularizer strength with the lowest mean validation
    loss is taken, and its fold networks are scored on the held-out rows. Networks of one fold start from the same
    weights and see the same batches, whatever the method.

    Parameters
    ----------
    X : DataFrame of pandas or polars, or array-like of shape (rows, features)
        With text, gaps and dates, as in :meth:`castlereg.CastleRegressor.fit`.
    y : array-like of shape (rows,)
    methods : "paper", sequence of str, or mapping
        The paper's ten (:data:`castlereg.comparison.PAPER_METHODS`); some of them by name; or your own, such as
        ``{"both": [Dropout(0.2), L2(0.01)], "L2": [[L2(0.1)], [L2(0.01)]]}``: regularizers, or candidates to choose
        among.
    cv : int or splitter
        Folds; a scikit-learn splitter is used as it is.
    n_splits : int
        Random choices of the held-out rows, each with folds of its own. One split moves the error more
        than most methods do: five tell more than one.
    test_size : float or int
        Share of rows held out, or how many.
    task : {"auto", "regression", "classification"}
        By default as the values of ``y`` suggest: text, booleans and few whole numbers that repeat are classes.
    input_init : {"small", "glorot"} or mapping of method to these
        Scale of the input layers' start; methods that a mapping does not name start small.
    random_state : int, RandomState, Generator or None
        Decides splits, folds, starting weights and batches.
    progress : bool, optional
        Show a progress bar; by default in a terminal or notebook.
    **network
        Options of :class:`castlereg.NetworkRegressor`: ``hidden_layer_sizes``, ``categorical_features``, ``scaling``,
        ``learning_rate``, ``batch_size``, ``max_epochs``, ``patience``.

    Returns
    -------
    Comparison

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
    chosen = checked_methods(methods)
    starts = _checked_starts(input_init, chosen)
    check_choice("task", task, ["auto", "regression", "classification"])
    check_integer("n_splits", n_splits)
    if isinstance(test_size, int | np.integer) and not isinstance(test_size, bool):
        check_integer("test_size", test_size)
    else:
        check_fraction("test_size", test_size)
    problem = _Problem.prepare(X, y, inferred_task(y)[0] if task == "auto" else task, random_state, network)
    for name, candidates in chosen.items():
        for candidate in candidates:
            _check_candidate(name, candidate, problem.sizes)
    splits = problem.splits(cv, n_splits, test_size)
    show = progress if progress is not None else sys.stderr.isatty() or "ipykernel" in sys.modules

    scores, by_split, seconds = [], [], {}
    with tqdm(chosen.items(), desc="comparing", unit="method", disable=not show) as bar:
        for name, candidates in bar:
            bar.set_postfix_str(name)
            begun = time.perf_counter()
            for row, averaged in problem.run(name, candidates, splits, starts[name], show):
                scores.append(row)
                by_split.append(averaged)
            seconds[name] = time.perf_counter() - begun
    folds = len(splits[0].folds)
    held_out = len(splits[0].test_rows)
    return Comparison(
        pd.concat(scores, ignore_index=True),
        pd.DataFrame(by_split),
        pd.Series(seconds, name="seconds"),
        "AUROC" if problem.is_classification else "MSE",
        f"{len(chosen)} methods on {len(problem.cells)} rows x {problem.cells.shape[1]} features, "
        f"{'classification' if problem.is_classification else 'regression'} of {problem.name!r}: "
        f"{folds} folds, {held_out} rows held out, {n_splits} random split{'s' if n_splits > 1 else ''}.",
    )


def held_out_splits(
    X: ArrayLike, y: ArrayLike, *, task: Task, cv: Any, n_splits: int, test_size: float | int, random_state: int
) -> list[Split]:
    """Return the rows that :func:`compare` would hold out and its folds, for methods of other packages."""
    problem = _Problem.prepare(X, y, inferred_task(y)[0] if task == "auto" else task, random_state, {})
    return problem.splits(cv, n_splits, test_size)


@dataclass(frozen=True)
class _Problem:
    """A checked and encoded table, and what scoring needs."""

    model: NetworkEstimator
    cells: NDArray[np.float64]
    target: NDArray[Any]
    name: str
    table: Table
    coding: Preprocessing
    seed: np.random.SeedSequence

    @classmethod
    def prepare(cls, X: ArrayLike, y: ArrayLike, task: str, random_state: Any, network: dict[str, Any]) -> _Problem:
        for option in set(network) - set(_NETWORK_OPTIONS):
            known = [*_NETWORK_OPTIONS, *(name for name in inspect.signature(compare).parameters if name != "network")]
            hint = did_you_mean(option, known) or f"; there are {', '.join(known)}"
            raise TypeError(f"compare() has no option {option!r}{hint}")
        make = NetworkClassifier if task == "classification" else NetworkRegressor
        model: NetworkEstimator = make(random_state=random_state, **network)
        model._check_options()
        rows, names = model._read(X, y)
        if len(rows.targets) > 1:
            raise ValueError(f"compare() takes one target, and y has {len(rows.targets)}: compare them one by one")
        coding, (rows,) = model._coded(rows, None, names)
        assert rows.index is not None  # rows are in their own order
        rows = rows.take(np.argsort(rows.index))  # in the user's order
        cells = rows.columns.cells
        return cls(model, cells, rows.targets[0], names[-1], coding.table(rows), coding, model._seed())

    @property
    def is_classification(self) -> bool:
        return isinstance(self.model, NetworkClassifier)

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.model._sizes(self.cells.shape[1])

    def splits(self, cv: Any, n_splits: int, test_size: float | int) -> list[Split]:
        """Hold test rows out and cut the others into folds."""
        return splits_with_test_rows(
            cv,
            self.target,
            n_splits=n_splits,
            test_size=test_size,
            is_classification=self.is_classification,
            seed=self.seed,
        )

    def run(
        self, method: str, candidates: Candidates, splits: list[Split], input_init: str, progress: bool
    ) -> Iterator[tuple[pd.DataFrame, dict[str, Any]]]:
        """Train a method on all folds of all splits at once; yield the scores of each split."""
        grid = train_folds(
            self.table,
            [fold for split in splits for fold in split.folds],
            candidates=candidates,
            seeds=self.seed.entropy,  # type: ignore[arg-type]
            hidden_layer_sizes=self.sizes,
            schedule=self.model._schedule(),
            input_init=input_init,
            progress=progress,
        )
        first = 0
        for number, split in enumerate(splits):
            of_split = np.arange(first, first + len(split.folds))
            first += len(split.folds)
            yield self._scored(method, number, split, grid.of(of_split))

    def _scored(self, method: str, number: int, split: Split, grid: FoldGrid) -> tuple[pd.DataFrame, dict[str, Any]]:
        fitted = FittedNetwork.from_stack(grid.chosen(), self.coding)
        outputs = fitted.target_outputs(self.cells[split.test_rows])
        predicted = self.coding.targets[0].decode(outputs[:, :, 0])
        scores = pd.DataFrame(
            {
                "method": method,
                "split": number,
                "fold": np.arange(len(split.folds)),
                "score": [self._score(one, split) for one in predicted],
                "validation_loss": grid.losses[grid.best],
            }
        )
        chosen = _what_differs(grid.candidates, grid.best)
        averaged = self._score(predicted.mean(axis=0), split)
        unit = 1.0 if self.is_classification else float(np.var(self.target[split.rest]))
        return scores, {"method": method, "split": number, "score": averaged, "chosen": chosen, "unit": unit}

    def _score(self, predicted: NDArray[np.float64], split: Split) -> float:
        truth = self.target[split.test_rows]
        if not self.is_classification:
            return float(np.mean((predicted - truth) ** 2) / np.var(self.target[split.rest]))
        if predicted.shape[1] == 2:
            return float(roc_auc_score(truth, predicted[:, 1]))
        classes = np.unique(self.target)
        return float(roc_auc_score(truth, predicted, multi_class="ovr", labels=classes))


def _what_differs(candidates: Sequence[tuple[Regularizer, ...]], best: int) -> str:
    """Write the strengths that were chosen, and none that were not up for choice."""
    by_candidate = [
        {str(path[-1].name): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(candidate)}
        for candidate in candidates
    ]
    chosen = by_candidate[best]
    differing = [name for name in chosen if len({one[name] for one in by_candidate}) > 1]
    return ", ".join(f"{name}={chosen[name]:g}" for name in differing)


def _check_candidate(name: str, candidate: Any, sizes: tuple[int, ...]) -> None:
    try:
        check_regularizers(candidate, sizes)
    except ValueError as error:
        raise ValueError(f"method {name!r}: {error}") from error


def _checked_starts(input_init: str | Mapping[str, str], methods: Mapping[str, Any]) -> dict[str, str]:
    if isinstance(input_init, str):
        input_init = dict.fromkeys(methods, input_init)
    for name, start in input_init.items():
        if name not in methods:
            check_choice("method in input_init", name, methods)
        check_choice("input_init", start, ["small", "glorot"])
    return {name: input_init.get(name, "small") for name in methods}
