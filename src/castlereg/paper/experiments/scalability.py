"""Figure 5: seconds to train and to predict, against features and against rows."""

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

_EPOCHS = (5, 10)  # the difference of two fits leaves compilation and reading out


class Scalability(Experiment):
    """CASTLE with the released code's width of 32."""

    name = "scalability"
    title = "Seconds against features and rows"
    shown_in = "Figure 5"
    timed = True

    def units(self, scale: Scale) -> list[Settings]:
        """List features at 1000 rows, and rows at 20 features."""
        features: tuple[int, ...]
        rows: tuple[int, ...]
        if scale == "quick":
            features, rows = (5, 8), (200,)
        else:
            features, rows = (10, 50, 100, 200, 300, 400), (500, 1000, 2000, 4000, 8000, 16000, 32000)
        few = rows[0] if scale == "quick" else 1000
        units: list[Settings] = [{"grows": "features", "n_features": d, "n_rows": few} for d in features]
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
        """Guess by nodes and rows."""
        return 5 + 4e-7 * int(settings["n_features"]) ** 2 * int(settings["n_rows"]) * 45 / 32

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Seconds, and what 200 epochs would take."""
        frame = results[["grows", "n_features", "n_rows", "epoch", "predict"]].copy()
        frame["200 epochs"] = 200 * frame["epoch"]
        return frame

    def draw(self, results: pd.DataFrame) -> Figure:
        """Draw both on logarithmic axes, where a straight line is a power."""
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
        for ax, grows, column in zip(axes, ("features", "rows"), ("n_features", "n_rows"), strict=True):
            own = results[results["grows"] == grows]
            ax.plot(own[column], 200 * own["epoch"], "o-", color="#d9480f", label="train, 200 epochs")
            ax.plot(own[column], own["predict"], "s-", color="#1971c2", label="predict 1000 rows")
            ax.set(xscale="log", yscale="log", xlabel=grows, ylabel="seconds")
            ax.set_xticks(own[column], [str(value) for value in own[column]], fontsize=8)
            ax.set_xticks([], minor=True)
            ax.spines[["top", "right"]].set_visible(False)
        axes[0].legend(frameon=False, fontsize=8)
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge how the times grow."""
        power = {}
        for grows, column in (("features", "n_features"), ("rows", "n_rows")):
            own = results[results["grows"] == grows]
            power[grows] = {
                what: float(np.polyfit(np.log(own[column]), np.log(own[what]), 1)[0]) for what in ("epoch", "predict")
            }
        widest = results[results["grows"] == "features"].iloc[-1]
        return [
            Verdict(
                "training time grows exponentially with the number of features",
                "not reproduced",
                f"it grows like a power, {power['features']['epoch']:.1f} over this range; 200 epochs of 1000 "
                "rows take "
                f"{200 * widest['epoch']:.0f} s at {widest['n_features']:.0f} features",
            ),
            Verdict(
                "inference time is linear in the number of features",
                "reproduced" if power["features"]["predict"] < 1.3 else "not reproduced",
                f"power {power['features']['predict']:.1f}; {widest['predict']:.4f} s for 1000 rows at "
                f"{widest['n_features']:.0f} features",
            ),
            Verdict(
                "training time is linear in the number of rows",
                "reproduced" if abs(power["rows"]["epoch"] - 1) < 0.25 else "partly",
                f"power {power['rows']['epoch']:.2f}",
            ),
        ]

    def notes(self) -> str:
        """Say what was timed."""
        return (
            "Two hidden layers of 32 units, batches of 32, one core, all columns reconstructed; an epoch is a "
            "fifth of the "
            "difference of ten and five epochs, so compilation is left out."
        )
