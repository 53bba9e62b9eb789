"""Figure 4: average rank of lambda from 0.01 to 100."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from castlereg.comparison.methods import CASTLE_BETAS
from castlereg.paper.experiments.description import Experiment, Record, Scale, Settings, Verdict
from castlereg.paper.experiments.protocol import fold_scores, ranks
from castlereg.paper.experiments.synthetic_ranks import STANDARD_FOLDS, castle_cost, world_rows
from castlereg.regularizers import Castle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        """Score one lambda on 2000 test rows, with beta chosen by validation."""
        X, y = world_rows(settings, n_test_rows=2000)
        return fold_scores(
            X,
            y,
            tuple((Castle(beta, float(settings["reg_lambda"])),) for beta in CASTLE_BETAS),
            task="regression",
            seed=int(settings["draw"]),
            cv=int(settings["cv"]),
            folds=int(settings["folds"]) if "folds" in settings else None,
            test_size=2000,
            max_epochs=int(settings["max_epochs"]),
        )

    def cost(self, settings: Settings) -> float:
        """Estimate from nodes, rows and folds."""
        return 1 + castle_cost(settings)

    def _ranked(self, results: pd.DataFrame) -> pd.DataFrame:
        results = results.assign(method=results["reg_lambda"])
        return results.assign(rank=ranks(results, ["draw", "fold"]))

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Average the ranks of each lambda."""
        groups = self._ranked(results).groupby("reg_lambda", sort=True)
        return groups.agg(
            graphs=("draw", "nunique"), error=("score", "mean"), rank=("rank", "mean"), sd=("rank", "std")
        ).reset_index()

    def draw(self, results: pd.DataFrame) -> Figure:
        """Draw average rank against lambda on a logarithmic axis."""
        import matplotlib.pyplot as plt

        frame = self.summary(results)
        figure, ax = plt.subplots(figsize=(4.6, 3.4), layout="constrained")
        ax.errorbar(frame["reg_lambda"], frame["rank"], yerr=frame["sd"], fmt="o-", color="#d9480f", capsize=3)
        ax.set(xscale="log", xlabel="lambda", ylabel=f"average rank ({len(LAMBDAS)} is best)")
        ax.spines[["top", "right"]].set_visible(False)
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge the choice of lambda = 1."""
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
