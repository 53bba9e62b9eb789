"""Data with a known graph."""

from castlereg.synthetic.graphs import erdos_renyi_dag, example_dag, random_dag, scale_free_dag, weighted_dag
from castlereg.synthetic.model import StructuralModel, sample
from castlereg.synthetic.targets import Roles, choose_target, roles

__all__ = [
    "Roles",
    "StructuralModel",
    "choose_target",
    "erdos_renyi_dag",
    "example_dag",
    "random_dag",
    "roles",
    "sample",
    "scale_free_dag",
    "weighted_dag",
]
