"""Roles of nodes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from castlereg.causal.synthetic import KnownWorld, example_dag, random_dag
from castlereg.paper.targets import choose_target, roles


def test_roles_around_the_examples_target() -> None:
    dag = KnownWorld(example_dag()).with_noise_columns(2).dag
    found = roles(dag, "Y")
    assert found.parents == ["X2", "X3"]
    assert found.children == ["X8", "X9"]
    assert found.spouses == ["X6"]
    assert found.siblings == ["X5", "X7"]
    assert found.distant == ["X1", "X4"]
    assert found.unrelated == ["noise1", "noise2"]


def test_every_node_has_one_role_the_first_that_fits() -> None:
    for seed in range(20):
        dag = random_dag(10, 15, seed)
        found = roles(dag, "X4")
        assert sorted(name for group in found for name in group) == sorted(set(dag.columns) - {"X4"})
        assert set(found.parents) == set(dag.index[dag["X4"] != 0])
        assert set(found.children) == set(dag.columns[dag.loc["X4"] != 0])
        spouses = {cause for child in found.children for cause in dag.index[dag[child] != 0]} - {"X4"}
        assert set(found.spouses) == spouses - set(found.parents) - set(found.children)
    # a cause of the target and of its child is a parent, not a spouse
    triangle = pd.DataFrame([[0, 1, 1], [0, 0, 1], [0, 0, 0]], index=list("ayc"), columns=list("ayc"))
    assert roles(triangle, "y").parents == ["a"]
    assert roles(triangle, "y").spouses == []


def test_a_target_without_parents_has_no_siblings() -> None:
    for seed in range(20):
        dag = random_dag(10, 15, seed)
        assert roles(dag, choose_target(dag, "without_parents", seed)).siblings == []


def test_every_node_of_a_role_is_chosen_and_no_other() -> None:
    dag = example_dag()
    rng = np.random.default_rng(0)
    dag.loc["alone"], dag["alone"] = 0, 0
    dag = dag.astype(int)
    chosen = {role: {choose_target(dag, role, rng) for _ in range(300)} for role in ("any", "with_parents")}
    assert chosen["any"] == set(dag.columns)
    assert chosen["with_parents"] == set(dag.columns) - {"X1", "alone"}
    assert {choose_target(dag, "without_parents", rng) for _ in range(20)} == {"X1"}


def test_roles_that_nobody_has_are_refused() -> None:
    empty = random_dag(3, 0, 0)
    for role in ("with_parents", "without_parents"):
        with pytest.raises(ValueError, match=f"role='{role}': the graph of 3 nodes and 0 edges has no such node"):
            choose_target(empty, role, 0)
    with pytest.raises(ValueError, match="did you mean 'with_parents'"):
        choose_target(empty, "with_parent", 0)
    with pytest.raises(ValueError, match="target='Z' is not a node"):
        roles(empty, "Z")
