"""The steps of a long epoch in blocks, so that not all of its rows are gathered at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

# Steps whose rows are gathered together. Gathering for every step alone was slower; a whole epoch's rows
# are a second table. Numbers of steps beyond the limit are multiples of the block, see ``rounded_up``.
_BLOCK = 128
_MOST_AT_ONCE = 1024


def steps_in_blocks(
    step: Callable[[Any, Any, Array, Any], Any],
    gather: Callable[[Any, int], Any],
    room: int,
    steps: Array,
    carry: Any,
) -> Any:
    """Take steps one after the other.

    Parameters
    ----------
    step : callable
        ``step(gathered, first, i, carry)`` returns the carry after step ``i``; the gathered ones begin with ``first``.
    gather : callable
        ``gather(first, size)`` returns what some steps need.
    room : int
        Steps that there is room for.
    steps : array of int, shape ()
        Steps to take.
    carry
        What a step changes.

    Returns
    -------
    carry
    """
    if room <= _MOST_AT_ONCE:
        return lax.fori_loop(0, steps, partial(step, gather(0, room), 0), carry)

    def block(number: Array, carry: Any) -> Any:
        first = number * _BLOCK
        return lax.fori_loop(
            first, jnp.minimum(first + _BLOCK, steps), partial(step, gather(first, _BLOCK), first), carry
        )

    return lax.fori_loop(0, -(-steps // _BLOCK), block, carry)
