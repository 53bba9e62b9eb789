"""Figure 5: seconds to train and to predict, against the number of features and of rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from castlereg.estimators.recipe import Recipe
from castlereg.estimators.regressor import CastleRegressor
from castlereg.paper.experiments.description import Experiment, Record, Scale, Settings, Verdict
from castlereg.paper.experiments.synthetic_ranks import world_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EPOCHS = (5, 10)  # the difference between two fits excludes compilation and reading


class Scalability(Experiment):
    """Training and prediction times of CASTLE with a width of 32, as in the released code."""

    name = "scalability"
    title = "Seconds against features and rows"
    shown_in = "Figure 5"
    timed = True

    def units(self, scale: Scale) -> list[Settings]:
        """List growing features at 1000 rows, and growing rows at 20 features."""
        features: tuple[int, ...]
        rows: tuple[int, ...]
        if scale == "quick":
            features, rows = (5, 8), (200,)
        else:
            features, rows = (10, 50, 100, 200, 300, 400), (500, 1000, 2000, 4000, 8000, 16000, 32000)
        n_rows = rows[0] if scale == "quick" else 1000
        units: list[Settings] = [{"grows": "features", "n_features": d, "n_rows": n_rows} for d in features]
        return units + [{"grows": "rows", "n_features": 5 if scale == "quick" else 20, "n_rows": n} for n in rows]

    def measure(self, settings: Settings) -> list[Record]:
        """Train for five and ten epochs, and predict 1000 rows."""
        world = {"n_nodes": int(settings["n_features"]) + 1, "n_rows": settings["n_rows"], "n_noise": 0, "draw": 0}
        X, y = world_rows(world, n_test_rows=1000)
        train, test = slice(0, int(settings["n_rows"])), slice(int(settings["n_rows"]), None)
        seconds = []
        for _ in range(2):  # the first compiles
            seconds = [self._fit(X[train], y[train], epochs)[1] for epochs in _EPOCHS]
        model, _ = self._fit(X[train], y[train], _EPOCHS[0])
        model.predict(X[test])
        begun = time.perf_counter()
        model.predict(X[test])
        predict = time.perf_counter() - begun
        return [{"epoch": (seconds[1] - seconds[0]) / (_EPOCHS[1] - _EPOCHS[0]), "predict": predict}]

    @staticmethod
    def _fit(X: pd.DataFrame, y: pd.Series, epochs: int) -> tuple[CastleRegressor, float]:
        begun = time.perf_counter()
        model = CastleRegressor(
            hidden_layer_sizes=(32, 32), max_epochs=epochs, recipe=Recipe(patience=epochs), random_state=0
        )
        return model.fit(X, y), time.perf_counter() - begun

    def cost(self, settings: Settings) -> float:
        """Estimate from features and rows."""
        return 5 + 4e-7 * int(settings["n_features"]) ** 2 * int(settings["n_rows"]) * 45 / 32

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Return seconds per epoch, and an estimate for 200 epochs."""
        frame = results[["grows", "n_features", "n_rows", "epoch", "predict"]].copy()
        frame["200 epochs"] = 200 * frame["epoch"]
        return frame

    def draw(self, results: pd.DataFrame) -> Figure:
        """Draw both on logarithmic axes, where a power law is a straight line."""
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
        for ax, grows, column in zip(axes, ("features", "rows"), ("n_features", "n_rows"), strict=True):
            rows = results[results["grows"] == grows]
            ax.plot(rows[column], 200 * rows["epoch"], "o-", color="#d9480f", label="train, 200 epochs")
            ax.plot(rows[column], rows["predict"], "s-", color="#1971c2", label="predict 1000 rows")
            ax.set(xscale="log", yscale="log", xlabel=grows, ylabel="seconds")
            ax.set_xticks(rows[column], [str(value) for value in rows[column]], fontsize=8)
            ax.set_xticks([], minor=True)
            ax.spines[["top", "right"]].set_visible(False)
        axes[0].legend(frameon=False, fontsize=8)
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge how the times grow."""
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

    def notes(self) -> str:
        """Explain the measurement."""
        return (
            "Two hidden layers of 32 units, batches of 32 rows, one core, all columns reconstructed. The time of an "
            "epoch is a fifth of the difference between ten and five epochs, so it excludes compilation."
        )
