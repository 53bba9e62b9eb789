"""Causality: discovery of the graph, knowledge about it, structural equations, effects and synthetic worlds."""
