"""Neural networks on tables, regularized by learning the causal graph of the columns (CASTLE)."""

from castlereg.estimators import CastleClassifier, CastleRegressor
from castlereg.graph import CausalGraph

__version__ = "0.1.0.dev0"

__all__ = ["CastleClassifier", "CastleRegressor", "CausalGraph"]
