"""Engines that train a stack: programs compiled by JAX, or the native kernels of castlereg-kernels."""

from __future__ import annotations

from collections.abc import Iterable

from castlereg.training.engines import native
from castlereg.training.engines.jax_engine import JaxEngine, has_accelerator
from castlereg.training.state import Setup


def engine_for(setup: Setup) -> JaxEngine | native.NativeEngine:
    """Return the engine for a stack, according to its plan; ValueError if it needs "native", which cannot train it.

    Stacks pass and read NumPy arrays; those of members have a leading member axis. In between, an engine may store them
    in any form. ``"auto"`` is the native engine if it supports the stack and is faster, and JAX has no accelerator.
    """
    choice, reason = setup.plan.engine, native.why_not_covered(setup)
    if choice == "jax" or (choice == "auto" and (reason or not native.is_faster(setup) or has_accelerator())):
        return JaxEngine(setup)
    if reason is not None:
        raise ValueError(
            f"engine='native' cannot train these networks ({reason}); use engine='auto', which trains them with JAX"
        )
    return native.NativeEngine(setup)


def all_names(names: Iterable[str]) -> str:
    """Join the names of the engines that trained parts of a model, such as "jax, native"."""
    return ", ".join(sorted({name for joined in names for name in joined.split(", ") if name}))
