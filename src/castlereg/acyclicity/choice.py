"""The measures of cycles by name, and which one suits how many nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jax import Array

from castlereg.acyclicity.exponential import trace_exponential
from castlereg.acyclicity.logdet import log_determinant

AcyclicityFunction = Callable[[Array], Array]
"""A JAX function of a square matrix of edge weights."""

ACYCLICITY: Final[dict[str, AcyclicityFunction]] = {"expm": trace_exponential, "logdet": log_determinant}
"""The functions by the names that estimators take as ``acyclicity=``, which also take ``"auto"``."""

ACYCLICITY_CHOICES: Final = (*ACYCLICITY, "auto")

# Up to here the exponential is within a few percent of a training step; see docs/decisions/0014.
_MOST_NODES_OF_EXPM: Final = 200


def resolve_acyclicity(name: str | AcyclicityFunction, n_nodes: int) -> str | AcyclicityFunction:
    """Return the measure of cycles that ``name`` stands for.

    Parameters
    ----------
    name : str or callable
        A key of :data:`ACYCLICITY` or a function, which is returned as it is, or ``"auto"``: ``"expm"``, the paper's,
        up to 200 nodes, and ``"logdet"`` beyond.
    n_nodes : int
        Columns and targets.

    Returns
    -------
    str or callable

    Examples
    --------
    >>> resolve_acyclicity("auto", 14), resolve_acyclicity("auto", 1000), resolve_acyclicity("expm", 1000)
    ('expm', 'logdet', 'expm')
    """
    if name != "auto":
        return name
    return "expm" if n_nodes <= _MOST_NODES_OF_EXPM else "logdet"
