"""Beyond the paper: the tables on which CASTLE improves predictions, and the terms responsible."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from castlereg.advising.facts import table_facts
from castlereg.comparison import compare
from castlereg.comparison.methods import PAPER_METHODS, Candidates
from castlereg.paper.datasets import load
from castlereg.paper.experiments.ablation import PARTS
from castlereg.paper.experiments.description import Experiment, Record, Scale, Settings, Verdict
from castlereg.paper.experiments.pay_off import gain_map, gains, rule_of, rule_on_others
from castlereg.paper.problems import random_problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS: Final = (100, 300, 1000, 3000)
EXTRA: Final = ("none", "random", "copies")
# The rule is learned on worlds and the tables of LEARNED, and checked on the tables of CHECKED.
LEARNED: Final = {"BH": "default", "FB": "default", "PD": "default", "CC": "default"}
CHECKED: Final = {name: "binary" if name == "LV" else "default" for name in ("BC", "SH", "SP", "RP", "LV", "diabetes")}
_PARTS: Final[dict[str, Candidates]] = {
    "plain": PAPER_METHODS["Baseline"],
    "V": PARTS["V"],
    "R + V": PARTS["R + V"],
    "L + V": PARTS["L + V"],
    "L + R + V": PAPER_METHODS["CASTLE"],
}
_COPY_NOISE = 0.5  # standard deviations of the column
_NOISE: Final = {"linear": (1.0,), "smooth": (0.3, 1.0)}  # in a linear world, noise only changes the units
_EXTRA_COLUMNS = 15
_MOST_TEST_ROWS = 1000


class WhenItPays(Experiment):
    """Rows x columns x extra columns x noise x functions on known worlds; rows x extra columns on real tables."""

    name = "when_it_pays"
    title = "When CASTLE pays"
    shown_in = "beyond the paper"

    def units(self, scale: Scale) -> list[Settings]:
        """List cell x draw."""
        if scale == "quick":
            world: dict[str, Any] = {"source": "world", "n_columns": 4, "function": "linear", "noise": 0.3}
            shared: dict[str, Any] = {"n_rows": 60, "extra": "random", "n_extra": 2, "cv": 2, "max_epochs": 2}
            table: dict[str, Any] = {"source": "diabetes", "variant": "default"}
            return [{**of, **shared, "draw": draw} for of in (world, table) for draw in range(2)]
        shared = {"cv": 5, "max_epochs": 120}
        worlds: list[Settings] = [
            {"source": "world", "n_columns": columns, "function": function, "noise": noise}
            | {"n_rows": rows, "extra": extra, "n_extra": 0 if extra == "none" else _EXTRA_COLUMNS}
            for columns in (5, 10)
            for function in _NOISE
            for noise in _NOISE[function]
            for rows in ROWS
            for extra in EXTRA
        ]
        tables: list[Settings] = [
            {"source": table, "variant": variant}
            | {"n_rows": rows, "extra": extra, "n_extra": 0 if extra == "none" else _EXTRA_COLUMNS}
            for table, variant in (LEARNED | CHECKED).items()
            for rows in (100, 1000)
            for extra in EXTRA
        ]
        drawn: list[tuple[Settings, int]] = [*((cell, 5) for cell in worlds), *((cell, 3) for cell in tables)]
        return [{**cell, **shared, "draw": draw} for cell, n_draws in drawn for draw in range(n_draws)]

    def measure(self, settings: Settings) -> list[Record]:
        """Train the plain network, CASTLE and its parts on the same rows, and compute the facts of these rows."""
        X, y, task, n_test = _rows(settings)
        train = len(y) - n_test
        seed = int(settings["draw"])
        facts = asdict(table_facts(X[:train], y[:train], task=task))
        result = compare(
            X,
            y,
            methods={name: [list(candidate) for candidate in candidates] for name, candidates in _PARTS.items()},
            cv=int(settings["cv"]),
            test_size=n_test,
            task=task,
            random_state=seed,
            max_epochs=int(settings["max_epochs"]),
            unusable_columns="drop",
            verbose=False,
        )
        errors = result.by_split.set_index("method")["score"]
        if result.higher_is_better:
            errors = 1 - errors
        return [{"part": part, "error": float(error), "task": task, **facts} for part, error in errors.items()]

    def cost(self, settings: Settings) -> float:
        """Estimate from columns and rows."""
        columns = int(settings.get("n_columns", 16)) + int(settings["n_extra"])
        steps = int(settings["n_rows"]) / 32 * int(settings["max_epochs"]) / 2 * int(settings["cv"])
        return 2 + 10 * steps * (1e-5 + 1.8e-9 * columns**3)

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Return the gain of CASTLE and its parts over the plain network per cell: mean and standard error."""
        return gains(results)

    def draw(self, results: pd.DataFrame) -> Figure:
        """Draw the gain of CASTLE and of its causal terms as maps."""
        return gain_map(results)

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge the rule on tables that were not used to learn it."""
        learned = results[results["source"].isin(["world", *LEARNED])]
        others = results[results["source"].isin(CHECKED)]
        return [
            Verdict(
                "the gain of CASTLE over the plain network can be predicted from the table",
                "not in the paper",
                rule_on_others(rule_of(learned), others),
            )
        ]

    def notes(self) -> str:
        """Define the gain and describe the data."""
        return (
            "The gain is the percentage by which the error (MSE, or 1 - AUROC) of five averaged fold networks is "
            "below that of the plain network with the same rows, folds and initial weights; beta is chosen by "
            "validation loss. V is sparsity of the input layers, R acyclicity, L reconstruction. Worlds are random "
            "graphs with two edges per node, linear or smooth functions (Gaussian processes) and noise of 0.3 or 1 "
            "(linear worlds only 1, because another value only changes the units). The fifteen extra columns are "
            "standard normal ('random') or columns of the table with noise of half a standard deviation ('copies')."
        )


def _rows(settings: Settings) -> tuple[pd.DataFrame, pd.Series, Any, int]:
    """Return the rows of a unit in random order, the task, and the number of rows to hold out."""
    n_rows, n_extra, seed = int(settings["n_rows"]), int(settings["n_extra"]), int(settings["draw"])
    rng = np.random.default_rng([seed, n_rows])
    if settings["source"] == "world":
        problem = random_problem(
            int(settings["n_columns"]) + 1,
            n_rows,
            branching=2,
            function=str(settings["function"]),
            noise_std=float(settings["noise"]),
            n_test_rows=_MOST_TEST_ROWS,
            random_state=seed,
        )
        X = pd.concat([problem.X, problem.X_test], ignore_index=True)
        y, task = pd.concat([problem.y, problem.y_test], ignore_index=True), "regression"
        n_test = _MOST_TEST_ROWS
    else:
        data = load(str(settings["source"]), variant=str(settings["variant"]))
        n_test = min(len(data.y) - min(n_rows, int(0.8 * len(data.y))), _MOST_TEST_ROWS)
        chosen = rng.permutation(len(data.y))[: min(n_rows, int(0.8 * len(data.y))) + n_test]
        X, y, task = data.X.iloc[chosen].reset_index(drop=True), data.y.iloc[chosen].reset_index(drop=True), data.task
    return _with_extra(X, str(settings["extra"]), n_extra, rng), y, task, n_test


def _with_extra(X: pd.DataFrame, extra: str, n_extra: int, rng: np.random.Generator) -> pd.DataFrame:
    """Add noise columns, or noisy copies of the numeric columns in cyclic order."""
    if extra == "none":
        return X
    values = rng.standard_normal((len(X), n_extra))
    if extra == "copies":
        numbers = X.select_dtypes("number").to_numpy(np.float64)
        numbers = np.where(np.isnan(numbers), np.nanmean(numbers, axis=0), numbers)
        original = numbers[:, np.arange(n_extra) % numbers.shape[1]]
        values = original + _COPY_NOISE * original.std(axis=0) * values
    return X.assign(**{f"{extra}{k + 1}": values[:, k] for k in range(n_extra)})
