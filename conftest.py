"""How tests compile: most of their time would go into optimizing programs that run for a fraction of a second."""

from __future__ import annotations

import jax
import pytest

# What is compiled as users have it: the measure of cycles, the forward pass, and training in the ways it can go.
_STACK = "tests/training/test_stack.py::"
_OPTIMIZED = (
    "tests/test_acyclicity.py",
    "tests/test_network",
    "tests/regularizers/test_castle",
    f"{_STACK}test_members_side_by_side",
    f"{_STACK}test_the_same_seed",
    f"{_STACK}test_sampling",
    f"{_STACK}test_exact_ends",
    f"{_STACK}test_best_epoch",
)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave most of XLA's optimizations out where shapes are many and small."""
    jax.config.update("jax_disable_most_optimizations", not item.nodeid.startswith(_OPTIMIZED))
