"""Edge strengths: how much worse an effect is predicted when an edge is left out.

The paper's weight of an edge is a norm of input weights (eq. 7), which is hard to compare between effects: later layers
may enlarge a small weight or shrink a large one, and effects differ in their noise and their kind. The strength of an
edge is in units of likelihood, the same for all effects.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.losses import Batch, cell_losses, mean_losses, node_scores
from castlereg.network import Parameters, after_input_layer, input_layer, network_inputs

_MOST_ROWS, _LEAST_ROWS = 2000, 128
_MOST_OPERATIONS = 1e11  # a few seconds
_MOST_UNITS = 2**22  # of all rows; with more, passes are limited by memory


def edge_strengths(
    parameters: Parameters, batch: Batch, layout: Layout, null_loss: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Return the strength of every edge, shape (nodes, nodes): above 0 and at most 1, and 0 without an edge.

    Removing an edge, which replaces every value of its cause by the mean, lowers the effect's log-likelihood per row by
    ``c``. The strength is ``sqrt(1 - exp(-2 c))``. For a numeric effect, its square is the share of the squared error
    that disappears when the edge is added. Like a correlation, the strength is 0 for an edge that carries nothing and 1
    for one that carries everything.

    Parameters
    ----------
    parameters : Parameters
        NumPy arrays, of all sub-networks.
    batch : Batch
        NumPy arrays; see :func:`enough_rows` for how many.
    layout : Layout
    null_loss : array of shape (nodes,), optional
        Units of the losses, see :func:`castlereg.losses.cell_losses`; 1 by default.

    Examples
    --------
    A target that is twice its only cause, plus noise:

    >>> import numpy as np
    >>> from castlereg.layout import Layout, Node
    >>> layout = Layout((Node(), Node(), Node(target=True)))
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1000, 3))
    >>> x[:, 2] = (2 * x[:, 0] + rng.normal(size=1000)) / np.sqrt(5)
    >>> weights = np.zeros((3, 3, 1))
    >>> weights[0, 2] = 2 / np.sqrt(5)
    >>> network = Parameters(weights, np.zeros((3, 1)), (), None, None)
    >>> edge_strengths(network, Batch(x, x[:, :, None], np.full(1000, 1 / 1000)), layout).round(1)
    array([[0. , 0. , 0.9],
           [0. , 0. , 0. ],
           [0. , 0. , 0. ]])
    """
    units: Any = np.ones(layout.n_nodes, batch.inputs.dtype) if null_loss is None else null_loss
    weighed = input_layer(parameters, batch.inputs)
    inputs = network_inputs(parameters.embedding, batch.inputs)
    if parameters.embedding is not None:  # of standardized channels: those of a mean of zero are not zero
        inputs = inputs - network_inputs(parameters.embedding, np.zeros_like(batch.inputs[:1]))  # type: ignore[arg-type]

    def scores(weighed: Any) -> NDArray[np.float64]:
        losses = cell_losses(after_input_layer(parameters, weighed), batch, layout, None, units)
        return np.asarray(node_scores(mean_losses(losses, batch), layout, units), np.float64)

    with_all = scores(weighed)
    cost = np.zeros((layout.n_nodes, layout.n_nodes))
    for cause in range(layout.n_nodes):
        of_cause = np.flatnonzero(layout.input_nodes == cause)
        # Standardized channels have a mean of zero, so this is what the layer returns for a cause at its mean.
        share = np.tensordot(inputs[:, of_cause], parameters.input_weights[of_cause], axes=1)
        cost[cause] = scores(weighed - share) - with_all
    is_edge = np.zeros_like(cost, dtype=bool)
    np.logical_or.at(is_edge, layout.input_nodes, (np.asarray(parameters.input_weights) != 0).any(axis=-1))
    strength = np.sqrt(-np.expm1(-2 * np.maximum(cost, 0)))
    return np.where(is_edge, np.maximum(strength, np.finfo(np.float32).tiny), 0.0)


def enough_rows(layout: Layout, width: int) -> int:
    """Return how many rows are enough to measure strengths, fewer for many nodes or a wide layer.

    Examples
    --------
    >>> from castlereg.layout import Layout, Node
    >>> enough_rows(Layout((*[Node()] * 30, Node(target=True))), 31)
    2000
    """
    n = layout.n_nodes
    enough = min(_MOST_OPERATIONS / (2 * n * n * width * (width + 1)), _MOST_UNITS / (n * width))
    return int(np.clip(enough, _LEAST_ROWS, _MOST_ROWS))
