"""Advice: the rule is followed, and what is printed says what was measured."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from castlereg import advice
from castlereg.advising.facts import TableFacts
from castlereg.advising.rule import QUESTIONS, expected_gain, measured_rule

FACTS = TableFacts(rows=200, columns=20, redundancy=0.5, unrelated=0.4, linear=0.3, flexible=0.5)


def leaves(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node] if "question" not in node else leaves(node["below"]) + leaves(node["above"])


def test_every_question_has_an_answer_for_people() -> None:
    leaf = {"typical": 1.0, "low": 0.0, "high": 2.0, "cases": 3}
    for name in QUESTIONS:
        value = getattr(FACTS, name)
        for limit, branch in ((value - 0.01, "above"), (value + 0.01, "below")):
            rule = {"question": name, "limit": limit, "below": leaf | {"cases": 1}, "above": leaf | {"cases": 2}}
            assert expected_gain(FACTS, rule).cases == (2 if branch == "above" else 1)


def test_the_measured_rule_covers_every_table() -> None:
    content = measured_rule()
    for leaf in leaves(content["rule"]):
        assert leaf["low"] <= leaf["typical"] <= leaf["high"]
        assert leaf["cases"] >= 20
    assert sum(leaf["cases"] for leaf in leaves(content["rule"])) >= 60 * 5
    assert content["check"]["tables"] >= 5
    assert all(math.isfinite(value) for value in content["check"].values())


def test_advice_prints_the_facts() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    expected = advice(X, X[:, 0] + rng.standard_normal(200))
    text = str(expected)
    for part in (
        "200, 40 per column",
        "expected gain",
        "redundancy",
        f"{measured_rule()['check']['inside the range']:.0%} of gains",
        f"{expected.gain.typical:.0f} %",
    ):
        assert part in text


def test_a_misspelt_task_names_the_choices() -> None:
    with pytest.raises(ValueError, match="classification"):
        advice(np.zeros((9, 2)), np.arange(9), task="classifcation")  # type: ignore[arg-type]
