"""Neural networks on tables, regularized by learning the causal graph of the columns (CASTLE)."""

from typing import TYPE_CHECKING

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
    "generalization_bound",
    "load",
    "onnx_inputs",
    "save",
    "to_onnx",
    "use_devices",
]

if TYPE_CHECKING:
    from castlereg.bound import generalization_bound
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
else:
    # Names are imported when they are used, so that `castlereg --help` does not wait for JAX.
    _MODULES = ("graph", "estimators", "persistence", "comparison", "onnx", "bound", "training.mesh")

    def __getattr__(name):
        from importlib import import_module

        if name in __all__:
            for path in _MODULES:
                module = import_module(f"castlereg.{path}")
                if hasattr(module, name):
                    globals()[name] = getattr(module, name)
                    return globals()[name]
        elif not name.startswith("_"):
            try:
                return import_module(f"castlereg.{name}")  # such as castlereg.regularizers
            except ModuleNotFoundError as error:
                if error.name != f"castlereg.{name}":
                    raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})
