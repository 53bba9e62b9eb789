"""Compare regularizers on a table."""

from castlereg.comparison.methods import PAPER_METHODS
from castlereg.comparison.result import Comparison
from castlereg.comparison.run import compare
from castlereg.comparison.significance import Significance

__all__ = ["PAPER_METHODS", "Comparison", "Significance", "compare"]
