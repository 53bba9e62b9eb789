"""Reproduction of the paper: its tables and figures, its datasets, Theorem 1, and code that only they need.

The rest of castlereg does not depend on this package. Submodules are imported on first use.

- :mod:`castlereg.paper.experiments`: every table and figure; ``castlereg experiment`` runs them
- :mod:`castlereg.paper.datasets`: the paper's tables, and tables with a known graph
- :mod:`castlereg.paper.acyclicity`: other acyclicity functions, for comparison with that of the paper
- :func:`generalization_bound`: Theorem 1 for a fitted estimator, term by term
- :func:`best_error`, :func:`parents_only_error`, :func:`best_classification`: errors that no predictor can beat
- :func:`random_problem`: the paper's synthetic problems
- :func:`choose_target`, :func:`roles`: choose a target in a graph; the roles of the other nodes
- :class:`ReleasedCastle`, :func:`released_options`: the method as in the authors' released code
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from castlereg.paper import acyclicity, datasets, experiments
    from castlereg.paper.bound import GeneralizationBound, generalization_bound
    from castlereg.paper.floors import (
        BestClassification,
        BestError,
        best_classification,
        best_error,
        parents_only_error,
    )
    from castlereg.paper.problems import Problem, random_problem
    from castlereg.paper.released import ReleasedCastle, released_options
    from castlereg.paper.targets import Roles, choose_target, roles

__all__ = [
    "BestClassification",
    "BestError",
    "GeneralizationBound",
    "Problem",
    "ReleasedCastle",
    "Roles",
    "acyclicity",
    "best_classification",
    "best_error",
    "choose_target",
    "datasets",
    "experiments",
    "generalization_bound",
    "parents_only_error",
    "random_problem",
    "released_options",
    "roles",
]

_MODULES: Final = {
    "BestClassification": "floors",
    "BestError": "floors",
    "GeneralizationBound": "bound",
    "Problem": "problems",
    "ReleasedCastle": "released",
    "released_options": "released",
    "best_classification": "floors",
    "best_error": "floors",
    "generalization_bound": "bound",
    "parents_only_error": "floors",
    "random_problem": "problems",
    "Roles": "targets",
    "choose_target": "targets",
    "roles": "targets",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
