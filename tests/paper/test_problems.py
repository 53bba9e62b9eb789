"""Problems on random graphs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from castlereg.paper import random_problem
from castlereg.paper.targets import roles


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
