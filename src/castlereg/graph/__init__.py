"""The learned graph."""

from castlereg.graph.causal_graph import CausalGraph

__all__ = ["CausalGraph"]
