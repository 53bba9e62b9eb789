"""What the package exports, and what it must not import."""

from __future__ import annotations

import subprocess
import sys

import castlereg.causal.graph
from castlereg.causal.graph import scores, sortability


def test_public_names_exist() -> None:
    assert all(hasattr(castlereg.causal.graph, name) for name in castlereg.causal.graph.__all__)
    assert callable(scores.graph_scores) and callable(sortability.varsortability)


def test_building_a_graph_does_not_import_networkx() -> None:
    """It takes a fifth of a second, which every first fit would pay for."""
    code = """
import sys
import numpy as np
from castlereg import CausalGraph, EdgeConstraints
known = EdgeConstraints(required=[("a", "b")]).rules(["a", "b"])
graph = CausalGraph.from_members(np.ones((2, 2, 2)), ["a", "b"], target="b", required=known.required)
assert graph.parents("b") == ["a"] and graph.summary()
assert "networkx" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
