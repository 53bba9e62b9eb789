"""Neural networks on tables, regularized by learning the causal graph of the columns (CASTLE)."""

from castlereg.comparison import Comparison, compare
from castlereg.estimators import (
    CastleClassifier,
    CastleMultiOutput,
    CastleRegressor,
    NetworkClassifier,
    NetworkMultiOutput,
    NetworkRegressor,
)
from castlereg.graph import CausalGraph

__version__ = "0.1.0.dev0"

__all__ = [
    "CastleClassifier",
    "CastleMultiOutput",
    "CastleRegressor",
    "CausalGraph",
    "Comparison",
    "NetworkClassifier",
    "NetworkMultiOutput",
    "NetworkRegressor",
    "compare",
]
