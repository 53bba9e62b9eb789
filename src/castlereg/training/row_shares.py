"""The rows of a batch shared out over devices, seen from inside the compiled program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array, lax


@dataclass(frozen=True)
class RowShares:
    """Shares of the rows, one for each device along the mesh axis ``rows``.

    Every device computes the loss of its share with row weights ``n_devices`` times as large. A loss that is a
    weighted sum over rows plus terms that depend on no row is then the mean of what the devices have, and its
    gradient is the mean of theirs: no term counts twice, whichever they are.

    Parameters
    ----------
    n_devices : int
        With 1, nothing here does anything.
    """

    n_devices: int

    def own(self, rows: Array, empty_row: int) -> Array:
        """Take this device's share of row numbers, shape (..., batch) to (..., share), filled up with the empty row."""
        if self.n_devices == 1:
            return rows
        share = -(-rows.shape[-1] // self.n_devices)
        missing = share * self.n_devices - rows.shape[-1]
        filled = jnp.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, missing)], constant_values=empty_row)
        return lax.dynamic_slice_in_dim(filled, lax.axis_index("rows") * share, share, axis=-1)

    def sum(self, shares: Array) -> Array:
        """Add up what the devices have."""
        return shares if self.n_devices == 1 else lax.psum(shares, "rows")

    def mean(self, tree: Any) -> Any:
        """Average what the devices have, array by array."""
        return tree if self.n_devices == 1 else lax.pmean(tree, "rows")
