"""The paper's figures: average ranks, sensitivity to lambda, seconds, and learned weights."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pandas as pd

from castlereg.regularizers import Castle
from castlereg_paper.comparison import (
    CASTLE_BETAS,
    LATER_METHODS,
    METHODS,
    OURS,
    PAPER_METHODS,
    TWELVE,
    fold_scores,
    ranks,
    ranks_among,
    settings_of_folds,
    significance,
)
from castlereg_paper.experiments.printed import COLOURS, rank_lines
from castlereg_paper.experiments.tables import FOLD, RealClassification, RealRegression
from castlereg_paper.framework import Experiment, Judgement, Record, Scale, Settings, Verdict
from castlereg_paper.problems import random_problem, roles
from castlereg_paper.protocol import learned_weights, timed_fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WORLD: Final = ["n_nodes", "n_rows", "n_noise", "draw"]
STANDARD_FOLDS: Final = {"folds": 1}  # of ten; more graphs are more informative than more folds of one graph


def castle_cost(settings: Settings) -> float:
    """Estimate the seconds of CASTLE on one core: the products of all sub-networks and the fixed cost of each step."""
    nodes = int(settings["n_nodes"]) + int(settings["n_noise"])
    steps = int(settings["n_rows"]) / 32 * int(settings["max_epochs"]) / 2
    return 4 * int(settings.get("folds", settings["cv"])) * steps * (1e-5 + 1.8e-9 * nodes**3)


def world_rows(settings: Settings, n_test_rows: int = 1000) -> tuple[pd.DataFrame, pd.Series]:
    """Draw training rows from a world, followed by test rows."""
    problem = random_problem(
        int(settings["n_nodes"]),
        int(settings["n_rows"]),
        n_noise_columns=int(settings["n_noise"]),
        n_test_rows=n_test_rows,
        random_state=int(settings["draw"]),
    )
    return (
        pd.concat([problem.X, problem.X_test], ignore_index=True),
        pd.concat([problem.y, problem.y_test], ignore_index=True),
    )


@dataclass(frozen=True)
class SyntheticRanks(Experiment):
    """Average rank on random graphs with sums of sigmoids."""

    grows: ClassVar[str]  # the setting on the axis
    axis: ClassVar[str]
    claim: ClassVar[str]
    quick: ClassVar[dict[str, int]] = {"n_nodes": 6, "n_rows": 100, "n_noise": 0, "draw": 0}
    explanation = (
        "Random graphs with a branching factor drawn between 1 and the number of nodes, sums of sigmoids, "
        "Gaussian noise with a standard deviation between 0.3 and 1, 1000 test rows. Ranks are per fold and "
        "graph; 10 is best. All methods start from the same initial weights, with small input layers."
    )

    @abstractmethod
    def worlds(self, is_standard: bool) -> list[dict[str, int]]:
        """List worlds with ``n_nodes``, ``n_rows``, ``n_noise`` and ``draw``, at the standard scale or the paper's."""

    def units(self, scale: Scale) -> list[Settings]:
        """List world x method."""
        if scale == "quick":
            return [{**self.quick, "method": name, "cv": 2, "max_epochs": 3} for name in ("Baseline", "CASTLE")]
        protocol = {"cv": 10, **(STANDARD_FOLDS if scale == "standard" else {}), "max_epochs": 200}
        return [{**world, "method": name, **protocol} for world in self.worlds(scale == "standard") for name in METHODS]

    def measure(self, settings: Settings) -> list[Record]:
        X, y = world_rows(settings)
        candidates = PAPER_METHODS[str(settings["method"])]
        return fold_scores(X, y, candidates, task="regression", test_size=1000, **settings_of_folds(settings))

    def cost(self, settings: Settings) -> float:
        whole = castle_cost(settings)
        return whole if settings["method"] == "CASTLE" else 1 + whole / (int(settings["n_nodes"]) * 2)

    def ranked(self, results: pd.DataFrame) -> pd.DataFrame:
        """Add ranks; the best has the highest."""
        return results.assign(rank=ranks(results, [*WORLD, "fold"]))

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        ranked = self.ranked(results)
        ranked = ranked.assign(graph=ranked["n_nodes"].astype(str) + "/" + ranked["draw"].astype(str))
        frame = (
            ranked.groupby([self.grows, "method"], sort=False)
            .agg(graphs=("graph", "nunique"), error=("score", "mean"), rank=("rank", "mean"), sd=("rank", "std"))
            .reset_index()
        )
        frame["place"] = frame.groupby(self.grows)["rank"].rank(ascending=False, method="min").astype(int)
        return frame

    def draw(self, results: pd.DataFrame) -> Figure:
        return rank_lines(self.ranked(results), self.grows, self.axis, results["method"].nunique())

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        frame = self.summary(results)
        castle = frame[frame["method"] == "CASTLE"].set_index(self.grows)
        places = castle["place"]
        judgement: Any = "reproduced" if (places == 1).all() else "partly" if (places == 1).any() else "not reproduced"
        best = frame[frame["place"] == 1].groupby(self.grows)["method"].agg(" and ".join)
        by_value = "; ".join(
            f"{value:g}: place {places[value]} with {castle.loc[value, 'rank']:.2f}"
            + ("" if places[value] == 1 else f" (first: {best[value]})")
            for value in places.index
        )
        return [Verdict(self.claim, judgement, f"{self.axis}: {by_value}")]


class RankFeatures(SyntheticRanks):
    """Average ranks on graphs of growing size, with fifty rows per node."""

    name = "rank_features"
    title = "Average rank against the number of nodes"
    shown_in = "Figure 3, left"
    grows = "n_nodes"
    axis = "nodes"
    claim = "CASTLE has the highest rank of all methods at every number of features, and does not degrade"

    def worlds(self, is_standard: bool) -> list[dict[str, int]]:
        draws = {10: 10, 50: 10, 100: 10, 150: 3} if is_standard else dict.fromkeys((10, 50, 100, 150), 10)
        return [
            {"n_nodes": nodes, "n_rows": 50 * nodes, "n_noise": 0, "draw": draw}
            for nodes, n_draws in draws.items()
            for draw in range(n_draws)
        ]


class RankRows(SyntheticRanks):
    """Average ranks with 20 to 200 rows per node."""

    name = "rank_rows"
    title = "Average rank against the number of rows per node"
    shown_in = "Figure 3, middle"
    grows = "rows per node"
    axis = "rows per node"
    claim = "CASTLE has the highest rank at every number of rows; the others catch up at 200 rows per node"

    def worlds(self, is_standard: bool) -> list[dict[str, int]]:
        draws = {10: 10, 50: 5} if is_standard else dict.fromkeys((10, 50, 100, 150), 10)
        return [
            {"n_nodes": nodes, "n_rows": alpha * nodes, "n_noise": 0, "draw": draw}
            for alpha in (20, 50, 100, 150, 200)
            for nodes, n_draws in draws.items()
            for draw in range(n_draws)
        ]

    def ranked(self, results: pd.DataFrame) -> pd.DataFrame:
        """Add ranks and rows per node."""
        per_node: Any = results["n_rows"] // results["n_nodes"]
        return super().ranked(results).assign(**{"rows per node": per_node})


class RankNoise(SyntheticRanks):
    """Average ranks with a growing number of columns that are unrelated to the target."""

    name = "rank_noise"
    title = "Average rank against the number of noise columns"
    shown_in = "Figure 3, right"
    grows = "n_noise"
    axis = "noise columns"
    claim = "CASTLE has the highest rank at every number of noise columns, while SAE degrades"
    quick: ClassVar[dict[str, int]] = {"n_nodes": 4, "n_rows": 100, "n_noise": 2, "draw": 0}

    def worlds(self, is_standard: bool) -> list[dict[str, int]]:
        nodes, n_draws = 50, 3 if is_standard else 10
        return [
            {"n_nodes": nodes, "n_rows": 50 * nodes, "n_noise": noise, "draw": draw}
            for noise in (0, 20, 40, 60, 80, 100)
            for draw in range(n_draws)
        ]


LAMBDAS = (0.01, 0.1, 1.0, 10.0, 100.0)


class LambdaSensitivity(Experiment):
    """CASTLE with five values of lambda, on random graphs of random sizes."""

    name = "lambda_sensitivity"
    title = "Sensitivity to lambda"
    shown_in = "Figure 4"

    def units(self, scale: Scale) -> list[Settings]:
        """List graph x lambda; the number of the graph is the seed of its size."""
        if scale == "quick":
            n_draws, largest, rows, cv, epochs = 1, 6, (100, 101), 2, 3
        elif scale == "standard":
            n_draws, largest, rows, cv, epochs = 10, 80, (1000, 5000), 10, 200
        else:
            n_draws, largest, rows, cv, epochs = 50, 150, (1000, 5000), 10, 200
        folds = STANDARD_FOLDS if scale == "standard" else {}
        units: list[Settings] = []
        for draw in range(n_draws):
            rng = np.random.default_rng([draw, largest])
            sizes = {"n_nodes": int(rng.integers(min(10, largest), largest + 1)), "n_rows": int(rng.integers(*rows))}
            units += [
                {**sizes, "n_noise": 0, "draw": draw, "reg_lambda": value, "cv": cv, **folds, "max_epochs": epochs}
                for value in (LAMBDAS[1:3] if scale == "quick" else LAMBDAS)
            ]
        return units

    def measure(self, settings: Settings) -> list[Record]:
        X, y = world_rows(settings, n_test_rows=2000)
        return fold_scores(
            X,
            y,
            tuple((Castle(beta, float(settings["reg_lambda"])),) for beta in CASTLE_BETAS),
            task="regression",
            test_size=2000,
            **settings_of_folds(settings),
        )

    def cost(self, settings: Settings) -> float:
        return 1 + castle_cost(settings)

    def _ranked(self, results: pd.DataFrame) -> pd.DataFrame:
        results = results.assign(method=results["reg_lambda"])
        return results.assign(rank=ranks(results, ["draw", "fold"]))

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        groups = self._ranked(results).groupby("reg_lambda", sort=True)
        return groups.agg(
            graphs=("draw", "nunique"), error=("score", "mean"), rank=("rank", "mean"), sd=("rank", "std")
        ).reset_index()

    def draw(self, results: pd.DataFrame) -> Figure:
        import matplotlib.pyplot as plt

        frame = self.summary(results)
        figure, ax = plt.subplots(figsize=(4.6, 3.4), layout="constrained")
        ax.errorbar(frame["reg_lambda"], frame["rank"], yerr=frame["sd"], fmt="o-", color="#d9480f", capsize=3)
        ax.set(xscale="log", xlabel="lambda", ylabel=f"average rank ({len(LAMBDAS)} is best)")
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        frame = self.summary(results).set_index("reg_lambda")
        best = frame["rank"].idxmax()
        ranked = ", ".join(f"{value:g}: {rank:.2f}" for value, rank in frame["rank"].items())
        near = frame["rank"].max() - frame.loc[1.0, "rank"] < 0.25
        return [
            Verdict(
                "lambda = 1 is the best choice",
                "reproduced" if best == 1 else "partly" if near else "not reproduced",
                f"average rank among five values (5 is best): {ranked}",
            )
        ]


_EPOCHS = (5, 10)  # the difference between two fits excludes compilation and reading


class Scalability(Experiment):
    """Training and prediction times of CASTLE with a width of 32, as in the released code."""

    name = "scalability"
    title = "Seconds against features and rows"
    shown_in = "Figure 5"
    timed = True
    explanation = (
        "Two hidden layers of 32 units, batches of 32 rows, one core, all columns reconstructed. The time of an "
        "epoch is a fifth of the difference between ten and five epochs, so it excludes compilation."
    )

    def units(self, scale: Scale) -> list[Settings]:
        """List growing features at 1000 rows, and growing rows at 20 features."""
        features, rows = [10, 50, 100, 200, 300, 400], [500, 1000, 2000, 4000, 8000, 16000, 32000]
        n_features, n_rows = 20, 1000  # of the other series
        if scale == "quick":
            features, rows, n_features, n_rows = [5, 8], [200], 5, 200
        units: list[Settings] = [{"grows": "features", "n_features": d, "n_rows": n_rows} for d in features]
        return units + [{"grows": "rows", "n_features": n_features, "n_rows": n} for n in rows]

    def measure(self, settings: Settings) -> list[Record]:
        world = {"n_nodes": int(settings["n_features"]) + 1, "n_rows": settings["n_rows"], "n_noise": 0, "draw": 0}
        X, y = world_rows(world, n_test_rows=1000)
        train, test = slice(0, int(settings["n_rows"])), slice(int(settings["n_rows"]), None)
        seconds = []
        for _ in range(2):  # the first compiles
            seconds = [timed_fit(X[train], y[train], width=32, epochs=epochs)[1] for epochs in _EPOCHS]
        model, _ = timed_fit(X[train], y[train], width=32, epochs=_EPOCHS[0])
        model.predict(X[test])
        begun = time.perf_counter()
        model.predict(X[test])
        predict = time.perf_counter() - begun
        return [{"epoch": (seconds[1] - seconds[0]) / (_EPOCHS[1] - _EPOCHS[0]), "predict": predict}]

    def cost(self, settings: Settings) -> float:
        return 5 + 4e-7 * int(settings["n_features"]) ** 2 * int(settings["n_rows"]) * 45 / 32

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        frame = results[["grows", "n_features", "n_rows", "epoch", "predict"]].copy()
        frame["200 epochs"] = 200 * frame["epoch"]
        return frame

    def draw(self, results: pd.DataFrame) -> Figure:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
        for ax, grows, column in zip(axes, ("features", "rows"), ("n_features", "n_rows"), strict=True):
            rows = results[results["grows"] == grows]
            ax.plot(rows[column], 200 * rows["epoch"], "o-", color="#d9480f", label="train, 200 epochs")
            ax.plot(rows[column], rows["predict"], "s-", color="#1971c2", label="predict 1000 rows")
            ax.set(xscale="log", yscale="log", xlabel=grows, ylabel="seconds")
            ax.set_xticks(rows[column], [str(value) for value in rows[column]], fontsize=8)
            ax.set_xticks([], minor=True)
        axes[0].legend(frameon=False, fontsize=8)
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        power = {}
        for grows, column in (("features", "n_features"), ("rows", "n_rows")):
            rows = results[results["grows"] == grows]
            power[grows] = {
                quantity: float(np.polyfit(np.log(rows[column]), np.log(rows[quantity]), 1)[0])
                for quantity in ("epoch", "predict")
            }
        widest = results[results["grows"] == "features"].iloc[-1]
        return [
            Verdict(
                "training time grows exponentially with the number of features",
                "not reproduced",
                f"it grows as a power law with exponent {power['features']['epoch']:.1f} over this range; 200 epochs "
                f"on 1000 rows take {200 * widest['epoch']:.0f} s at {widest['n_features']:.0f} features",
            ),
            Verdict(
                "inference time is linear in the number of features",
                "reproduced" if power["features"]["predict"] < 1.3 else "not reproduced",
                f"exponent {power['features']['predict']:.1f}; {widest['predict']:.4f} s for 1000 rows at "
                f"{widest['n_features']:.0f} features",
            ),
            Verdict(
                "training time is linear in the number of rows",
                "reproduced" if abs(power["rows"]["epoch"] - 1) < 0.25 else "partly",
                f"exponent {power['rows']['epoch']:.2f}",
            ),
        ]


_TASKS = ("regression", "classification")
_SPLIT = ["table", "split"]
_COLUMN = "average rank over tables and splits"


def _among(results: pd.DataFrame) -> list[Sequence[str]]:
    """Return the sets of methods to rank that were run: those of the paper, and these plus two later ones."""
    run = set(results["method"].dropna())
    return [
        [method for method in METHODS if method in run],
        *([[method for method in TWELVE if method in run]] if run & set(LATER_METHODS) else []),
    ]


class RealRanks(Experiment):
    """Ranks computed from the two experiments on real tables; it has no units."""

    name = "real_ranks"
    title = "Average ranks on real tables"
    shown_in = "Figure 6"
    sources = (RealRegression, RealClassification)
    explanation = (
        "Upper panels: average rank over folds and splits, as in the paper. Lower panels: average ranks over "
        "tables and splits, with TANGOS and Deep Lasso; methods within the critical difference of the Nemenyi "
        "test (5 %) cannot be distinguished. Splits of one table overlap, so the test finds differences too "
        "easily. Our two searches are ranked instead of CASTLE, one at a time."
    )

    def units(self, scale: Scale) -> list[Settings]:
        """Return no units."""
        return []

    def measure(self, settings: Settings) -> list[Record]:
        raise NotImplementedError

    def _ranked(self, results: pd.DataFrame, methods: Sequence[str], within: list[str]) -> pd.DataFrame:
        """Rank methods by their mean score within a fold or a split; the best has the highest rank."""
        parts = []
        for task in _TASKS:
            of_task = results[results["experiment"] == f"real_{task}"]
            if len(of_task):
                means = of_task.groupby([*within, "method"], sort=False)["score"].mean().reset_index()
                ranked = ranks_among(means, methods, within, higher_is_better=task == "classification")
                parts.append(means.assign(task=task, rank=ranked))
        return pd.concat(parts, ignore_index=True).dropna(subset="rank")

    def _by_split(self, results: pd.DataFrame, task: str, methods: Sequence[str]) -> pd.DataFrame:
        """Return ranks on every table and split, with 1 as the best, as the significance test requires."""
        ranked = self._ranked(results, methods, _SPLIT)
        of_task = ranked[(ranked["task"] == task) & ranked["method"].isin(methods)]
        return len(methods) + 1 - of_task.pivot_table(index=_SPLIT, columns="method", values="rank", sort=False)

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        parts = [self._summary(results, methods) for methods in _among(results)]
        return pd.concat(parts, ignore_index=True)

    def _summary(self, results: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
        groups = self._ranked(results, methods, FOLD).groupby(["task", "method"], sort=False)
        frame = groups["rank"].agg(["mean", "std"])
        frame.columns = pd.Index(["average rank over folds", "sd"])
        by_split = self._ranked(results, methods, _SPLIT).groupby(["task", "method"])["rank"].mean()
        frame[_COLUMN] = by_split.reindex(frame.index)
        frame = frame.reset_index()
        frame.insert(1, "among", len(methods))
        competing = frame[frame["method"].isin(methods)]
        frame["place"] = [
            1 + int(((rivals[_COLUMN] > rank) & (rivals["task"] == task)).sum())
            for task, method, rank in zip(frame["task"], frame["method"], frame[_COLUMN], strict=True)
            for rivals in [competing[competing["method"] != "CASTLE"] if method in OURS else competing]
        ]
        return frame.sort_values(["task", "place"], ascending=[False, True], ignore_index=True)

    def draw(self, results: pd.DataFrame) -> Figure:
        import matplotlib.pyplot as plt

        ten, most = _among(results)[0], _among(results)[-1]
        ranked = self._ranked(results, ten, FOLD)
        tasks = [task for task in _TASKS if task in set(ranked["task"])]
        figure, axes = plt.subplots(2, len(tasks), figsize=(6 * len(tasks), 7), layout="constrained", squeeze=False)
        for column, task in enumerate(tasks):
            ax = axes[0, column]
            of_task = ranked[(ranked["task"] == task) & ranked["method"].isin(ten)]
            means = of_task.pivot_table(index="table", columns="method", values="rank", aggfunc="mean", sort=False)
            means = means.sort_values("CASTLE", ascending=False)
            for method in sorted(means.columns, key=lambda name: name == "CASTLE"):
                strong = method == "CASTLE"
                ax.plot(
                    means.index,
                    means[method],
                    "o-",
                    color=COLOURS.get(method, "#adb5bd"),
                    lw=2.6 if strong else 1,
                    label=method,
                )
            ax.set(ylabel=f"average rank ({len(ten)} is best)", title=task, ylim=(0.5, len(ten) + 0.5))
            critical_difference(axes[1, column], self._by_split(results, task, most), len(most))
        axes[0, -1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        frame = self.summary(results)
        verdicts = []
        for is_claim, methods in zip((True, False), _among(results), strict=False):
            for task in frame["task"].unique():
                among = len(methods)
                of_task = frame[(frame["task"] == task) & (frame["among"] == among)].set_index("method")
                check = significance(self._by_split(results, task, methods), "split")
                castle = of_task.loc["CASTLE"]
                others = of_task[of_task.index.isin(methods)].drop(index="CASTLE")[_COLUMN]
                searches = "".join(
                    f"; {name} instead of CASTLE {of_task.loc[name, _COLUMN]:.2f}"
                    for name in OURS
                    if name in of_task.index
                )
                lead = castle[_COLUMN] - others.max()
                judged: Judgement = "reproduced" if lead > 0 else "partly" if lead == 0 else "not reproduced"
                verdicts.append(
                    Verdict(
                        f"CASTLE ranks first of {'ten' if is_claim else 'twelve'}, {task}",
                        judged if is_claim else "not in the paper",
                        f"average rank {castle[_COLUMN]:.2f} over tables and splits ({among} is best), place "
                        f"{castle['place']}; the best other method is {others.idxmax()} with {others.max():.2f}; "
                        f"critical difference {check.critical_difference:.2f} at 5 %{searches}",
                    )
                )
        return verdicts


def critical_difference(ax: Axes, by_split: pd.DataFrame, n_methods: int) -> None:
    """Draw mean ranks, and shade the ranks that cannot be distinguished from the best."""
    check = significance(by_split, "split")
    ordered = (n_methods + 1 - by_split.mean()).sort_values(ascending=False)
    positions = np.arange(len(ordered))
    best = ordered.iloc[0]
    if np.isfinite(check.critical_difference):
        ax.axvspan(best - check.critical_difference, best, color="#ffe8cc", zorder=0)
    colours = [COLOURS.get(str(name), "#adb5bd") for name in ordered.index]
    ax.hlines(positions, 1, ordered, color="#dee2e6", zorder=1)
    ax.scatter(ordered, positions, color=colours, zorder=2)
    ax.set_yticks(positions, [str(name) for name in ordered.index], fontsize=8)
    ax.invert_yaxis()
    ax.set(
        xlim=(0.8, n_methods + 0.2),
        xlabel=f"average rank ({n_methods} is best); shaded: not distinguishable from the best",
    )


@dataclass(frozen=True)
class WeightRoles(Experiment):
    """Mean learned weight of edges into the target, over random graphs."""

    role: ClassVar[str]  # of the target
    kinds: ClassVar[tuple[str, ...]]  # of the other columns
    explanation = (
        "Graphs with two edges per node, sums of sigmoids; beta chosen by cross-validation. Weights are the "
        "learned weights before the threshold, averaged over fold networks, then over columns of a kind, then "
        "over graphs. A column counts once, as the first kind that fits: parent, child, spouse, sibling; "
        "'distant' columns are connected to the target by a longer path, 'noise' columns by none."
    )

    def units(self, scale: Scale) -> list[Settings]:
        """List graphs with and without noise columns."""
        if scale == "quick":
            return [{"n_nodes": 6, "n_noise": 2, "n_rows": 100, "draw": 0, "cv": 2, "max_epochs": 3}]
        standard = {(10, 0): 10, (10, 20): 10, (20, 0): 10, (50, 0): 3}
        draws = standard if scale == "standard" else {(50, 0): 10, (50, 50): 10}
        return [
            {"n_nodes": nodes, "n_noise": noise, "n_rows": 50 * nodes, "draw": draw, "cv": 5, "max_epochs": 200}
            for (nodes, noise), n_draws in draws.items()
            for draw in range(n_draws)
        ]

    def measure(self, settings: Settings) -> list[Record]:
        problem = random_problem(
            int(settings["n_nodes"]),
            int(settings["n_rows"]),
            n_noise_columns=int(settings["n_noise"]),
            role=self.role,
            branching=2,
            random_state=int(settings["draw"]),
        )
        options = {name: int(settings[name]) for name in ("cv", "max_epochs")}
        learned = learned_weights(problem.X, problem.y, random_state=int(settings["draw"]), **options)["Y"]
        by_role = roles(problem.dag, "Y")._asdict()
        by_role["noise"] = [name for name in problem.X if name not in set().union(*map(set, by_role.values()))]
        by_role["noise"] += by_role.pop("unrelated")
        return [
            {"kind": kind, "column": name, "weight": float(learned[name])}
            for kind, names in by_role.items()
            for name in dict.fromkeys(names)
        ]

    def cost(self, settings: Settings) -> float:
        return 1 + castle_cost(settings)

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        means = results.groupby(["draw", "n_nodes", "n_noise", "kind"], sort=False)["weight"].mean().reset_index()
        frame = means.groupby("kind", sort=False)["weight"].agg(["mean", "std", "count"]).reset_index()
        frame.columns = pd.Index(["kind", "mean weight", "sd over graphs", "graphs"])
        order = {kind: position for position, kind in enumerate(self.kinds)}
        frame = frame[frame["kind"].isin(order)]
        return frame.sort_values("kind", key=lambda kinds: kinds.map(order), ignore_index=True)

    def draw(self, results: pd.DataFrame) -> Figure:
        import matplotlib.pyplot as plt

        frame = self.summary(results)
        figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
        error = frame["sd over graphs"].fillna(0) / frame["graphs"].pow(0.5)
        ax.bar(frame["kind"], frame["mean weight"], yerr=error, color="#9aa7b4", capsize=3)
        ax.set(ylabel="mean weight into the target")
        ax.set_title("error bars: standard error over graphs", fontsize=9)
        return figure


class WeightsWithParents(WeightRoles):
    """Weights of parents, children, spouses, siblings and noise."""

    name = "weights_with_parents"
    title = "Learned weights, target with parents"
    shown_in = "Figure 7"
    role = "with_parents"
    kinds = ("parents", "children", "spouses", "siblings", "distant", "noise")

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        frame = self.summary(results).set_index("kind")
        mean = frame["mean weight"]
        error = frame["sd over graphs"] / frame["graphs"] ** 0.5
        means = ", ".join(f"{kind} {value:.3f} +- {error[kind]:.3f}" for kind, value in mean.items())
        lead = mean["parents"] - mean["children"]
        clear = lead > 2 * float(np.hypot(error["parents"], error["children"]))
        return [
            Verdict(
                "if the target has parents, CASTLE predicts from them rather than from its children",
                "reproduced" if clear else "partly" if lead > 0 else "not reproduced",
                f"mean weights: {means}; the lead of parents is {'more' if clear else 'less'} than two standard errors",
            ),
            Verdict(
                "weights of noise columns are near zero",
                "reproduced" if mean["noise"] < 0.1 * mean.max() else "partly",
                f"{mean['noise'] / mean.max():.2f} of the largest mean weight of a kind",
            ),
        ]


class WeightsWithoutParents(WeightRoles):
    """Weights of children, spouses and noise; without parents there are no siblings."""

    name = "weights_without_parents"
    title = "Learned weights, target without parents"
    shown_in = "Figure 8"
    role = "without_parents"
    kinds = ("children", "spouses", "distant", "noise")

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        mean = self.summary(results).set_index("kind")["mean weight"]
        means = ", ".join(f"{kind} {value:.3f}" for kind, value in mean.items())
        more = mean["children"] > mean.get("spouses", 0.0)
        return [
            Verdict(
                "if the target has no parents, CASTLE predicts from its children rather than from spouses",
                "reproduced" if more else "not reproduced",
                means,
            )
        ]
