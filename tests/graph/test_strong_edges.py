"""The split of weights into strong and weak ones."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from castlereg.graph.strong_edges import strong_edges


@settings(deadline=None, max_examples=100)
@given(st.integers(2, 30), st.integers(0, 2**32 - 1))
def test_no_other_split_leaves_less_variance_inside_the_groups(n: int, seed: int) -> None:
    """Otsu's criterion, against all splits one by one."""
    weights = np.random.default_rng(seed).lognormal(size=n)
    inside = {}
    for threshold in weights:
        groups = [weights[weights >= threshold], weights[weights < threshold]]
        inside[threshold] = sum(((g - g.mean()) ** 2).sum() for g in groups if len(g))
    strong = strong_edges(weights)
    assert inside[weights[strong].min()] <= min(inside.values()) * (1 + 1e-9)
    np.testing.assert_array_equal(strong_edges(1000 * weights), strong)


def test_weights_that_are_all_alike_are_all_strong() -> None:
    np.testing.assert_array_equal(strong_edges(np.array([[0, 2.0], [2.0, 0]])), [[False, True], [True, False]])
    assert not strong_edges(np.zeros((3, 3))).any()
    np.testing.assert_array_equal(strong_edges(np.array([0.0, 1.0, 0.0])), [False, True, False])
