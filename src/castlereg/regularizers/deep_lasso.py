"""Deep Lasso: a group lasso on the gradient of the loss in each column."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from castlereg.castle import supervised_loss
from castlereg.layout import Layout
from castlereg.losses import Batch, cell_losses
from castlereg.network import Parameters, forward
from castlereg.options import check_number
from castlereg.regularizers.norms import root
from castlereg.regularizers.protocol import Own, Pass, Regularizer


@dataclass(frozen=True)
class DeepLasso(Regularizer):
    """Add ``strength * sum_j ||dL / dX_j||_2``: for every column, the norm of the gradient of the loss in it.

    Deep Lasso [1]_ is newer than the CASTLE paper, which does not include it. ``L`` is the loss of the targets on the
    rows of a step, and ``X_j`` are the inputs of column j in these rows. A column that the network does not use has
    norm zero: the sum acts on the columns of a network as the lasso acts on those of a linear model.

    Parameters
    ----------
    strength : float
        Factor of the sum.

    Notes
    -----
    All inputs of a column are one group: the levels of a category, a missing indicator, the seasons of a date.
    Embeddings of numbers are differentiated through. The columns are standardized.

    ``L`` is a mean over the rows of a step, as in the paper. The norms are therefore root mean squares of the gradients
    of single rows, divided by the root of the number of rows: larger batches need a larger strength.

    The gradient ignores what other regularizers do between the layers, such as dropout and batch norm. Rows are
    weighted as in the loss.

    The paper weighs loss and penalty by ``1 - w`` and ``w``, which is ``strength = w / (1 - w)`` up to a common factor;
    the authors' code tries ``w`` from 0.01 to 0.5. It has a group for every numeric input, none for categories, and
    adds 1e-8 under the root.

    References
    ----------
    .. [1] Cherepanova, Levin, Somepalli, Geiping, Bruss, Wilson, Goldstein, Goldblum: A Performance-Driven Benchmark
       for Feature Selection in Tabular Deep Learning. NeurIPS 2023.

    Examples
    --------
    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([DeepLasso(0.1)], max_epochs=2, random_state=0).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
    >>> "deep_lasso" in model.history_
    True
    """

    strength: float = 0.1

    terms = ("deep_lasso",)

    def __post_init__(self) -> None:
        check_number("DeepLasso's strength", self.strength, least=0)

    def penalty(self, seen: Pass, own: Own) -> tuple[Array, dict[str, Array]]:
        """Return the weighted sum and the sum."""
        norms = loss_gradient_norms(seen.target_parameters, seen.batch, seen.layout, seen.null_loss)
        return self.strength * jnp.sum(norms), {"deep_lasso": jnp.sum(norms)}


def loss_gradient_norms(parameters: Parameters, batch: Batch, layout: Layout, null_loss: Array | None = None) -> Array:
    """Return the norm of the gradient of the targets' loss in the inputs of each node over a batch, shape (nodes,).

    Parameters
    ----------
    parameters : Parameters
        Of the targets' sub-networks.
    batch : Batch
    layout : Layout
    null_loss : array of shape (nodes,), optional
        Units of the losses, see :func:`castlereg.losses.cell_losses`.
    """

    def loss(x: Array) -> Array:
        outputs = forward(parameters, x)
        return supervised_loss(cell_losses(outputs, batch, layout, jnp.asarray(layout.targets), null_loss), batch)

    squares = jnp.sum(jax.grad(loss)(batch.inputs) ** 2, axis=0)
    membership = layout.channel_nodes == np.arange(layout.n_nodes)[:, None]
    return root(membership.astype(squares.dtype) @ squares)
