"""Advice before training: whether CASTLE is likely to pay on a table."""

from castlereg.advising.advise import Advice, advice
from castlereg.advising.facts import TableFacts, table_facts

__all__ = ["Advice", "TableFacts", "advice", "table_facts"]
