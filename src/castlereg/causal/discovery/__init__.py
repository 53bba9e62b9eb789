"""Find the graph that the rows support, for any kind of data: one judge, several starts, and edge probabilities.

:mod:`castlereg.causal.discovery.judge` scores a column given others, :mod:`castlereg.causal.discovery.climb` searches for the best
graph, and :mod:`castlereg.causal.discovery.evidence` turns the losses of other graphs into probabilities.
"""

from castlereg.causal.discovery.columns import Column, columns_of, number
from castlereg.causal.discovery.discover import MOST_ROWS, Discovery, discover

__all__ = ["MOST_ROWS", "Column", "Discovery", "columns_of", "discover", "number"]
