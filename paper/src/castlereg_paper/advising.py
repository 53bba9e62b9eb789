"""Advice before training: facts about a table, and the gain of CASTLE on measured tables with the same facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import f as f_distribution
from sklearn.covariance import ledoit_wolf
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict

from castlereg_paper.protocol import standardized_columns

__all__ = ["Advice", "ExpectedGain", "TableFacts", "advice", "expected_gain", "table_facts"]

_MOST_ROWS = 3000  # enough for all measurements; larger tables are sampled
_SIGNIFICANT = 0.05
_PENALTIES = np.geomspace(0.1, 1000, 9)


@dataclass(frozen=True)
class TableFacts:
    """A table in a few numbers."""

    rows: int
    columns: int
    redundancy: (
        float  # share of a column's variance that a linear model predicts from the others; the mean over columns
    )
    unrelated: float  # share of the columns whose linear relation to the target is not significant (5 %)
    linear: float  # share of the target's variance (of indicators for classes) that ridge regression predicts left out
    flexible: float  # the same for randomized trees

    @property
    def rows_per_column(self) -> float:
        """Number of rows per column."""
        return self.rows / self.columns

    @property
    def nonlinearity(self) -> float:
        """Share of the target's variance that trees predict, minus that of a linear model."""
        return self.flexible - self.linear


def table_facts(
    X: ArrayLike, y: ArrayLike, *, task: Literal["auto", "regression", "classification"] = "auto"
) -> TableFacts:
    """Measure a table; the parameters are those of :func:`advice`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> facts = table_facts(*load_diabetes(return_X_y=True))
    >>> facts.rows, facts.columns, round(facts.redundancy, 1), round(facts.linear, 1)
    (442, 10, 0.6, 0.5)
    """
    inputs, nodes, target = standardized_columns(X, y, task)
    n_rows, n_columns = len(inputs), int(nodes.max()) + 1
    if n_rows > _MOST_ROWS:
        chosen = np.random.default_rng(0).permutation(n_rows)[:_MOST_ROWS]
        inputs, target = inputs[chosen], target[chosen]
    ridge = RidgeCV(_PENALTIES * len(inputs) / 100)
    trees = ExtraTreesRegressor(100, min_samples_leaf=3, max_features=0.5, random_state=0)
    return TableFacts(
        n_rows,
        n_columns,
        _redundancy(inputs, nodes),
        float(np.mean([_is_unrelated(inputs[:, nodes == node], target) for node in range(n_columns)])),
        _predicted_share(ridge, inputs, target),
        _predicted_share(trees, inputs, target),
    )


def _redundancy(inputs: NDArray[np.float64], nodes: NDArray[np.int64]) -> float:
    """Return the mean share of a column's variance that the others predict, from a shrunk covariance.

    The covariance of a block of channels, given all others, is the inverse of its block of the precision matrix.
    """
    varies = inputs.std(axis=0) > 0
    inputs, nodes = inputs[:, varies], nodes[varies]
    if len(np.unique(nodes)) < 2:
        return 0.0
    covariance, _ = ledoit_wolf(inputs)
    precision = np.linalg.inv(covariance)
    shares = []
    for node in np.unique(nodes):
        of_node = np.flatnonzero(nodes == node)
        block = np.ix_(of_node, of_node)
        shares.append(1 - np.trace(np.linalg.inv(precision[block])) / np.trace(covariance[block]))
    return float(np.clip(np.mean(shares), 0, 1))


def _is_unrelated(channels: NDArray[np.float64], target: NDArray[np.float64]) -> bool:
    """Return whether an F test finds no linear relation of a column to the target."""
    channels = channels[:, channels.std(axis=0) > 0]
    n_rows, n_channels = channels.shape
    if not n_channels or n_rows <= n_channels + 1:
        return True
    design = np.column_stack([np.ones(n_rows), channels])
    fitted = design @ np.linalg.lstsq(design, target, rcond=None)[0]
    residual, total = np.square(target - fitted).sum(), np.square(target - target.mean(axis=0)).sum()
    freedom = n_rows - n_channels - 1
    ratio = (total - residual) / n_channels / max(residual / freedom, 1e-12 * total / n_rows)
    return bool(f_distribution.sf(ratio, n_channels, freedom) > _SIGNIFICANT)


def _predicted_share(model: Any, inputs: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    """Return the share of the target's variance that a model predicts in cross-validation."""
    if len(inputs) < 5:
        return 0.0
    folds = KFold(5, shuffle=True, random_state=0)
    predicted = cross_val_predict(model, inputs, target if target.shape[1] > 1 else target[:, 0], cv=folds)
    error = np.square(predicted.reshape(target.shape) - target).sum()
    return float(max(0.0, 1 - error / np.square(target - target.mean(axis=0)).sum()))


# Facts that the rule may use, and descriptions of values above and below a limit.
QUESTIONS: dict[str, tuple[str, str]] = {
    "rows": ("more than {:.0f} rows", "at most {:.0f} rows"),
    "columns": ("more than {:.0f} columns", "at most {:.0f} columns"),
    "rows_per_column": ("more than {:.0f} rows per column", "at most {:.0f} rows per column"),
    "redundancy": ("a redundancy above {:.2f}", "a redundancy of at most {:.2f}"),
    "unrelated": ("more than {:.0%} of the columns unrelated", "at most {:.0%} of the columns unrelated"),
    "linear": ("a linear model predicts more than {:.0%}", "a linear model predicts at most {:.0%}"),
    "nonlinearity": (
        "trees predict over {:.0%} more than a linear model",
        "trees predict at most {:.0%} more than a linear model",
    ),
}


@dataclass(frozen=True)
class ExpectedGain:
    """Expected gain of CASTLE: the reduction of the error against a plain network, in percent."""

    typical: float  # median
    low: float  # low to high has the middle 80 % of the cases
    high: float
    cases: int  # number of measured tables with the same answers
    because: tuple[str, ...]  # the answers for this table


def expected_gain(facts: TableFacts, rule: Mapping[str, Any] | None = None) -> ExpectedGain:
    """Return the gain of a rule for a table.

    Parameters
    ----------
    facts : TableFacts
    rule : mapping, optional
        A question with two rules, or a leaf; by default the rule in ``rule.json``, which experiments wrote.

    Examples
    --------
    >>> leaf = {"typical": 9.0, "low": 2.0, "high": 20.0, "cases": 80}
    >>> other = {"typical": 0.0, "low": -3.0, "high": 3.0, "cases": 90}
    >>> rule = {"question": "rows_per_column", "limit": 15.0, "below": leaf, "above": other}
    >>> expected_gain(TableFacts(200, 20, 0.5, 0.5, 0.3, 0.4), rule)
    ExpectedGain(typical=9.0, low=2.0, high=20.0, cases=80, because=('at most 15 rows per column',))
    """
    node = measured_rule()["rule"] if rule is None else rule
    because = []
    while "question" in node:
        is_above = getattr(facts, node["question"]) > node["limit"]
        because.append(QUESTIONS[node["question"]][0 if is_above else 1].format(node["limit"]))
        node = node["above" if is_above else "below"]
    return ExpectedGain(node["typical"], node["low"], node["high"], node["cases"], tuple(because))


@cache
def measured_rule() -> dict[str, Any]:
    """Read the rule that the experiment ``when_it_pays`` wrote: ``rule``, and ``check`` on other tables."""
    content: dict[str, Any] = json.loads(files("castlereg_paper").joinpath("rule.json").read_text("utf-8"))
    return content


_WORTH_IT = 1.0  # percent


@dataclass(frozen=True)
class Advice:
    """The expected gain of CASTLE on a table; print it to read it."""

    facts: TableFacts
    gain: ExpectedGain

    def __str__(self) -> str:
        facts, gain = self.facts, self.gain
        in_range = measured_rule()["check"]["inside the range"]  # of tables that were not used to learn the rule
        lines = {
            "rows": f"{facts.rows:,}, {facts.rows_per_column:.0f} per column",
            "columns": f"{facts.columns:,}; {facts.unrelated:.0%} without a significant linear relation to the target",
            "redundancy": f"{facts.redundancy:.2f}: the share of a column that the other columns predict",
            "target": f"a linear model predicts {facts.linear:.0%} of its variance, trees {facts.flexible:.0%}",
            "expected gain": f"{gain.typical:.0f} %; {gain.low:.0f} to {gain.high:.0f} % on most similar tables",
            "similar tables": f"{gain.cases} measured, with {', '.join(gain.because)}",
            "reliability": f"a rough rule: on tables of other kinds, {in_range:.0%} of gains were in its ranges",
        }
        width = max(map(len, lines))
        return "\n".join([*(f"{name:<{width}}  {text}" for name, text in lines.items()), "", self._recommendation()])

    def _recommendation(self) -> str:
        if self.gain.low > 0:
            verdict = "CASTLE is likely to predict better than a plain network here."
        elif self.gain.typical >= _WORTH_IT:
            verdict = "CASTLE often predicts better than a plain network on such tables, not always."
        else:
            verdict = "Expect no better predictions from CASTLE than from a plain network."
        return f"{verdict} CastleRegressorCV and CastleClassifierCV train both and weight them by held-out rows."


def advice(X: ArrayLike, y: ArrayLike, *, task: Literal["auto", "regression", "classification"] = "auto") -> Advice:
    """Estimate how much CASTLE gains on a table, before training anything.

    This is a rule of thumb that the experiment ``when_it_pays`` learned on random graphs and real tables: it answers a
    few questions about the table and looks up the gain on measured tables with the same answers. The gain is that of
    the paper's CASTLE over a plain network with the same folds and initial weights.

    Parameters
    ----------
    X : DataFrame of pandas or polars, or array-like of shape (rows, features)
        Text, missing values and dates are allowed, as in :meth:`castlereg.CastleRegressor.fit`. If there are more than
        3,000 rows, a random sample is measured.
    y : array-like of shape (rows,)
    task : {"auto", "regression", "classification"}
        By default inferred from ``y``: text, booleans and few whole numbers that repeat are classes.

    Returns
    -------
    Advice
        Print it to read it; ``facts`` and ``gain`` contain the numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg_paper import advice
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> expected = advice(X, y)
    >>> expected.facts.columns, expected.gain.low < expected.gain.high
    (10, True)
    """
    facts = table_facts(X, y, task=task)
    return Advice(facts, expected_gain(facts, measured_rule()["rule"]))
