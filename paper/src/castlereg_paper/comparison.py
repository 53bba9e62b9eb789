"""Compare regularizers on a table: same rows, same folds, same initial weights, and the grid of a method in one run."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import joblib
import numpy as np
import pandas as pd
import scipy.stats
from numpy.typing import ArrayLike
from tqdm.auto import tqdm

from castlereg import Recipe
from castlereg.notices import shows_progress
from castlereg.options import check_choice, did_you_mean
from castlereg.regularizers import L1, L2, Autoencoder, BatchNorm, Castle, DeepLasso, Dropout, InputNoise, MixUp, Tangos
from castlereg.regularizers.protocol import check_regularizers
from castlereg_paper.framework import Record, Results, Settings, item_key, run_units
from castlereg_paper.markdown import markdown_table
from castlereg_paper.protocol import Candidates, Problem, Split

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LATER_METHODS", "PAPER_METHODS", "Comparison", "Significance", "compare"]

# --- methods -------------------------------------------------------------------------------------------

CASTLE_BETAS = (0.001, 0.01, 0.1, 1.0)

# The paper's grids ("Benchmarks"); for the noise it prints {0.1, 0.01, 0.01}. Each method is a sequence of candidates
# that differ in strength; the one with the lowest validation loss is chosen.
PAPER_METHODS: dict[str, Candidates] = {
    "Baseline": ((),),
    "L1": ((L1(0.1),), (L1(0.01),), (L1(0.001),)),
    "L2": ((L2(0.1),), (L2(0.01),), (L2(0.001),)),
    "Dropout 0.2": ((Dropout(0.2),),),
    "Dropout 0.5": ((Dropout(0.5),),),
    "SAE": ((Autoencoder(),),),
    "Batch Norm": ((BatchNorm(),),),
    "Input Noise": ((InputNoise(0.1),), (InputNoise(0.01),)),
    "MixUp": ((MixUp(),),),
    "CASTLE": tuple((Castle(beta),) for beta in CASTLE_BETAS),
}

# Published after the paper, with as many candidates as CASTLE and L1. The strengths are within the ranges that their
# authors use; see the notes of the two regularizers.
LATER_METHODS: dict[str, Candidates] = {
    "TANGOS": tuple((Tangos(*strengths),) for strengths in ((0.1, 0.1), (0.1, 1.0), (1.0, 0.1), (1.0, 1.0))),
    "Deep Lasso": ((DeepLasso(1.0),), (DeepLasso(0.1),), (DeepLasso(0.01),)),
}

_METHODS = PAPER_METHODS | LATER_METHODS


def checked_methods(methods: Any, hidden_layer_sizes: tuple[int, ...] | None = None) -> dict[str, Candidates]:
    """Return the candidates of each method in the option ``methods``; check them for a network of these widths.

    >>> checked_methods(["Baseline", "Dropout 0.2"])
    {'Baseline': ((),), 'Dropout 0.2': ((Dropout(rate=0.2),),)}
    >>> checked_methods({"both": [Dropout(0.2), L2(0.01)]})
    {'both': ((Dropout(rate=0.2), L2(strength=0.01)),)}
    """
    if isinstance(methods, str):
        methods = PAPER_METHODS if methods == "paper" else [methods]
    if isinstance(methods, Mapping):
        grids = {str(name): value for name, value in methods.items()}
    elif isinstance(methods, Iterable):
        grids = {name: _method(name) for name in methods}
    else:
        raise ValueError(
            f"methods={methods!r} must be 'paper', a sequence of method names, or a mapping of names to regularizers"
        )
    if not grids:
        raise ValueError("methods is empty; pass at least one method")
    return {name: _candidates(name, grid, hidden_layer_sizes) for name, grid in grids.items()}


def _method(name: Any) -> Candidates:
    if isinstance(name, str) and name in _METHODS:
        return _METHODS[name]
    raise ValueError(
        f"unknown method {name!r}{did_you_mean(str(name), _METHODS, cutoff=0.4) or '.'} "
        f"The paper's methods are {', '.join(PAPER_METHODS)}; later ones are {', '.join(LATER_METHODS)}. "
        "For other regularizers, pass a mapping such as {'mine': [Dropout(0.2), L2(0.01)]}."
    )


def _candidates(name: str, value: Any, sizes: tuple[int, ...] | None) -> Candidates:
    is_grid = isinstance(value, Sequence) and value and all(isinstance(item, list | tuple) for item in value)
    try:
        candidates = tuple(check_regularizers(candidate, sizes) for candidate in (value if is_grid else [value]))
    except ValueError as error:
        raise ValueError(f"method {name!r}: {error}") from error
    if len({tuple(map(type, candidate)) for candidate in candidates}) > 1:
        raise ValueError(
            f"method {name!r} has candidates with different regularizers; candidates may differ only in strength, so "
            "give each combination its own name"
        )
    return candidates


# --- the result ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Significance:
    """A test of the hypothesis that all methods are equally good."""

    test: str
    p_value: float  # probability of ranks at least this far apart if all methods were equally good
    critical_difference: float  # of mean ranks at level 0.05 (Nemenyi); NaN if only two methods are compared
    level_with_best: list[str]  # methods whose mean rank is within the critical difference of the best
    blocks: int  # number of folds or splits with ranks
    assumptions: str  # of the test, and how well they hold

    def __str__(self) -> str:
        return self.test if np.isnan(self.p_value) else f"{self.test}: p = {self.p_value:.2g}. {self.assumptions}"


_SIGNIFICANT = 0.05
_ASSUMPTIONS = {
    "fold": "The test assumes that folds are independent. They are not: their networks share most training rows and "
    "are scored on the same held-out rows, so p is too small. It tests whether the order is more than noise between "
    "folds of this table, not whether it holds on another table.",
    "split": "The test assumes that random splits are independent. They share rows, so p is somewhat too small, and it "
    "applies to this table only.",
}


def significance(ranks: pd.DataFrame, by: Literal["fold", "split"]) -> Significance:
    """Test ranks, where 1 is the best: one row per fold or split, depending on ``by``, and one column per method.

    >>> ranks = pd.DataFrame({"a": [1] * 8, "b": [2] * 8, "c": [3] * 8})
    >>> result = significance(ranks, "fold")
    >>> result.level_with_best, round(result.p_value, 5)
    (['a', 'b'], 0.00034)
    """
    blocks, methods = ranks.shape
    assumptions, means = _ASSUMPTIONS[by], ranks.mean()
    if methods < 2 or blocks < 2:
        test = f"No significance test: it needs at least two methods and two {by}s."
        return Significance(test, np.nan, np.nan, list(ranks), blocks, assumptions)
    differ = (ranks.nunique(axis=1) > 1).any()
    if methods == 2:
        difference = ranks.iloc[:, 0] - ranks.iloc[:, 1]
        p = scipy.stats.binomtest(int((difference < 0).sum()), int((difference != 0).sum())).pvalue if differ else 1.0
        level = list(ranks) if p > _SIGNIFICANT else [means.idxmin()]
        return Significance(f"Sign test over {blocks} {by}s", float(p), np.nan, level, blocks, assumptions)
    p = scipy.stats.friedmanchisquare(*ranks.to_numpy().T).pvalue if differ else 1.0
    quantile = scipy.stats.studentized_range.ppf(1 - _SIGNIFICANT, methods, np.inf) / np.sqrt(2)
    critical = float(quantile * np.sqrt(methods * (methods + 1) / (6 * blocks)))
    level = list(means.index[means <= means.min() + critical])
    return Significance(f"Friedman test over {blocks} {by}s", float(p), critical, level, blocks, assumptions)


_POINTS, _MEAN, _LEVEL = "#9aa7b4", "#d9480f", "#ffe8cc"


@dataclass(frozen=True)
class Comparison:
    """Methods compared on the same rows, folds and initial weights.

    Attributes
    ----------
    scores : DataFrame
        One row per method, split and fold: the score of the fold's network on the held-out rows (NaN if it never had a
        finite loss), and its validation loss.
    by_split : DataFrame
        One row per method and split: the score of the mean prediction of the fold networks, the strengths chosen by
        mean validation loss, and the unit of MSE, which is the variance of the target.
    seconds : Series
        Wall time of each method, including compilation.
    metric : {"MSE", "AUROC"}
        MSE in units of the target's variance, lower is better; AUROC, higher is better.
    about : str
        A sentence on the table, the task, the folds and the splits.
    """

    scores: pd.DataFrame
    by_split: pd.DataFrame
    seconds: pd.Series
    metric: Literal["MSE", "AUROC"]
    about: str

    @property
    def higher_is_better(self) -> bool:
        """Whether higher scores are better."""
        return self.metric == "AUROC"

    def ranks(self, by: Literal["fold", "split"] = "fold") -> pd.DataFrame:
        """Rank the methods in each fold, or by the mean score in each split: one column per method.

        Rank 1 is the best; equal scores share a rank, and networks without a score rank last.
        """
        table = self.scores.pivot(index=["split", "fold"], columns="method", values="score")[list(self.seconds.index)]
        if by == "split":
            table = table.groupby("split").agg(lambda scores: scores.mean(skipna=False))
        ranks = table.rank(axis=1, ascending=not self.higher_is_better, na_option="bottom")
        ranks.columns.name = None
        return ranks

    def significance(self, by: Literal["fold", "split"] = "fold") -> Significance:
        """Test whether the ranks differ by more than chance; the result also states the assumptions of the test."""
        return significance(self.ranks(by), by)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per method, the best mean rank first.

        The columns are the mean and standard deviation of the fold networks' scores, the score of their mean
        prediction, the mean rank over folds (1 is best), seconds, and the strengths that were chosen most often.
        """
        groups = self.scores.groupby("method", sort=False)["score"]
        splits = self.by_split.groupby("method", sort=False)
        frame = pd.DataFrame(
            {
                self.metric: groups.mean(),
                "sd": groups.std(),
                f"{self.metric} of the mean": splits["score"].mean(),
                "rank": self.ranks().mean(),
                "seconds": self.seconds,
                "chosen": splits["chosen"].agg(_most_frequent),
            }
        )
        frame.index.name = "method"
        return frame.sort_values("rank", kind="stable")

    def to_markdown(self) -> str:
        """Return the table of :meth:`to_frame` as Markdown."""
        return markdown_table(self._rounded().reset_index())

    def plot(self) -> Figure:
        """Draw the scores of all fold networks and the mean ranks, with the best method on top."""
        import matplotlib.pyplot as plt

        frame, test = self.to_frame(), self.significance()
        position = np.arange(len(frame))
        size = (9, 1.6 + 0.34 * len(frame))
        figure, (left, right) = plt.subplots(1, 2, figsize=size, sharey=True, layout="constrained", width_ratios=[3, 2])
        for y, method in zip(position, frame.index, strict=True):
            scores = self.scores.loc[self.scores["method"] == method, "score"]
            left.plot(scores, np.full(len(scores), y), "o", color=_POINTS, ms=4, alpha=0.5, mew=0)
        left.plot(frame[self.metric], position, "D", color=_MEAN, ms=6, label="mean of fold networks")
        averaged = frame[f"{self.metric} of the mean"]
        left.plot(averaged, position, "|", color="black", ms=12, label="average of the networks")
        better = "higher" if self.higher_is_better else "lower"
        left.set_xlabel(f"{self.metric} on held-out rows ({better} is better)")
        left.set_yticks(position, [str(name) for name in frame.index], parse_math=False)
        left.invert_yaxis()
        left.legend(frameon=False, fontsize=8, loc="best")

        best = frame["rank"].min()
        if np.isfinite(test.critical_difference):
            right.axvspan(best, best + test.critical_difference, color=_LEVEL, zorder=0)
            right.set_title("shaded: level with the best (Nemenyi, 5 %)", fontsize=9)
        right.plot(frame["rank"], position, "D", color=_MEAN, ms=6)
        right.set_xlabel("mean rank over folds (1 is best)")
        for ax in (left, right):
            ax.grid(axis="y", color="#eeeeee")
            ax.set_axisbelow(True)
            ax.spines[["top", "right"]].set_visible(False)
        return figure

    def __str__(self) -> str:
        better = "higher" if self.higher_is_better else "lower"
        scale = "" if self.higher_is_better else " in units of the target's variance"
        failed = int(self.scores["score"].isna().sum())
        return (
            f"{self.about}\n\n{self._rounded().to_string()}\n\n"
            f"{self.metric}{scale} of the fold networks on held-out rows, {better} is better; rank 1 is best.\n"
            + (f"{failed} of the networks never had a finite loss: no score, ranked last.\n" if failed else "")
            + f"{self.significance()}"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self._rounded().to_html()

    def _rounded(self) -> pd.DataFrame:
        frame = self.to_frame()
        formats = {"rank": "{:.2f}", "seconds": "{:.1f}", "chosen": "{}"}
        return frame.apply(lambda column: column.map(formats.get(column.name, "{:.4f}").format))


def _most_frequent(chosen: pd.Series) -> str:
    counts = chosen.value_counts()
    times = "" if len(chosen) == 1 or not counts.index[0] else f" ({counts.iloc[0]} of {len(chosen)})"
    return f"{counts.index[0]}{times}"


# --- the comparison ------------------------------------------------------------------------------------

Task = Literal["auto", "regression", "classification"]
_NETWORK_OPTIONS = ("hidden_layer_sizes", "categorical_features", "recipe", "learning_rate", "max_epochs")


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
    random_state: Any = None,
    folder: Path | None = None,
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
        ``"paper"`` means the ten methods of the paper, :data:`PAPER_METHODS`. A sequence names methods, including two
        later ones, ``"TANGOS"`` and ``"Deep Lasso"``. A mapping defines custom methods as regularizers or as lists of
        candidates to choose from: ``{"both": [Dropout(0.2), L2(0.01)], "L2": [[L2(0.1)], [L2(0.01)]]}``.
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
    folder : Path, optional
        Folder for the results, one file per method; a later call with the same table and options continues from them.
    verbose : bool, optional
        Show a progress bar; by default in a terminal or notebook.
    **network
        Options of :class:`castlereg.NetworkRegressor`: ``hidden_layer_sizes``, ``categorical_features``, ``recipe``,
        ``learning_rate``, ``max_epochs``. With ``Recipe(refit=True)``, methods with CASTLE select columns, and networks
        without CASTLE are trained on these.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg_paper import compare
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> result = compare(X, y, methods=["Baseline", "L2", "CASTLE"], cv=3, max_epochs=20, random_state=0)
    >>> sorted(result.to_frame().index)
    ['Baseline', 'CASTLE', 'L2']
    >>> result.ranks().shape  # one row per fold
    (3, 3)
    """
    for option in network.keys() - set(_NETWORK_OPTIONS):
        known = [*_NETWORK_OPTIONS, *(name for name in inspect.signature(compare).parameters if name != "network")]
        hint = did_you_mean(option, known) or f"; the options are {', '.join(known)}"
        raise TypeError(f"compare() has no option {option!r}{hint}")
    problem = Problem.read(X, y, task, random_state, network)
    grids = checked_methods(methods, problem.plan.hidden_layer_sizes)
    splits = problem.splits(cv, n_splits, test_size)
    show = shows_progress(verbose)
    is_here = joblib.effective_n_jobs(None) == 1  # the bars of several processes would overwrite each other
    train = _Train(problem, splits, grids, _checked_starts(input_init, grids), show and is_here)
    folds = [fold for split in splits for fold in split.folds]
    shared = {"inputs": joblib.hash((X, y, folds)), "task": task, "seed": str(problem.seed), "network": repr(network)}
    items = {
        name: {**shared, "method": name, "candidates": repr(grids[name]), "input_init": str(train.starts.get(name))}
        for name in grids
    }
    results = Results(folder)
    keys = {name: item_key(item) for name, item in items.items()}
    with tqdm(
        run_units(train, items.values(), results), "comparing", len(items), unit="method", disable=not show
    ) as bar:
        for done in bar:
            bar.set_postfix_str(done.item["method"])
            if done.error is not None:
                raise done.error
    found = {name: results.read([key])[key] for name, key in keys.items()}
    by_split = [
        {"method": name, "split": number, **{key: value for key, value in of_split.items() if key != "folds"}}
        for name, done in found.items()
        for number, of_split in enumerate(done.result)
    ]
    scores = [
        {"method": name, "split": number, "fold": fold, **of_fold}
        for name, done in found.items()
        for number, of_split in enumerate(done.result)
        for fold, of_fold in enumerate(of_split["folds"])
    ]
    kind, (n_rows, n_features) = "classification" if problem.is_classification else "regression", problem.shape
    return Comparison(
        pd.DataFrame(scores),
        pd.DataFrame(by_split),
        pd.Series([done.seconds for done in found.values()], list(found), name="seconds"),
        "AUROC" if problem.is_classification else "MSE",
        f"{len(grids)} methods on {n_rows} rows x {n_features} features, {kind} of {problem.target_name!r}: "
        f"{len(splits[0].folds)} folds, {len(splits[0].test_rows)} rows held out, "
        f"{n_splits} random split{'s' if n_splits > 1 else ''}.",
    )


@dataclass(frozen=True)
class _Train:
    """Train and score the method that an item names."""

    problem: Problem
    splits: list[Split]
    grids: dict[str, Candidates]
    starts: dict[str, str]
    progress: bool

    def __call__(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        name = item["method"]
        return self.problem.run(
            name, self.grids[name], self.splits, input_init=self.starts.get(name), progress=self.progress
        )


def _checked_starts(input_init: str | Mapping[str, str] | None, methods: Mapping[str, Any]) -> dict[str, str]:
    """Return the scale of initial weights for each method for which it differs from the recipe."""
    if not isinstance(input_init, Mapping):
        input_init = {} if input_init is None else dict.fromkeys(methods, input_init)
    for name, start in input_init.items():
        check_choice("method in input_init", name, methods)
        check_choice("input_init", start, ["small", "glorot"])
    return dict(input_init)


# --- the paper's protocol for one method ---------------------------------------------------------------

METHODS: Final = tuple(PAPER_METHODS)
TWELVE: Final = (*METHODS, *LATER_METHODS)

# Our own searches, in addition to the paper's ten methods and the two later ones.
WIDE_GRID: Final = "CASTLE, wide grid"
REFIT: Final = "CASTLE, refit"
OURS: Final = (WIDE_GRID, REFIT)
_LAMBDAS, _BETAS = (0.01, 0.1, 1.0), (0.0001, *CASTLE_BETAS)

_CANDIDATES: Final[dict[str, Candidates]] = {
    **PAPER_METHODS,
    **LATER_METHODS,
    WIDE_GRID: tuple((Castle(beta, value),) for value in _LAMBDAS for beta in _BETAS),
    REFIT: PAPER_METHODS["CASTLE"],
}


def method_scores(method: str, X: Any, y: Any, **options: Any) -> list[Record]:
    """Score a method by name, see :func:`fold_scores`: one of the twelve, or one of our searches.

    ``"CASTLE, wide grid"`` chooses from fifteen pairs of lambda and beta; ``"CASTLE, refit"`` trains plain networks on
    the columns that CASTLE selects.
    """
    if method == REFIT:
        options["recipe"] = Recipe(refit=True)
    return fold_scores(X, y, _CANDIDATES[method], **options)


def castle_candidates(**switches: Any) -> Candidates:
    """Return CASTLE with the paper's betas and with some terms switched on or off."""
    return tuple((Castle(beta, **switches),) for beta in CASTLE_BETAS)


def fold_scores(
    X: Any,
    y: Any,
    candidates: Candidates,
    *,
    task: str,
    seed: int,
    cv: int,
    folds: int | None = None,
    test_size: float | int = 0.2,
    input_init: str = "small",
    **network: Any,
) -> list[Record]:
    """Score the fold networks of one method on held-out rows.

    The seed determines the held-out rows, the folds, the initial weights and the batches, independently of the method,
    so methods that run separately share all of them.

    Parameters
    ----------
    X, y : DataFrame and Series
    candidates : tuple of tuple of Regularizer
        The method, one candidate per strength.
    task : {"regression", "classification"}
    seed, cv : int
    folds : int, optional
        Number of folds to train, from the first; by default all. Networks for large graphs take hours.
    test_size : float or int
    input_init : {"small", "glorot"}
    **network
        Options of :func:`compare`.

    Returns
    -------
    list of dict
        One per fold: ``fold``, ``score`` on the held-out rows, ``averaged`` (score of the averaged fold networks),
        ``chosen`` strengths and the ``unit`` of MSE.
    """
    problem = Problem.read(X, y, task, seed, network)
    (split,) = problem.splits(cv, 1, test_size)
    (scored,) = problem.run("method", candidates, [split._replace(folds=split.folds[:folds])], input_init=input_init)
    shared = {"averaged": scored["score"], "chosen": scored["chosen"], "unit": scored["unit"]}
    return [{"fold": fold, "score": of_fold["score"], **shared} for fold, of_fold in enumerate(scored["folds"])]


def settings_of_folds(settings: Settings) -> dict[str, Any]:
    """Return the options of :func:`fold_scores` that the settings of a unit have; its draw or split is the seed."""
    named = {
        "seed": "split" if "split" in settings else "draw",
        "cv": "cv",
        "folds": "folds",
        "max_epochs": "max_epochs",
    }
    return {option: int(settings[name]) for option, name in named.items() if name in settings}


def ranks(results: pd.DataFrame, within: list[str], *, higher_is_better: bool = False) -> pd.Series:
    """Rank methods by score on every fold; the best has the highest rank, as in the paper's figures.

    ``within`` has the columns that identify a competition: one fold of one split of one table. Ranks are NaN unless all
    methods have a score.
    """
    groups = results.groupby(within, sort=False)["score"]
    ranked = groups.rank(ascending=higher_is_better)
    return ranked.where(groups.transform("size") == results["method"].nunique())


def ranks_among(results: pd.DataFrame, methods: Sequence[str], within: list[str], **options: Any) -> pd.Series:
    """Rank some of the methods with :func:`ranks`; rows of other methods have no rank.

    Our searches are ranked one at a time, each instead of CASTLE.
    """
    among = results[results["method"].isin(methods)]
    ranked = ranks(among, within, **options) if len(among) else pd.Series(dtype=float)
    for search in OURS:
        challengers = [method for method in methods if method != "CASTLE"]
        of_search = results[results["method"].isin([*challengers, search])]
        if "CASTLE" in methods and (of_search["method"] == search).any():
            in_its_place = ranks(of_search, within, **options)
            ranked = pd.concat([ranked, in_its_place[of_search["method"] == search]])
    return ranked.reindex(results.index)
