"""Encoded rows in one array, with empty rows behind them and at an address that the trainer need not copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.layout import EdgeRules, Layout

_ALIGNMENT = 64  # bytes; JAX takes an array that begins at a multiple of these as it is, and copies any other


@dataclass(frozen=True)
class Table:
    """Encoded rows."""

    inputs: NDArray[Any]  # (rows, channels): near one, or 0 and 1 of levels and indicators; NaN for missing
    layout: Layout
    weight: NDArray[Any] | None = None  # (rows,), positive; all alike by default
    constant: tuple[int, ...] = ()  # nodes that get no edges
    edges: EdgeRules | None = None  # which edges may be and which must be
    room: NDArray[Any] | None = None  # from room_for, begins with the inputs; it saves the trainer a copy


def rounded_up(n: int) -> int:
    """Round a length up, so that tables of different length run the same program.

    To powers of two until 1024, then in steps of an eighth.

    Examples
    --------
    >>> [rounded_up(n) for n in (3, 100, 1025, 100_000)]
    [16, 128, 1152, 106496]
    """
    power = 1 << max(n - 1, 15).bit_length()
    if n <= 1024:
        return power
    step = power // 16
    return -(-n // step) * step


def room_for(n_rows: int, n_channels: int, dtype: Any = np.float32) -> NDArray[Any]:
    """Return zeros for ``n_rows`` rows and the empty ones behind them, of which there is at least one.

    Examples
    --------
    >>> room_for(20, 3).shape
    (32, 3)
    """
    rows = rounded_up(n_rows + 1)
    spare = _ALIGNMENT // np.dtype(dtype).itemsize
    zeros = np.zeros(rows * n_channels + spare, dtype)
    first = (-zeros.ctypes.data % _ALIGNMENT) // zeros.itemsize
    return zeros[first : first + rows * n_channels].reshape(rows, n_channels)


def with_empty_rows(inputs: NDArray[Any], room: NDArray[Any] | None = None) -> NDArray[Any]:
    """Return rows with the empty ones behind them: ``room``, of which they are the beginning, or a copy."""
    if room is not None:
        return room
    room = room_for(len(inputs), inputs.shape[1], inputs.dtype)
    room[: len(inputs)] = inputs
    return room
