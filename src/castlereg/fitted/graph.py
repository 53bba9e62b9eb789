"""The graph that networks have learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from castlereg.acyclicity.cut import acyclic_cut, weakest_strong_weight
from castlereg.data.table import Table
from castlereg.fitted.networks import Networks
from castlereg.fitted.strengths import enough_rows
from castlereg.fitted.threshold import HeldOut, sparsest_threshold
from castlereg.graph.causal_graph import CausalGraph
from castlereg.graph.column_traits import ColumnTraits
from castlereg.layout import EdgeRules
from castlereg.regularizers import Regularizer
from castlereg.regularizers.castle import castle_of


def learned_graph(
    networks: Networks,
    names: Sequence[str],
    regularizers: Sequence[Regularizer],
    *,
    held_out: HeldOut,
    some_rows: Callable[[int], Table],
    traits: ColumnTraits | None,
    edges: EdgeRules | None,
) -> CausalGraph:
    """Make one graph of the networks' edges.

    Edges weigh what the paper says, the norm of their input weights; those of the graph objective, what they are worth
    to the likelihood, on at most as many rows as ``some_rows`` is asked for. The threshold is the highest that costs no
    accuracy, or the least weight of a strong edge, whichever is lower.

    Parameters
    ----------
    networks : Networks
        With the sub-networks of all columns.
    names : sequence of str
        Of features and targets, in the user's order.
    regularizers : sequence of Regularizer
        That the networks were trained with.
    held_out : HeldOut
        Validation rows.
    some_rows : callable
        Returns a table of at most so many training rows.
    traits : ColumnTraits or None
    edges : EdgeRules or None
        In the user's order.
    """
    castle = castle_of(regularizers)
    if castle is not None and castle.objective == "graph":
        widest = max(networks.hidden_layer_sizes, default=1)
        weights = networks.edge_strengths(some_rows(enough_rows(networks.layout, widest)))
    else:
        weights = networks.edge_weights()
    mean = np.asarray(weights.mean(axis=0))
    required = None if edges is None else edges.required
    threshold = min(sparsest_threshold(networks, mean, held_out), weakest_strong_weight(acyclic_cut(mean, required)))
    return CausalGraph.from_members(
        weights,
        names,
        target=list(names[networks.layout.n_features :]),
        threshold=threshold,
        required=required,
        traits=traits,
    )
