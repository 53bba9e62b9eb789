"""The loss of the rows that a member is stopped by, inside a compiled program."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from castlereg.data.scaling import Standardization
from castlereg.layout import Layout
from castlereg.network import Parameters
from castlereg.objective import Batch, cell_losses, supervised_loss, target_outputs
from castlereg.training.batch import as_batch
from castlereg.training.row_shares import RowShares

# Rows that are kept standardized while epochs run. More are taken in blocks and standardized each time, since they
# would be another table; numbers of rows beyond the limit are multiples of the block, see ``rounded_up``.
_MOST_AT_ONCE = 65_536
_BLOCK = 8192


def validation_loss(
    gather: Callable[[Array], tuple[Array, Array]], rows: Array, by: Standardization, layout: Layout, shares: RowShares
) -> Callable[[Parameters], Array]:
    """Return the function from a network to the mean loss of rows.

    Parameters
    ----------
    gather : callable
        Returns the encoded channels and the weights of rows.
    rows : array of int, shape (rows,)
    by : Standardization
        Of the member.
    layout : Layout
    shares : RowShares
        Of the devices, which each gather some of the rows.

    Returns
    -------
    callable
    """
    targets = jnp.asarray(layout.targets)

    def loss(network: Parameters, batch: Batch) -> Array:
        outputs = target_outputs(network, batch.inputs, layout)
        return supervised_loss(cell_losses(outputs, batch, layout, targets, by.null_loss), batch)  # type: ignore[arg-type]

    if rows.shape[0] <= _MOST_AT_ONCE:
        encoded, weight = gather(rows)
        batch = as_batch(encoded, weight, by, layout)
        batch = batch._replace(weight=batch.weight / shares.sum(jnp.sum(batch.weight)))
        return lambda network: shares.sum(loss(network, batch))

    def in_blocks(network: Parameters) -> Array:
        def add(number: Array, total: Array) -> Array:
            encoded, weight = gather(lax.dynamic_slice_in_dim(rows, number * _BLOCK, _BLOCK))
            own = jnp.sum(weight)
            mean = loss(network, as_batch(encoded, weight / jnp.where(own > 0, own, 1.0), by, layout))
            return total + jnp.stack([own * mean, own])

        total = shares.sum(lax.fori_loop(0, rows.shape[0] // _BLOCK, add, jnp.zeros(2, jnp.float32)))
        return total[0] / total[1]

    return in_blocks
