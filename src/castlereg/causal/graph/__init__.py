"""The learned graph: reading, editing, drawing and scoring it, and constraints on its edges.

``scores`` compares a graph with a known one, ``sortability`` with the scale and the predictability of the columns.
"""

from castlereg.causal.graph import scores, sortability
from castlereg.causal.graph.causal_graph import CausalGraph
from castlereg.causal.graph.constraints import EdgeConstraints

__all__ = ["CausalGraph", "EdgeConstraints", "scores", "sortability"]
