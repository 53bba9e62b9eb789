"""Encoded rows in one float32 array, with empty rows behind them and at an address that the trainer need not copy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castlereg.layout import EdgeRules, Layout

_ALIGNMENT = 64  # bytes; JAX takes an array that begins at a multiple of these as it is, and copies any other


@dataclass(frozen=True)
class Table:
    """Encoded rows."""

    inputs: NDArray[np.float32]  # (rows, channels): near one, or 0 and 1 of levels and indicators; NaN for missing
    layout: Layout
    weight: NDArray[np.float32] | None = None  # (rows,), positive; all alike by default
    constant: tuple[int, ...] = ()  # nodes that get no edges
    edges: EdgeRules | None = None  # which edges may be and which must be
    room: NDArray[np.float32] | None = None  # from room_for, begins with the inputs; it saves the trainer a copy


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


def room_for(n_rows: int, n_channels: int) -> NDArray[np.float32]:
    """Return zeros for ``n_rows`` rows and the empty ones behind them, of which there is at least one.

    Examples
    --------
    >>> room_for(20, 3).shape
    (32, 3)
    """
    rows = rounded_up(n_rows + 1)
    spare = _ALIGNMENT // 4
    zeros = np.zeros(rows * n_channels + spare, np.float32)
    first = (-zeros.ctypes.data % _ALIGNMENT) // 4
    return zeros[first : first + rows * n_channels].reshape(rows, n_channels)


def with_empty_rows(inputs: NDArray[np.float32], room: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """Return rows with the empty ones behind them: ``room``, of which they are the beginning, or a copy."""
    if room is not None:
        return room
    room = room_for(*inputs.shape)
    room[: len(inputs)] = inputs
    return room
