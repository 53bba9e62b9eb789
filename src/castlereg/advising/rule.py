"""A rule of thumb: questions about a table, and the measured gain on tables with the same answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from castlereg.advising.facts import TableFacts

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
    """Expected gain of CASTLE: the reduction of the error against a plain network, in percent.

    Attributes
    ----------
    typical, low, high : float
        Median, and the range of the middle 80 % of the cases.
    cases : int
        Number of measured tables with the same answers.
    because : tuple of str
        The answers for this table.
    """

    typical: float
    low: float
    high: float
    cases: int
    because: tuple[str, ...]


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
    content: dict[str, Any] = json.loads(files("castlereg.advising").joinpath("rule.json").read_text("utf-8"))
    return content
