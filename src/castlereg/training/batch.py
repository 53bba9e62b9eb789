"""Encoded rows as a batch: standardized, with what the sub-networks should predict."""

from __future__ import annotations

from typing import Any

from castlereg.data.scaling import Standardization, standardize
from castlereg.layout import Layout
from castlereg.objective import Batch


def as_batch(encoded: Any, weight: Any, by: Standardization, layout: Layout) -> Batch:
    """Standardize rows, and lay out what the sub-networks should predict.

    Parameters
    ----------
    encoded : NumPy or JAX array of shape (rows, channels)
    weight : array of shape (rows,)
        Of the rows in a mean.
    by : Standardization
        Of one member.
    layout : Layout

    Returns
    -------
    Batch
    """
    xp = encoded.__array_namespace__()
    x = standardize(encoded, by, layout)
    numeric = layout.is_kind("numeric")[layout.channel_nodes]
    truth = x if numeric.all() else xp.where(numeric, x, encoded)
    truth = truth[..., None] if layout.n_channels == layout.n_nodes else truth[..., layout.output_channels]
    if not layout.has_gaps:
        return Batch(x, truth, weight)
    # Standardized, the mean is zero: that is what missing values are filled with.
    missing = xp.isnan(truth[..., 0])
    x, truth = xp.where(xp.isnan(x), 0.0, x), xp.where(missing[..., None], 0.0, truth)
    return Batch(x, truth, weight, (~missing).astype(x.dtype))
