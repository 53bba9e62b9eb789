"""How tests compile: most of their time would go into optimizing programs that run for a fraction of a second."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from importlib.util import find_spec

import jax
import pytest

from castlereg.training.engines import jax_engine

# Its doctests need an extra.
collect_ignore_glob = [] if find_spec("torch") else ["src/castlereg/torch.py"]

# XLA's older way to compile fused operations takes a quarter of the time; its programs are slower. Processes that
# tests start inherit it, except for the journey, which runs as users do.
_OLDER = "--xla_cpu_use_fusion_emitters=false"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_OLDER}".strip()


def _is_optimized(item: pytest.Item) -> bool:
    return item.get_closest_marker("optimized") is not None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave most of XLA's optimizations out where shapes are many and small, in fixtures of modules too."""
    jax.config.update("jax_disable_most_optimizations", not _is_optimized(item))


@pytest.fixture(autouse=True)
def _optimize(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile tests marked as optimized as users have it."""
    if _is_optimized(request.node):
        options = {"xla_cpu_use_fusion_emitters": True}
        monkeypatch.setattr(jax_engine, "_compiler_options", lambda platform, *, quick: options)
        jax_engine.compiled.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def _forget_programs() -> Iterator[None]:
    """Release the programs that a module has compiled: a process that keeps them all grows beyond four gigabytes."""
    yield
    jax_engine.compiled.cache_clear()
    jax.clear_caches()
    gc.collect()


# Long tests first, so that no worker waits for one that began last.
_LONGEST = ("tests/test_journey.py", "paper/tests/test_experiments.py", "tests/test_examples.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the longest tests to the front, otherwise in the order of the files."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST))
