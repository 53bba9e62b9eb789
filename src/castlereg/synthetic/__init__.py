"""Data with a known graph."""

from castlereg.synthetic.graphs import example_dag, random_dag
from castlereg.synthetic.sampling import sample

__all__ = ["example_dag", "random_dag", "sample"]
