"""Choice of the engine for a stack."""

from __future__ import annotations

from collections.abc import Iterable

from castlereg.training.devices import are_chosen
from castlereg.training.engines import native
from castlereg.training.engines.accelerators import has_accelerator
from castlereg.training.engines.jax_engine import JaxEngine
from castlereg.training.engines.protocol import Engine
from castlereg.training.setup import Setup


def engine_for(setup: Setup, *, in_memory: bool = True) -> Engine:
    """Return the engine for a stack, according to its plan.

    ``"auto"`` is the native engine if it supports the stack and is faster. It is JAX if the user has chosen JAX devices
    or has an accelerator, and for rows that are not in memory.

    Raises
    ------
    ValueError
        If the plan requires the native engine and it does not support the stack.
    """
    choice = setup.plan.engine
    if choice == "jax" or (choice == "auto" and not _prefers_native(setup, in_memory)):
        return JaxEngine(setup)
    reason = native.why_not_covered(setup) if in_memory else "rows are read from a file in chunks"
    if reason is not None:
        raise ValueError(
            f"engine='native' cannot train these networks ({reason}); use engine='auto', which trains them with JAX"
        )
    return native.NativeEngine(setup)


def _prefers_native(setup: Setup, in_memory: bool) -> bool:
    if not in_memory or are_chosen() or native.why_not_covered(setup) is not None:
        return False
    return native.is_faster(setup) and not has_accelerator()


def all_names(names: Iterable[str]) -> str:
    """Join the names of the engines that trained parts of a model.

    Examples
    --------
    >>> all_names(["native", "jax", "native"]), all_names(["jax", "jax"])
    ('jax, native', 'jax')
    """
    return ", ".join(sorted({name for joined in names for name in joined.split(", ") if name}))
