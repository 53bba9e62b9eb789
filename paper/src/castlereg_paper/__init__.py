"""The laboratory of castlereg: the paper's tables and figures, datasets and theorem, and comparisons of methods.

It uses only public names of castlereg, and castlereg does not depend on it. Names are imported on first use.

- :mod:`castlereg_paper.experiments`: every table and figure; the command ``castlereg-paper run`` runs them
- :func:`compare`: regularizers on a table; :func:`advice`: whether CASTLE is likely to pay on it
- :mod:`castlereg_paper.datasets`: the paper's tables, and tables with a known graph
- :mod:`castlereg_paper.graph_scores`: scores of learned graphs against known ones, and sortability
- :func:`generalization_bound`: Theorem 1 for a fitted estimator, term by term
- :func:`best_error`, :func:`parents_only_error`, :func:`best_classification`: errors that no predictor can beat
- :func:`random_problem`, :func:`choose_target`, :func:`roles`: the paper's synthetic problems
- :class:`ReleasedCastle`, :func:`released_options`: the method as in the authors' released code
- :mod:`castlereg_paper.acyclicity`: other acyclicity functions, for comparison with that of the paper
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from castlereg_paper.advising import Advice, advice
    from castlereg_paper.bound import GeneralizationBound, generalization_bound
    from castlereg_paper.comparison import Comparison, compare
    from castlereg_paper.floors import (
        BestClassification,
        BestError,
        best_classification,
        best_error,
        parents_only_error,
    )
    from castlereg_paper.problems import Problem, Roles, choose_target, random_problem, roles
    from castlereg_paper.released import ReleasedCastle, released_options

__version__ = "0.3.0.dev0"

_NAMES: Final = {
    "advising": ("Advice", "advice"),
    "bound": ("GeneralizationBound", "generalization_bound"),
    "comparison": ("Comparison", "compare"),
    "floors": ("BestClassification", "BestError", "best_classification", "best_error", "parents_only_error"),
    "problems": ("Problem", "Roles", "choose_target", "random_problem", "roles"),
    "released": ("ReleasedCastle", "released_options"),
}
_HOMES: Final = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "Advice",
    "BestClassification",
    "BestError",
    "Comparison",
    "GeneralizationBound",
    "Problem",
    "ReleasedCastle",
    "Roles",
    "advice",
    "best_classification",
    "best_error",
    "choose_target",
    "compare",
    "generalization_bound",
    "parents_only_error",
    "random_problem",
    "released_options",
    "roles",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
