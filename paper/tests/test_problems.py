"""Random problems, and roles of nodes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from castlereg.causal import KnownWorld, example_dag, random_dag
from castlereg_paper import choose_target, random_problem, roles


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


def test_shapes_and_names() -> None:
    problem = random_problem(10, n_noise_columns=20, random_state=1)
    assert problem.X.shape == (500, 29)
    assert problem.X_test.shape == (1000, 29)
    assert problem.y.name == problem.y_test.name == "Y"
    assert list(problem.X.columns) == [name for name in problem.dag.columns if name != "Y"]
    assert len(roles(problem.dag, "Y").unrelated) == 20


@pytest.mark.parametrize("role", ["with_parents", "without_parents"])
def test_the_target_has_its_role(role: str) -> None:
    for seed in range(10):
        found = roles(random_problem(8, 20, role=role, random_state=seed).dag, "Y")
        assert bool(found.parents) == (role == "with_parents")
        assert found.parents or found.children


def test_noise_is_drawn_as_in_the_paper_unless_given() -> None:
    stds = [random_problem(5, 10, random_state=seed).model.noise_stds for seed in range(200)]
    assert all(len(set(one)) == 1 for one in stds)
    assert 0.3 <= min(stds)[0] < 0.35 < 0.95 < max(stds)[0] <= 1
    one, other = (random_problem(8, 10, noise_std=std, random_state=3) for std in (None, 0.5))
    pd.testing.assert_frame_equal(one.dag, other.dag)
    assert set(other.model.noise_stds) == {0.5}


def test_a_seed_repeats_everything() -> None:
    one, other = (random_problem(12, 30, function="smooth", random_state=5) for _ in range(2))
    pd.testing.assert_frame_equal(one.X, other.X, check_exact=True)
    pd.testing.assert_series_equal(one.y_test, other.y_test, check_exact=True)


def test_the_papers_largest_problem_and_its_floor() -> None:
    problem = random_problem(150, random_state=0)
    assert problem.X.shape == (7500, 149)
    best = problem.best_error
    assert 0 < best.standardized < 1
    assert best is problem.best_error
    assert best.raw <= problem.model.noise_stds[0] ** 2


def test_linear_sums_stay_finite() -> None:
    problem = random_problem(150, 50, function="linear", branching=150, random_state=0)
    assert np.isfinite(problem.X.to_numpy()).all()
    assert 0 < problem.best_error.raw < 1
