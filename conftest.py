"""How tests compile: most of their time would go into optimizing programs that run for a fraction of a second."""

from __future__ import annotations

import os

import jax
import pytest
from jax.sharding import Mesh

from castlereg.training import devices, program

# XLA's older way to compile fused operations takes a quarter of the time; its programs are slower. Processes that
# tests start inherit it, but for the journey, which goes as users do.
_OLDER = "--xla_cpu_use_fusion_emitters=false"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_OLDER}".strip()

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
    "tests/test_selection.py::test_parts_change_nothing",
)


def _as_large_programs(mesh: Mesh, *, quick: bool) -> dict[str, bool]:
    return {**devices.compiler_options(mesh), "xla_cpu_use_fusion_emitters": True}


@pytest.fixture(autouse=True)
def _compile_quickly(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave most of XLA's optimizations out where shapes are many and small."""
    optimized = request.node.nodeid.startswith(_OPTIMIZED)
    jax.config.update("jax_disable_most_optimizations", not optimized)
    if optimized:
        monkeypatch.setattr(program, "compiler_options", _as_large_programs)
        program.compiled.cache_clear()
