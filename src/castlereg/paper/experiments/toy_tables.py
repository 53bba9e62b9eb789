"""Base of the two toy tables: the example graph, ten methods, growing numbers of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pandas as pd

from castlereg.causal.synthetic import example_dag, sample
from castlereg.paper.experiments.description import Experiment, Settings
from castlereg.paper.experiments.lines import rank_lines
from castlereg.paper.experiments.protocol import ranks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_TEST_ROWS = 1000


def toy_rows(settings: Settings) -> tuple[pd.DataFrame, pd.Series]:
    """Draw training rows from the example graph, followed by 1000 test rows."""
    data = sample(
        example_dag(),
        int(settings["n_rows"]) + N_TEST_ROWS,
        function=str(settings["function"]),
        random_state=int(settings["draw"]),
    )
    return data.drop(columns="Y"), data["Y"]


@dataclass(frozen=True)
class ToyTable(Experiment):
    """Errors on the example graph."""

    printed: ClassVar[pd.DataFrame]
    compared_function: ClassVar[str]  # its errors are compared with the printed ones

    def cost(self, settings: Settings) -> float:
        """Estimate from rows and method."""
        epochs = int(settings["max_epochs"]) / 2
        steps = int(settings["n_rows"]) / 32 * epochs * int(settings["cv"])
        return 0.5 + steps * (5e-5 if str(settings["method"]).startswith("CASTLE") else 1e-5)

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Compare our errors with those of the paper."""
        results = results.assign(rank=ranks(results, ["function", "n_rows", "draw", "fold"]))
        frame = results.groupby(["function", "n_rows", "method"], sort=False).agg(
            draws=("draw", "nunique"), ours=("score", "mean"), sd=("score", "std"), rank=("rank", "mean")
        )
        frame = frame.reset_index()
        paper = self.printed.set_index(["column", "row"])["mean"]
        wanted = pd.MultiIndex.from_frame(frame[["n_rows", "method"]])
        compared = frame["function"] == self.compared_function
        frame["paper"] = paper.reindex(wanted).where(compared.to_numpy()).to_numpy()
        frame["difference"] = frame["ours"] - frame["paper"]
        return frame

    def draw(self, results: pd.DataFrame) -> Figure:
        """Draw average ranks against the number of rows."""
        results = results[results["function"] == self.compared_function]
        ranked = results.assign(rank=ranks(results, ["function", "n_rows", "draw", "fold"]))
        return rank_lines(ranked, "n_rows", f"rows ({self.compared_function})", results["method"].nunique())
