"""Which graph the rows speak for, whatever kind of data they are: one judge, several starts, and how sure it is.

:mod:`castlereg.discovery.judge` scores a column given others, :mod:`castlereg.discovery.climb` searches for the best
graph, :mod:`castlereg.discovery.evidence` turns what other graphs lose into probabilities.
"""

from castlereg.discovery.columns import Column, columns_of, number
from castlereg.discovery.discover import MOST_ROWS, Discovery, discover

__all__ = ["MOST_ROWS", "Column", "Discovery", "columns_of", "discover", "number"]
