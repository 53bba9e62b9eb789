"""How tests compile: most of their time would go into optimizing programs that run for a fraction of a second."""

from __future__ import annotations

import os
from importlib.util import find_spec

import jax
import pytest
from jax.sharding import Mesh

from castlereg.training import devices, program

# Modules for packages that tests run without are not imported for their doctests.
_FOR_PACKAGES = {"autogluon": "autogluon", "tabarena": "tabarena", "pytabkit_benchmark": "pytabkit"}
collect_ignore = [
    f"src/castlereg/integrations/{module}.py" for module, package in _FOR_PACKAGES.items() if find_spec(package) is None
]
# Its doctests need an extra.
collect_ignore_glob = [] if find_spec("torch") else ["src/castlereg/torch/*"]

# XLA's older way to compile fused operations takes a quarter of the time; its programs are slower. Processes that
# tests start inherit it, except for the journey, which runs as users do.
_OLDER = "--xla_cpu_use_fusion_emitters=false"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_OLDER}".strip()

# What is compiled as users have it: the acyclicity function, the forward pass, and training in the ways it can go.
_OPTIMIZED = (
    "tests/acyclicity/test_exponential.py",
    "tests/test_network",
    "tests/test_castle.py::test_the_trainer",
    "tests/regularizers/test_castle",
    "tests/training/test_stack.py::test_members_side_by_side",
    "tests/training/test_stack.py::test_the_same_seed",
    "tests/training/test_stack.py::test_sampling",
    "tests/training/test_loop.py::test_best_epoch",
    "tests/training/test_plan.py::test_the_graph_objective",
    "tests/training/test_sources.py::test_one_chunk",
    "tests/search/test_grid.py::test_parts_change_nothing",
)


def _as_large_programs(mesh: Mesh, *, quick: bool = False) -> dict[str, bool]:
    return {**devices.compiler_options(mesh), "xla_cpu_use_fusion_emitters": True}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave most of XLA's optimizations out where shapes are many and small, in fixtures of modules too."""
    jax.config.update("jax_disable_most_optimizations", not item.nodeid.startswith(_OPTIMIZED))


@pytest.fixture(autouse=True)
def _optimize(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile the tests above as users have it."""
    if request.node.nodeid.startswith(_OPTIMIZED):
        monkeypatch.setattr(program, "compiler_options", _as_large_programs)
        program.compiled.cache_clear()
        program.compiled_in_parts.cache_clear()


# Long tests first, so that no worker waits for one that began last.
_LONGEST = ("tests/test_journey.py", "tests/paper/experiments/", "tests/test_examples.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the longest tests to the front, otherwise in the order of the files."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST))
