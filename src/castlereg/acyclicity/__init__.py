"""How far a weighted graph is from having no directed cycle."""

from castlereg.acyclicity.exponential import ACYCLICITY, trace_exponential, truncated_series

__all__ = ["ACYCLICITY", "trace_exponential", "truncated_series"]
