"""Compare regularizers on a table."""

from castlereg.comparison.methods import LATER_METHODS, PAPER_METHODS
from castlereg.comparison.result import Comparison
from castlereg.comparison.run import compare
from castlereg.comparison.significance import Significance

__all__ = ["LATER_METHODS", "PAPER_METHODS", "Comparison", "Significance", "compare"]
