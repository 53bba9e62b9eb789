"""Cells are replaced whole, by those of another row, about as often as asked for."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from castlereg.layout import Layout, Node
from castlereg.losses import Batch
from castlereg.regularizers import Corruption

LAYOUT = Layout((Node(), Node("categorical", 3), Node(target=True)))


def test_cells_come_from_other_rows_with_all_their_channels() -> None:
    rows, present = 400, 390
    inputs = np.zeros((rows, 5), np.float32)
    inputs[:, 0] = np.arange(rows)
    inputs[np.arange(rows), 1 + np.arange(rows) % 3] = 1
    weight = np.where(np.arange(rows) < present, 1 / present, 0.0).astype(np.float32)
    batch = Batch(jnp.asarray(inputs), jnp.zeros((rows, 3, 3)), jnp.asarray(weight))
    changed = Corruption(0.3).on_batch(batch, jnp.asarray([1, 2], jnp.uint32), LAYOUT)
    after = np.asarray(changed.inputs)
    differs = after[:, 0] != inputs[:, 0]
    assert 0.22 < differs[:present].mean() < 0.38
    assert not differs[present:].any()
    donor = np.flatnonzero(differs)
    np.testing.assert_array_equal(after[donor, 0], (donor + 1) % present)
    np.testing.assert_array_equal(after[:, 1:4].sum(axis=1), 1)  # a level stays one level
    assert (after[:, 1:4] != inputs[:, 1:4]).any(axis=1)[~differs].any()  # columns by themselves
    np.testing.assert_array_equal(changed.truth, batch.truth)


def test_rate_is_a_share() -> None:
    with pytest.raises(ValueError, match=r"Corruption's rate=1\.0 must be at least 0 and below 1"):
        Corruption(1.0)
