"""The graph that trained networks have learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from castlereg.acyclicity.cut import acyclic_cut, weakest_strong_weight
from castlereg.causal.discovery import Discovery
from castlereg.causal.graph.causal_graph import LEFT_OUT_ROWS, CausalGraph
from castlereg.causal.graph.sortability import ColumnTraits
from castlereg.fitted.held_out import HeldOut
from castlereg.fitted.networks import Networks
from castlereg.fitted.strengths import enough_rows
from castlereg.fitted.thresholds import sparsest_threshold
from castlereg.layout import EdgeRules
from castlereg.regularizers import Regularizer
from castlereg.regularizers.castle import castle_of
from castlereg.table.table import Table


def learned_graph(
    networks: Networks,
    names: Sequence[str],
    regularizers: Sequence[Regularizer],
    *,
    held_out: HeldOut,
    some_rows: Callable[[int], Table],
    traits: ColumnTraits | None,
    edges: EdgeRules | None,
    agreement_of: str = "",
    others: Sequence[Networks] = (),
    discovery: Discovery | None = None,
) -> CausalGraph:
    """Return one graph of networks that have the sub-networks of all columns.

    The weight of an edge is the norm of its input weights, as in the paper; for the graph objective it is the edge
    strength on rows from ``some_rows``, which takes the number of rows. The threshold is the highest that costs no
    accuracy, or the smallest weight of a strong edge if that is lower. Names and edges are in the user's order. The
    confidence counts the graphs of these networks, and of ``others`` if there are any. A graph that was discovered
    before the networks were trained keeps its edges and its own probabilities.
    """
    castle = castle_of(regularizers)
    if castle is not None and castle.objective == "graph":
        widest = max(networks.hidden_layer_sizes, default=1)
        weights = networks.edge_strengths(some_rows(enough_rows(networks.layout, widest)))
    else:
        weights = networks.edge_weights()
    if discovery is not None:
        return _discovered(weights, names, discovery, networks, traits)
    mean = np.asarray(weights.mean(axis=0))
    required = None if edges is None else edges.required
    threshold = min(sparsest_threshold(networks, mean, held_out), weakest_strong_weight(acyclic_cut(mean, required)))
    return CausalGraph.from_members(
        weights,
        names,
        target=list(names[networks.layout.n_features :]),
        threshold=threshold,
        replicas=np.concatenate([weights, *(other.edge_weights() for other in others)]) if others else None,
        required=required,
        traits=traits,
        agreement_of=agreement_of,
    )


def _discovered(
    weights: NDArray[np.float64],
    names: Sequence[str],
    discovery: Discovery,
    networks: Networks,
    traits: ColumnTraits | None,
) -> CausalGraph:
    """Return a discovered graph with mean strengths as edge weights, and columns in the user's order."""
    position = np.argsort(networks.preprocessing.node_order())
    in_users_order = np.ix_(position, position)
    joined, direction = discovery.joined[in_users_order], discovery.direction[in_users_order]
    strengths = np.where(
        discovery.edges[in_users_order], np.maximum(weights.mean(axis=0), np.finfo(np.float32).tiny), 0.0
    )
    targets = tuple(names[networks.layout.n_features :])
    return CausalGraph(
        tuple(names), targets, strengths, strengths, joined, direction, 0.0, 0.0, traits, agreement_of=LEFT_OUT_ROWS
    )
