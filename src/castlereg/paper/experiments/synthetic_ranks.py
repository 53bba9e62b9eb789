"""Base of the three panels of Figure 3: ten methods on random graphs, ranked on every fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pandas as pd

from castlereg.comparison.methods import PAPER_METHODS
from castlereg.paper.experiments.description import Experiment, Record, Scale, Settings, Verdict
from castlereg.paper.experiments.lines import rank_lines
from castlereg.paper.experiments.protocol import METHODS, fold_scores, ranks
from castlereg.paper.problems import random_problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORLD = ["n_nodes", "n_rows", "n_noise", "draw"]


STANDARD_FOLDS: Final = {"folds": 1}  # of ten; more graphs are more informative than more folds of one graph


def worlds(
    cases: list[dict[str, int]], scale: Scale, *, cv: int = 10, max_epochs: int = 200, methods: Any = METHODS
) -> list[Settings]:
    """List world x method; each world has ``n_nodes``, ``n_rows``, ``n_noise`` and ``draw``."""
    folds = STANDARD_FOLDS if scale == "standard" else {}
    return [
        {**case, "method": method, "cv": cv, **folds, "max_epochs": max_epochs} for case in cases for method in methods
    ]


def castle_cost(settings: Settings, n_candidates: int = 4) -> float:
    """Estimate the seconds of CASTLE on one core: the products of all sub-networks and the fixed cost of each step."""
    nodes = int(settings["n_nodes"]) + int(settings["n_noise"])
    steps = int(settings["n_rows"]) / 32 * int(settings["max_epochs"]) / 2
    return n_candidates * int(settings.get("folds", settings["cv"])) * steps * (1e-5 + 1.8e-9 * nodes**3)


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

    def measure(self, settings: Settings) -> list[Record]:
        """Score one method on 1000 test rows of one random graph."""
        X, y = world_rows(settings)
        return fold_scores(
            X,
            y,
            PAPER_METHODS[str(settings["method"])],
            task="regression",
            seed=int(settings["draw"]),
            cv=int(settings["cv"]),
            folds=int(settings["folds"]) if "folds" in settings else None,
            test_size=1000,
            max_epochs=int(settings["max_epochs"]),
        )

    def cost(self, settings: Settings) -> float:
        """Estimate from nodes, rows and folds."""
        whole = castle_cost(settings)
        return whole if settings["method"] == "CASTLE" else 1 + whole / (int(settings["n_nodes"]) * 2)

    def ranked(self, results: pd.DataFrame) -> pd.DataFrame:
        """Add ranks; the best has the highest."""
        return results.assign(rank=ranks(results, [*WORLD, "fold"]))

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Average ranks and errors by the growing quantity."""
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
        """Draw a panel of Figure 3."""
        return rank_lines(self.ranked(results), self.grows, self.axis, results["method"].nunique())

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge whether CASTLE has the highest rank everywhere."""
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

    def notes(self) -> str:
        """Explain how the graphs are drawn."""
        return (
            "Random graphs with a branching factor drawn between 1 and the number of nodes, sums of sigmoids, "
            "Gaussian noise with a standard deviation between 0.3 and 1, 1000 test rows. Ranks are per fold and "
            "graph; 10 is best. All methods start from the same initial weights, with small input layers."
        )
