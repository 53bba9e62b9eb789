"""How far a weighted graph is from having no directed cycle.

Every function here takes ``A``, a square matrix of non-negative edge weights, shape (p, p) (``A[j, k] > 0`` when there
is an edge j -> k), and returns one number ``h(A) >= 0``:

- zero when the graph has no directed cycle, exactly and at any scale, and positive when it has one, unless that
  underflows;
- growing with every weight of a cycle (:func:`log_determinant` within its domain), and blind to the order of the nodes;
- finite, with a finite gradient, for any finite float32 weights; :func:`log_determinant` says where its gradient
  is not the exact slope;
- a plain JAX function: differentiate, ``jit`` and ``vmap`` it.

============  ==========================  ==========================  =====================================
name          function                    h(A)                        weight of closed walks of length k
============  ==========================  ==========================  =====================================
"expm"        :func:`trace_exponential`   ``tr exp(A) - p``           ``1 / k!``
"logdet"      :func:`log_determinant`     ``-log det(I - A)``         ``1 / k``
============  ==========================  ==========================  =====================================

Any other JAX function that keeps this contract can be given to :class:`castlereg.regularizers.Castle` itself;
:mod:`castlereg.paper.acyclicity` has some, for comparison.
"""

from castlereg.acyclicity.choice import ACYCLICITY, ACYCLICITY_CHOICES, AcyclicityFunction, resolve_acyclicity
from castlereg.acyclicity.exponential import trace_exponential
from castlereg.acyclicity.logdet import log_determinant

__all__ = [
    "ACYCLICITY",
    "ACYCLICITY_CHOICES",
    "AcyclicityFunction",
    "log_determinant",
    "resolve_acyclicity",
    "trace_exponential",
]
