"""Shared data of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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


@pytest.fixture(scope="session")
def dask_cluster() -> Iterator[Any]:
    """A scheduler and two worker processes; tests that use it have ``xdist_group("dask")``."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # as in the process of the tests
        with distributed.LocalCluster(**options, host="127.0.0.1", silence_logs=50) as cluster:
            yield cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests of one parameter on one worker, which compiles their program once (``--dist loadgroup``)."""
    for item in items:
        parameters = getattr(item, "callspec", None)
        which = None if parameters is None else parameters.params.get("estimator", parameters.params.get("name"))
        if which is not None:
            item.add_marker(pytest.mark.xdist_group(repr(which)))
