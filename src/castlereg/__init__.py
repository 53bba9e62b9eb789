"""Neural networks on tables, regularized by learning the causal graph of the columns (CASTLE)."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from castlereg import forks as _forks  # noqa: F401  # detects forks from now on

__version__ = "0.3.0.dev0"

# Names are imported on first use, so `import castlereg` and `castlereg --help` do not wait for JAX.
_HOMES = {
    "Castle": "regularizers",
    "CausalGraph": "causal",
    "EdgeConstraints": "causal",
    "Evaluation": "evaluation",
    "FitWarning": "notices",
    "InputGraph": "causal",
    "Recipe": "search",
    "StructuralModel": "causal",
    "evaluate": "evaluation",
    "load": "persistence",
    "onnx_inputs": "onnx",
    "save": "persistence",
    "to_onnx": "onnx",
    "write_report": "report",
}  # all others are estimators
_SUBMODULES = {"acyclicity", "callbacks", "castle", "causal", "estimators", "losses", "regularizers"}

__all__ = [
    "Castle",
    "CastleClassifier",
    "CastleClassifierCV",
    "CastleRegressor",
    "CastleRegressorCV",
    "CausalGraph",
    "EdgeConstraints",
    "Evaluation",
    "FitWarning",
    "InputGraph",
    "NetworkClassifier",
    "NetworkRegressor",
    "Recipe",
    "StructuralModel",
    "evaluate",
    "load",
    "onnx_inputs",
    "save",
    "to_onnx",
    "write_report",
]

if TYPE_CHECKING:
    from castlereg.causal import CausalGraph, EdgeConstraints, InputGraph, StructuralModel
    from castlereg.estimators import (
        CastleClassifier,
        CastleClassifierCV,
        CastleRegressor,
        CastleRegressorCV,
        NetworkClassifier,
        NetworkRegressor,
    )
    from castlereg.evaluation import Evaluation, evaluate
    from castlereg.notices import FitWarning
    from castlereg.onnx import onnx_inputs, to_onnx
    from castlereg.persistence import load, save
    from castlereg.regularizers import Castle
    from castlereg.report import write_report
    from castlereg.search import Recipe
else:

    def __getattr__(name):
        if name in _SUBMODULES:
            return _import_module(f"castlereg.{name}")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(_import_module(f"castlereg.{_HOMES.get(name, 'estimators')}"), name)
        return globals()[name]

    def __dir__():
        return sorted({*globals(), *__all__, *_SUBMODULES})
