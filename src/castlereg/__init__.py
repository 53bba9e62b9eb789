"""Neural networks on tables, regularized by learning the causal graph of the columns (CASTLE)."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0.dev0"

# Names are imported when they are used, so that `import castlereg` and `castlereg --help` do not wait for JAX.
_HOMES = {
    "comparison": ("Comparison", "compare"),
    "estimators": (
        "CastleClassifier",
        "CastleClassifierCV",
        "CastleMultiOutput",
        "CastleRegressor",
        "CastleRegressorCV",
        "NetworkClassifier",
        "NetworkClassifierCV",
        "NetworkMultiOutput",
        "NetworkRegressor",
        "NetworkRegressorCV",
    ),
    "estimators.recipe": ("Recipe",),
    "graph": ("CausalGraph", "EdgeConstraints"),
    "onnx": ("onnx_inputs", "to_onnx"),
    "persistence": ("load", "save"),
    "regularizers": ("Castle",),
    "report": ("write_report",),
    "training.devices": ("use_devices",),
}
_SUBMODULES = ("acyclicity", "castle", "estimators", "graph", "paper", "regularizers", "synthetic")

__all__ = [
    "Castle",
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
    "Recipe",
    "compare",
    "load",
    "onnx_inputs",
    "save",
    "to_onnx",
    "use_devices",
    "write_report",
]

if TYPE_CHECKING:
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
    from castlereg.estimators.recipe import Recipe
    from castlereg.graph import CausalGraph, EdgeConstraints
    from castlereg.onnx import onnx_inputs, to_onnx
    from castlereg.persistence import load, save
    from castlereg.regularizers import Castle
    from castlereg.report import write_report
    from castlereg.training.devices import use_devices
else:

    def __getattr__(name):
        if name in _SUBMODULES:
            return _import_module(f"castlereg.{name}")
        for home, names in _HOMES.items():
            if name in names:
                globals()[name] = getattr(_import_module(f"castlereg.{home}"), name)
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__, *_SUBMODULES})
