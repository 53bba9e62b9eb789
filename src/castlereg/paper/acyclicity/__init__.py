"""Other acyclicity functions, for comparison with that of the paper; pass them as ``Castle(acyclicity=...)``.

They follow the contract of :mod:`castlereg.acyclicity`, except that :func:`truncated_series` misses cycles of ten or
more nodes and overflows together with ``A^9``. :func:`spectral_radius` documents where its gradient is not exact.

========================  ==========================  ==================================  ==================
function                  h(A)                        weight of closed walks of length k  used by
========================  ==========================  ==================================  ==================
:func:`truncated_series`  terms of expm up to A^9     ``1 / k!``, none from 10 on         the released code
:func:`trace_polynomial`  ``tr (I + A/m)^m - p``      ``C(m, k) / m^k``                   DAG-GNN
:func:`spectral_radius`   ``rho(A)``                  of another order, see its notes         NO-BEARS
========================  ==========================  ==================================  ==================
"""

from castlereg.paper.acyclicity.polynomial import trace_polynomial
from castlereg.paper.acyclicity.series import truncated_series
from castlereg.paper.acyclicity.spectral import spectral_radius

__all__ = ["spectral_radius", "trace_polynomial", "truncated_series"]
