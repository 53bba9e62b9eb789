"""How tests compile: most of their time would go into optimizing programs that run for a fraction of a second."""

from __future__ import annotations

import jax
import pytest

# What is compiled as users have it: the formulas and the trainer.
_OPTIMIZED = (
    "tests/training/",
    "tests/test_acyclicity",
    "tests/test_network",
    "tests/test_objective",
    "tests/regularizers/test_castle",
)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave most of XLA's optimizations out where shapes are many and small."""
    jax.config.update("jax_disable_most_optimizations", not item.nodeid.startswith(_OPTIMIZED))
