"""Losses of cells for tensors: those of :mod:`castlereg.losses`, by the kind of node and with missing values."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from castlereg import losses as arrays
from castlereg.layout import Layout, Node
from castlereg.table.table import Standardization, Table, measure


class Batch(NamedTuple):
    """Rows of a table, as inputs of a network.

    Examples
    --------
    Standardized rows of numbers, the target last:

    >>> rows = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    >>> batch = Batch.of_numbers(rows)
    >>> batch.truth.shape, float(batch.weight.sum())
    (torch.Size([8, 3, 1]), 1.0)
    >>> float(batch.take([0, 1]).weight[0])
    0.5
    """

    inputs: Tensor  # (rows, channels), standardized
    truth: Tensor  # (rows, nodes, outputs), what the sub-networks should predict
    weight: Tensor  # (rows,), 1 / rows for a plain mean
    observed: Tensor | None = None  # (rows, nodes), 0 for missing values and 1 elsewhere; None if nothing is missing

    @classmethod
    def of_numbers(cls, x: Tensor) -> Batch:
        """Create a batch from standardized columns without missing values, shape (rows, nodes), targets last."""
        return cls(x, x[:, :, None], torch.full_like(x[:, 0], 1 / len(x)))

    @classmethod
    def of_table(
        cls, table: ArrayLike, layout: Layout, by: Standardization, *, dtype: torch.dtype | None = None
    ) -> Batch:
        """Create a batch from a table of numbers, which are standardized.

        Parameters
        ----------
        table : array-like of shape (rows, channels)
            In the order of the layout: numbers, 0 or 1 for binary columns and for each level of categorical ones, NaN
            for missing values (with 1 in the indicator that follows, and 0 otherwise).
        layout : Layout
        by : Standardization
            From :func:`standardization` of the training rows.
        dtype : torch.dtype, optional
            PyTorch's default dtype by default.
        """
        encoded = _checked(table, layout)
        weight: Any = np.full(len(encoded), 1 / max(len(encoded), 1))
        return cls.of_arrays(arrays.as_batch(encoded, weight, by, layout), dtype)

    @classmethod
    def of_arrays(
        cls, batch: arrays.Batch, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> Batch:
        """Convert a batch of NumPy or JAX arrays, such as that of :func:`castlereg.losses.as_batch`.

        By default, ``dtype`` is PyTorch's default dtype.
        """
        dtype = torch.get_default_dtype() if dtype is None else dtype
        inputs, truth, weight = (as_tensor(array, dtype, device) for array in batch[:3])
        observed = None if batch.observed is None else as_tensor(batch.observed, dtype, device)
        return cls(inputs, truth, weight, observed)

    def take(self, rows: Tensor | Sequence[int]) -> Batch:
        """Return some rows, with weights scaled so that a weighted sum over the rows is again a mean."""
        weight = self.weight[rows]
        weight = weight * (len(self.weight) / len(weight))
        return Batch(
            self.inputs[rows], self.truth[rows], weight, None if self.observed is None else self.observed[rows]
        )


def standardization(table: ArrayLike, layout: Layout) -> Standardization:
    """Compute the standardization of training rows, and the units of their losses.

    Parameters
    ----------
    table : array-like of shape (rows, channels)
        As in :meth:`Batch.of_table`.
    layout : Layout

    Returns
    -------
    Standardization
        NumPy arrays; its ``null_loss`` is that of :class:`castlereg.torch.CastleNetwork`.

    Examples
    --------
    >>> from castlereg.layout import Layout, Node
    >>> layout = Layout((Node("binary"), Node(target=True)))
    >>> table = [[0, 2.0], [1, 4.0], [1, 6.0]]
    >>> by = standardization(table, layout)
    >>> batch = Batch.of_table(table, layout, by)
    >>> batch.inputs[:, 1], batch.truth[:, 0, 0]
    (tensor([-1.2247,  0.0000,  1.2247]), tensor([0., 1., 1.]))
    """
    encoded = _checked(table, layout)
    return measure(Table(encoded, layout), [np.arange(len(encoded))])[0].of_member(0)


def _checked(table: ArrayLike, layout: Layout) -> NDArray[np.float64]:
    encoded = np.asarray(table, np.float64)
    if encoded.ndim != 2 or encoded.shape[1] != layout.n_channels:
        raise ValueError(f"the table has shape {encoded.shape}, but the layout has {layout.n_channels} channels")
    return encoded


def as_tensor(array: Any, dtype: torch.dtype, device: torch.device | str | None = None) -> Tensor:
    """Copy a NumPy or JAX array into a tensor."""
    return torch.tensor(np.asarray(array), dtype=dtype, device=device)


def cell_losses(
    outputs: Tensor,
    batch: Batch,
    layout: Layout,
    nodes: Sequence[int] | None = None,
    null_loss: Tensor | None = None,
) -> Tensor:
    """Return the loss of every cell, shape (rows, nodes), in a unit shared by all kinds, and 0 for missing values.

    Parameters
    ----------
    outputs : tensor of shape (rows, nodes, outputs)
        From a network.
    batch : Batch
        With the truth of all nodes.
    layout : Layout
    nodes : sequence of int, optional
        Nodes of ``outputs``; all by default.
    null_loss : tensor of shape (all nodes,), optional
        Entropy of the binary and categorical nodes, 1 for numeric ones; ones by default. Losses are divided by it: 1 is
        then the loss of a constant prediction, for every kind.
    """
    at = slice(None) if nodes is None else list(nodes)
    losses = node_losses(outputs, batch.truth[:, at], layout, nodes)
    if null_loss is not None:
        losses = losses / null_loss[at]
    return losses if batch.observed is None else losses * batch.observed[:, at]


def node_losses(outputs: Tensor, truth: Tensor, layout: Layout, nodes: Sequence[int] | None = None) -> Tensor:
    """Return the loss of every row and node by the node's kind, shape (rows, nodes, outputs) to (rows, nodes).

    The truth is standardized for numeric nodes, 0 or 1 for binary ones and for each level of categorical ones.
    ``nodes`` are the nodes of the second axis; all by default.
    """
    kinds = layout.nodes if nodes is None else [layout.nodes[k] for k in nodes]
    parts, first = [], 0
    for _, run in itertools.groupby(kinds, key=lambda node: (node.kind, node.levels)):
        alike = list(run)
        at = slice(first, first + len(alike))
        parts.append(_losses_of_kind(alike[0], outputs[:, at], truth[:, at]))
        first = at.stop
    return torch.cat(parts, dim=1)


def squared_error(outputs: Tensor, truth: Tensor) -> Tensor:
    """Return the loss of numeric nodes, of any shape."""
    return (outputs - truth) ** 2


def logistic_loss(logits: Tensor, truth: Tensor) -> Tensor:
    """Return the loss of binary nodes, of any shape; the truth is 0, 1 or a share in between."""
    return torch.logaddexp(logits, torch.zeros_like(logits)) - truth * logits


def softmax_loss(logits: Tensor, truth: Tensor) -> Tensor:
    """Return the loss of categorical nodes, shape (..., levels) to (...); the truth is one-hot or shares."""
    return torch.logsumexp(logits, dim=-1) - (truth * logits).sum(dim=-1)


def _losses_of_kind(node: Node, outputs: Tensor, truth: Tensor) -> Tensor:
    if node.kind == "categorical":
        return softmax_loss(outputs[..., : node.levels], truth[..., : node.levels])
    loss = squared_error if node.kind == "numeric" else logistic_loss
    return loss(outputs[..., 0], truth[..., 0])
