"""Rows where the trainer wants them: one float32 array, with empty rows behind and at an address that needs no copy."""

from __future__ import annotations

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.training.batches import rounded_up

_ALIGNMENT = 64  # bytes; JAX takes an array that begins at a multiple of these as it is, and copies any other


def room_for(n_rows: int, n_channels: int) -> NDArray[np.float32]:
    """Return zeros for so many rows and the empty ones behind them, of which there is at least one.

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
    """Return rows with the empty ones behind them: the array that they are the beginning of, or a copy.

    Parameters
    ----------
    inputs : array of shape (rows, channels)
    room : array from :func:`room_for`, optional
        Of which ``inputs`` is the beginning.

    Returns
    -------
    array of shape (rounded rows, channels)
    """
    if room is not None:
        return room
    room = room_for(*inputs.shape)
    room[: len(inputs)] = inputs
    return room


def release() -> None:
    """Let go of tables that nobody trains on: JAX does so at its next call, which may be long after."""
    jax.device_put(np.zeros(0, np.float32))
