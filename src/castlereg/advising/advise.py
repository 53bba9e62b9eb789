"""Advice on a table before training: whether CASTLE is likely to predict better than a plain network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from castlereg.advising.facts import TableFacts, table_facts
from castlereg.advising.rule import ExpectedGain, expected_gain, measured_rule

_WORTH_IT = 1.0  # percent


@dataclass(frozen=True)
class Advice:
    """The expected gain of CASTLE on a table; print it to read it.

    Attributes
    ----------
    facts : TableFacts
        Measurements of the table.
    gain : ExpectedGain
        Expected reduction of the error by CASTLE against a plain network, in percent.
    """

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
    >>> from castlereg import advice
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> expected = advice(X, y)
    >>> expected.facts.columns, expected.gain.low < expected.gain.high
    (10, True)
    """
    facts = table_facts(X, y, task=task)
    return Advice(facts, expected_gain(facts, measured_rule()["rule"]))
