"""Acyclicity functions: how far a weighted graph is from having no directed cycle.

Every function takes ``A``, a square matrix of non-negative edge weights (``A[j, k] > 0`` when there is an edge j -> k),
and returns one number ``h(A) >= 0``:

- zero when the graph has no directed cycle, exactly and at any scale, and positive otherwise, unless that underflows;
- growing with every weight of a cycle (:func:`log_determinant` within its domain), for any order of the nodes;
- finite, with a finite gradient, for any finite float32 weights;
- a plain JAX function: differentiate, ``jit`` and ``vmap`` it.

========  ==========================  =====================  ==================================
name      function                    h(A)                   weight of closed walks of length k
========  ==========================  =====================  ==================================
"expm"    :func:`trace_exponential`   ``tr exp(A) - p``      ``1 / k!``
"logdet"  :func:`log_determinant`     ``-log det(I - A)``    ``1 / k``
========  ==========================  =====================  ==================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jax import Array

from castlereg.acyclicity.functions import log_determinant, trace_exponential

__all__ = ["ACYCLICITY", "Acyclicity", "log_determinant", "trace_exponential"]

Acyclicity = Callable[[Array], Array]

ACYCLICITY: Final[dict[str, Acyclicity]] = {"expm": trace_exponential, "logdet": log_determinant}
"""The functions by the names that :class:`castlereg.regularizers.Castle` takes."""
