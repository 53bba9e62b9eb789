"""Facts of tables whose redundancy, noise and shape are known; the rule is followed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg_paper import advice
from castlereg_paper.advising import QUESTIONS, TableFacts, expected_gain, measured_rule, table_facts


def independent(n_rows: int = 2000, n_columns: int = 6) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n_rows, n_columns))


def test_independent_columns_are_not_redundant_and_copies_are() -> None:
    X = independent()
    y = X[:, 0] + 0.1 * independent(2000, 7)[:, 6]
    assert table_facts(X, y).redundancy < 0.02
    copies = X + 0.1 * np.random.default_rng(1).standard_normal(X.shape)
    both = table_facts(np.hstack([X, copies]), y)
    # A column is its copy less the copy's noise: 1 - 0.01 / 1.01 of its variance, a little less by shrinkage.
    assert both.redundancy == pytest.approx(1 - 0.01 / 1.01, abs=0.02)
    assert (both.rows, both.columns, both.rows_per_column) == (2000, 12, 2000 / 12)


def test_unrelated_columns_are_counted() -> None:
    X = independent()
    y = X[:, 0] - X[:, 1] + np.random.default_rng(2).standard_normal(2000)
    facts = table_facts(X, y)
    assert facts.unrelated == pytest.approx(4 / 6, abs=1 / 6 + 1e-9)  # one in twenty of the others seems related
    assert facts.linear == pytest.approx(2 / 3, abs=0.04)


def test_trees_show_what_a_line_does_not() -> None:
    X = independent()
    y = np.abs(X[:, 0])
    facts = table_facts(X, y)
    assert facts.linear < 0.05
    assert facts.nonlinearity > 0.7


def test_text_missing_values_and_classes() -> None:
    rng = np.random.default_rng(3)
    colour = rng.choice(["red", "green", "blue"], 300)
    size = np.where(rng.random(300) < 0.1, np.nan, rng.standard_normal(300))
    X = pd.DataFrame({"colour": colour, "size": size, "same": 1.0})
    with pytest.warns(UserWarning, match="constant columns"):
        facts = table_facts(X, np.where(colour == "red", "yes", "no"))
    assert facts.columns == 3
    assert facts.linear > 0.95
    assert facts.unrelated == pytest.approx(2 / 3)


def test_long_tables_are_sampled_and_the_answer_is_the_same_every_time() -> None:
    X = independent(20_000, 3)
    facts = table_facts(X, X[:, 0])
    assert facts == table_facts(X, X[:, 0])
    assert facts.rows == 20_000


def test_several_targets_raise() -> None:
    X = independent(50, 3)
    with pytest.raises(ValueError, match="2 targets"):
        table_facts(X, X[:, :2], task="regression")


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
