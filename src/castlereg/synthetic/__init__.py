"""Data with a known graph."""

from castlereg.synthetic.floors import BestClassification, BestError
from castlereg.synthetic.graphs import erdos_renyi_dag, example_dag, random_dag, scale_free_dag, weighted_dag
from castlereg.synthetic.model import StructuralModel, sample
from castlereg.synthetic.problems import Problem, random_problem
from castlereg.synthetic.targets import Roles, choose_target, roles

__all__ = [
    "BestClassification",
    "BestError",
    "Problem",
    "Roles",
    "StructuralModel",
    "choose_target",
    "erdos_renyi_dag",
    "example_dag",
    "random_dag",
    "random_problem",
    "roles",
    "sample",
    "scale_free_dag",
    "weighted_dag",
]
