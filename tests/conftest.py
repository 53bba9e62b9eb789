"""Shared data of the tests."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.layout import Layout, Node


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def mixed_layout() -> Layout:
    """Two numeric nodes, a binary one, one of three levels, and a numeric target."""
    return Layout((Node(), Node(), Node("binary"), Node("categorical", 3), Node(target=True)))
