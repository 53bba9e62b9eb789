"""How tests compile: most of their time would go into optimizing programs that run for a fraction of a second."""

from __future__ import annotations

import jax
import pytest

# What is compiled as users have it: the formulas, the trainer, the examples of the README and the pages.
_OPTIMIZED = ("tests/training/", "tests/graph/", "tests/tables/", "tests/synthetic/", "tests/test_")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave most of XLA's optimizations out where shapes are many and small."""
    jax.config.update("jax_disable_most_optimizations", not item.nodeid.startswith(_OPTIMIZED))
