"""Facts of tables whose redundancy, noise and shape are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from castlereg.advising import table_facts


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
