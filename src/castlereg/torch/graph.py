"""The graph of a module's input layers, by the rules of the estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from castlereg.acyclicity.cut import acyclic_cut, weakest_strong_weight
from castlereg.causal.graph.causal_graph import CausalGraph
from castlereg.fitted.thresholds import highest_harmless
from castlereg.layout import Layout
from castlereg.network import edge_weights
from castlereg.torch.castle import SubNetworks
from castlereg.torch.losses import Batch, as_tensor, node_losses
from castlereg.torch.network import checked_names


def input_graph(
    network: SubNetworks,
    names: Sequence[str] | None = None,
    *,
    validation: Batch | None = None,
    threshold: float | None = None,
) -> CausalGraph:
    """Return the acyclic graph of the edges that a network has learned.

    The weight of an edge is the norm of its input weights, the paper's ``M`` (:func:`castlereg.network.edge_weights`).
    Edges below the threshold are dropped. The others are kept from the strongest down, except those that close a cycle.

    Parameters
    ----------
    network : CastleNetwork or WrappedNetwork
        With the sub-networks of all nodes.
    names : sequence of str, optional
        Names of the nodes, in the order of the layout; by default those of the network, or x0, x1, ... and y.
    validation : Batch, optional
        Validation rows, to choose the threshold as estimators do: the highest that costs no accuracy, or the smallest
        weight of a strong edge if that is lower. To try a threshold, columns below it are replaced by their mean.
    threshold : float, optional
        A fixed threshold; 0 keeps all edges except those that close a cycle. By default, without validation rows, the
        smallest weight of a strong edge (:func:`castlereg.acyclicity.cut.weakest_strong_weight`).

    Examples
    --------
    >>> from castlereg.torch import CastleNetwork, input_graph
    >>> graph = input_graph(CastleNetwork(3, (4, 4), seed=0), ["age", "bmi", "bp", "progression"])
    >>> graph.is_dag, graph.target
    (True, 'progression')
    """
    layout = network.layout
    weights = network.masked_input_weights.detach().cpu().numpy()
    if weights.shape[1] != layout.n_nodes:
        raise ValueError("the network has only the targets' sub-networks and no graph; create it without targets_only")
    named = checked_names(names, layout) or network.names or _default_names(layout)
    by_edge = edge_weights(weights, layout, linear=network.is_linear)
    if threshold is None:
        threshold = weakest_strong_weight(acyclic_cut(by_edge))
        if validation is not None:
            strongest = by_edge[: layout.n_features, layout.n_features :].max(axis=1)
            with evaluating(network):
                threshold = min(threshold, highest_harmless(strongest, _row_losses(network, validation)))
    return CausalGraph.from_weights(by_edge, named, [named[k] for k in layout.targets], threshold=threshold)


def _row_losses(network: SubNetworks, rows: Batch) -> Callable[[NDArray[np.bool_]], NDArray[np.float64]]:
    """Return the function from features to keep, shape (choices, features), to losses, shape (choices, rows)."""
    layout, targets = network.layout, list(network.layout.targets)

    def losses_of(choices: NDArray[np.bool_]) -> NDArray[np.float64]:
        losses = []
        for features in choices:
            channels = np.r_[features, np.ones(len(targets), bool)][layout.channel_nodes]
            outputs = network.target_outputs(rows.inputs * as_tensor(channels, rows.inputs.dtype, rows.inputs.device))
            by_row = node_losses(outputs, rows.truth[:, targets], layout, targets).sum(dim=1)
            losses.append((by_row * rows.weight * len(rows.weight)).cpu().numpy().astype(np.float64))
        return np.stack(losses)

    return losses_of


@contextmanager
def evaluating(network: SubNetworks) -> Iterator[None]:
    """Run a network without gradients and without dropout, and restore the mode of its modules afterwards."""
    modules = list(network.modules()) if isinstance(network, nn.Module) else []
    modes = [module.training for module in modules]
    for module in modules:
        module.training = False
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode


def _default_names(layout: Layout) -> tuple[str, ...]:
    targets = ("y",) if len(layout.targets) == 1 else tuple(f"y{k}" for k in range(len(layout.targets)))
    return (*(f"x{k}" for k in range(layout.n_features)), *targets)
