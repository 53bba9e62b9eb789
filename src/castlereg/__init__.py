"""Neural networks on tables, regularized by learning the causal graph of the columns (CASTLE)."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from castlereg import forks as _forks  # noqa: F401  # detects forks from now on

__version__ = "0.2.0.dev0"

# Names are imported on first use, so `import castlereg` and `castlereg --help` do not wait for JAX.
_HOMES = {
    "Advice": "advising",
    "Castle": "regularizers",
    "CausalGraph": "causal.graph",
    "Comparison": "comparison",
    "EdgeConstraints": "causal.graph",
    "Evaluation": "evaluation",
    "FitWarning": "notices",
    "PermutationImportance": "explanation",
    "Recipe": "estimators.recipe",
    "ShapValues": "explanation",
    "StructuralModel": "causal.structural",
    "advice": "advising",
    "compare": "comparison",
    "evaluate": "evaluation",
    "explain": "explanation",
    "load": "persistence",
    "onnx_inputs": "onnx",
    "partial_dependence": "explanation",
    "save": "persistence",
    "to_onnx": "onnx",
    "use_devices": "training.devices",
    "write_report": "report",
}  # all others are estimators
_SUBMODULES = {
    *("acyclicity", "callbacks", "castle", "estimators", "causal", "paper", "regularizers"),
    "work",
}

__all__ = [
    "Advice",
    "Castle",
    "CastleClassifier",
    "CastleClassifierCV",
    "CastleMultiOutput",
    "CastleRegressor",
    "CastleRegressorCV",
    "CausalGraph",
    "Comparison",
    "EdgeConstraints",
    "Evaluation",
    "FitWarning",
    "NetworkClassifier",
    "NetworkClassifierCV",
    "NetworkMultiOutput",
    "NetworkRegressor",
    "NetworkRegressorCV",
    "PermutationImportance",
    "Recipe",
    "ShapValues",
    "StructuralModel",
    "advice",
    "compare",
    "evaluate",
    "explain",
    "load",
    "onnx_inputs",
    "partial_dependence",
    "save",
    "to_onnx",
    "use_devices",
    "write_report",
]

if TYPE_CHECKING:
    from castlereg.advising import Advice, advice
    from castlereg.causal.graph import CausalGraph, EdgeConstraints
    from castlereg.causal.structural import StructuralModel
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
    from castlereg.evaluation import Evaluation, evaluate
    from castlereg.explanation import PermutationImportance, ShapValues, explain, partial_dependence
    from castlereg.notices import FitWarning
    from castlereg.onnx import onnx_inputs, to_onnx
    from castlereg.persistence import load, save
    from castlereg.regularizers import Castle
    from castlereg.report import write_report
    from castlereg.training.devices import use_devices
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
