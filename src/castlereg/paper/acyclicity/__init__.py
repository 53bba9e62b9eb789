"""Other acyclicity functions, to compare with the paper's; give them to ``Castle(acyclicity=...)``.

They keep the contract of :mod:`castlereg.acyclicity`, except that :func:`truncated_series` misses cycles of ten nodes
and more and overflows where ``A^9`` does; :func:`spectral_radius` says where its gradient is not the exact slope.

========================  ==========================  ==================================  ==================
function                  h(A)                        weight of closed walks of length k  used by
========================  ==========================  ==================================  ==================
:func:`truncated_series`  terms of expm up to A^9     ``1 / k!``, none from 10 on         the released code
:func:`trace_polynomial`  ``tr (I + A/m)^m - p``      ``C(m, k) / m^k``                   DAG-GNN
:func:`spectral_radius`   ``rho(A)``                  of another order, see there         NO-BEARS
========================  ==========================  ==================================  ==================
"""

from castlereg.paper.acyclicity.polynomial import trace_polynomial
from castlereg.paper.acyclicity.series import truncated_series
from castlereg.paper.acyclicity.spectral import spectral_radius

__all__ = ["spectral_radius", "trace_polynomial", "truncated_series"]
