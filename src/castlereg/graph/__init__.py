"""The learned graph."""

from castlereg.graph.causal_graph import CausalGraph
from castlereg.graph.constraints import EdgeConstraints

__all__ = ["CausalGraph", "EdgeConstraints"]
