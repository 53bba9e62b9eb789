"""Causality: discovery of the graph, knowledge about it, structural equations, effects and known worlds."""

from castlereg.causal.discovery import discover_graph
from castlereg.causal.effects import Effect, WhatIf
from castlereg.causal.fitted_world import FittedWorld, structural_model
from castlereg.causal.graph import CausalGraph, InputGraph
from castlereg.causal.knowledge import EdgeConstraints, graph_rules
from castlereg.causal.structural import StructuralModel
from castlereg.causal.worlds import (
    KnownWorld,
    erdos_renyi_dag,
    example_dag,
    random_dag,
    sample,
    scale_free_dag,
    weighted_dag,
)

__all__ = [
    "CausalGraph",
    "EdgeConstraints",
    "Effect",
    "FittedWorld",
    "InputGraph",
    "KnownWorld",
    "StructuralModel",
    "WhatIf",
    "discover_graph",
    "erdos_renyi_dag",
    "example_dag",
    "graph_rules",
    "random_dag",
    "sample",
    "scale_free_dag",
    "structural_model",
    "weighted_dag",
]
