"""Neural networks on tables, regularized by learning the causal graph of the columns (CASTLE)."""

from castlereg.comparison import Comparison, compare
from castlereg.estimators import (
    CastleClassifier,
    CastleClassifierCV,
    CastleMultiOutput,
    CastleRegressor,
    CastleRegressorCV,
    NetworkClassifier,
    NetworkClassifierCV,
    NetworkMultiOutput,
    NetworkRegressor,
    NetworkRegressorCV,
)
from castlereg.graph import CausalGraph, EdgeConstraints
from castlereg.onnx import onnx_inputs, to_onnx
from castlereg.persistence import load, save
from castlereg.training.mesh import use_devices

__version__ = "0.1.0.dev0"

__all__ = [
    "CastleClassifier",
    "CastleClassifierCV",
    "CastleMultiOutput",
    "CastleRegressor",
    "CastleRegressorCV",
    "CausalGraph",
    "Comparison",
    "EdgeConstraints",
    "NetworkClassifier",
    "NetworkClassifierCV",
    "NetworkMultiOutput",
    "NetworkRegressor",
    "NetworkRegressorCV",
    "compare",
    "load",
    "onnx_inputs",
    "save",
    "to_onnx",
    "use_devices",
]
