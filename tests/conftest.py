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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests of one parameter on one worker, which compiles their program once (``--dist loadgroup``)."""
    for item in items:
        parameters = getattr(item, "callspec", None)
        which = None if parameters is None else parameters.params.get("estimator", parameters.params.get("name"))
        if which is not None:
            item.add_marker(pytest.mark.xdist_group(repr(which)))
