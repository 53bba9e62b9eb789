"""Table 4: methods on the example graph with linear equations."""

from __future__ import annotations

from typing import Any, ClassVar

import pandas as pd

from castlereg.comparison.methods import PAPER_METHODS
from castlereg.paper.experiments import printed
from castlereg.paper.experiments.description import Record, Scale, Settings, Verdict
from castlereg.paper.experiments.protocol import METHODS, fold_scores
from castlereg.paper.experiments.toy_tables import N_TEST_ROWS, ToyTable, toy_rows

_CASTLE_NETWORK = "CASTLE network"


class ToyLinear(ToyTable):
    """Other methods as networks, CASTLE in its linear form and as a network.

    The paper calls CASTLE "our linear method". Dropout, batch normalization and autoencoders need a hidden layer, so
    the other methods must have been networks.
    """

    name = "toy_linear"
    title = "Linear toy data"
    shown_in = "Table 4"
    printed: ClassVar[pd.DataFrame] = printed.LINEAR_TOY
    compared_function = "linear"

    def units(self, scale: Scale) -> list[Settings]:
        """List rows x draw x method."""
        if scale == "quick":
            draws, cv, epochs = {100: 1}, 2, 3
            methods: tuple[str, ...] = ("Baseline", "CASTLE")
        else:
            draws = dict.fromkeys((500, 1000, 5000, 10000, 50000), 10)
            if scale == "standard":
                draws |= {5000: 5, 10000: 2, 50000: 1}
            cv, epochs = 10, 200
            methods = (*METHODS, _CASTLE_NETWORK)
        return [
            {"function": "linear", "n_rows": n, "draw": draw, "method": method, "cv": cv, "max_epochs": epochs}
            for n, n_draws in draws.items()
            for draw in range(n_draws)
            for method in methods
        ]

    def measure(self, settings: Settings) -> list[Record]:
        """Score one method on one draw, in the units of the data as in the paper."""
        X, y = toy_rows(settings)
        method = str(settings["method"])
        network: dict[str, Any] = {"hidden_layer_sizes": ()} if method == "CASTLE" else {}
        records = fold_scores(
            X,
            y,
            PAPER_METHODS["CASTLE" if method == _CASTLE_NETWORK else method],
            task="regression",
            seed=int(settings["draw"]),
            cv=int(settings["cv"]),
            test_size=N_TEST_ROWS,
            max_epochs=int(settings["max_epochs"]),
            **network,
        )
        return [{**record, "score": record["score"] * record["unit"]} for record in records]

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge the place of CASTLE and the level of the errors."""
        frame = self.summary(results)
        best = frame.loc[frame.groupby("n_rows")["ours"].idxmin()].set_index("n_rows")
        castle = frame[frame["method"] == "CASTLE"].set_index("n_rows")["ours"]
        first = [n for n in castle.index if best.loc[n, "method"] == "CASTLE"]
        errors = "; ".join(
            f"n = {n}: CASTLE {castle[n]:.3f}, best {best.loc[n, 'method']} {best.loc[n, 'ours']:.3f}"
            for n in castle.index
        )
        return [
            Verdict(
                "CASTLE has the lowest error at every number of rows",
                "reproduced" if len(first) == len(castle) else "partly" if first else "not reproduced",
                errors,
            ),
            Verdict(
                "errors level off at 1.00",
                "cannot be met",
                "1.00 is the error of predicting from only the true parents; a model with the children of Y as "
                "features, as all of these have, can reach 0.333. Our lowest error with the most rows is "
                f"{best['ours'].iloc[-1]:.3f}",
            ),
        ]

    def notes(self) -> str:
        """Explain the forms of the methods."""
        return (
            "MSE in the units of the data on 1000 test rows. 'CASTLE' is the linear form of the paper; all other "
            "methods, including 'CASTLE network', have two hidden layers. The paper has no row for the baseline."
        )
