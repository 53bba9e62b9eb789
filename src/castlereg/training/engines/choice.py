"""Which engine a stack gets."""

from __future__ import annotations

from collections.abc import Iterable

from castlereg.training.devices import are_chosen
from castlereg.training.engines import native
from castlereg.training.engines.accelerators import has_accelerator
from castlereg.training.engines.jax_engine import JaxEngine
from castlereg.training.engines.protocol import Engine
from castlereg.training.setup import Setup


def engine_for(setup: Setup, *, in_memory: bool = True) -> Engine:
    """Return the engine that the plan of a stack asks for.

    ``"auto"`` is the native engine where it covers the stack and is faster. It is JAX where the user has chosen devices
    of JAX or has an accelerator, and for rows that are not in memory.

    Raises
    ------
    ValueError
        If the plan asks for the native engine and it does not cover the stack.
    """
    choice = setup.plan.engine
    if choice == "jax" or (choice == "auto" and not _prefers_native(setup, in_memory)):
        return JaxEngine(setup)
    reason = native.why_not_covered(setup) if in_memory else "rows are read from a file in chunks"
    if reason is not None:
        raise ValueError(
            f"engine='native' cannot train these networks ({reason}): use engine='auto', which takes JAX for them"
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
