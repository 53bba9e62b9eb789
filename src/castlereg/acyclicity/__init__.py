"""How far a weighted graph is from having no directed cycle.

Every function here takes ``A``, a square matrix of non-negative edge weights, shape (p, p) (``A[j, k] > 0`` when there
is an edge j -> k), and returns one number ``h(A) >= 0``:

- zero when the graph has no directed cycle, exactly and at any scale, and positive when it has one
  (:func:`truncated_series` misses cycles of ten nodes and more), unless that underflows;
- growing with every weight of a cycle (:func:`log_determinant` within its domain), and blind to the order of the nodes;
- finite, with a finite gradient, for any finite float32 weights (:func:`truncated_series` is not);
  :func:`log_determinant` and :func:`spectral_radius` say where their gradient is not the exact slope;
- a plain JAX function: differentiate, ``jit`` and ``vmap`` it.

============  ==========================  ==========================  =====================================
name          function                    h(A)                        weight of closed walks of length k
============  ==========================  ==========================  =====================================
"expm"        :func:`trace_exponential`   ``tr exp(A) - p``           ``1 / k!``
"series"      :func:`truncated_series`    its terms up to ``A^9``     ``1 / k!``, none from 10 on
"logdet"      :func:`log_determinant`     ``-log det(I - A)``         ``1 / k``
"polynomial"  :func:`trace_polynomial`    ``tr (I + A/m)^m - p``      ``C(m, k) / m^k``
"spectral"    :func:`spectral_radius`     ``rho(A)``                  of another order, see there
============  ==========================  ==========================  =====================================
"""

from castlereg.acyclicity.choice import ACYCLICITY, ACYCLICITY_CHOICES, resolve_acyclicity
from castlereg.acyclicity.exponential import trace_exponential, truncated_series
from castlereg.acyclicity.logdet import log_determinant
from castlereg.acyclicity.polynomial import trace_polynomial
from castlereg.acyclicity.spectral import spectral_radius

__all__ = [
    "ACYCLICITY",
    "ACYCLICITY_CHOICES",
    "log_determinant",
    "resolve_acyclicity",
    "spectral_radius",
    "trace_exponential",
    "trace_polynomial",
    "truncated_series",
]
