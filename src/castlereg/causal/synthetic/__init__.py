"""Synthetic data with a known graph."""

from castlereg.causal.synthetic.graphs import erdos_renyi_dag, example_dag, random_dag, scale_free_dag, weighted_dag
from castlereg.causal.synthetic.model import KnownWorld, sample

__all__ = [
    "KnownWorld",
    "erdos_renyi_dag",
    "example_dag",
    "random_dag",
    "sample",
    "scale_free_dag",
    "weighted_dag",
]
