"""Trace of the matrix exponential for tensors: the value and the gradient of :mod:`castlereg.acyclicity`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from castlereg.acyclicity.exponential import (
    LARGEST_LOG_VALUE,
    LARGEST_WEIGHT,
    MORE_SQUARINGS,
    RESCALE_ABOVE,
    TAYLOR_NORM,
)


def trace_exponential(adjacency: Tensor) -> Tensor:
    """Return the trace of the matrix exponential minus the number of nodes, ``h(A) = tr exp(A) - p`` (eq. 2 and 7).

    The algorithm is that of :func:`castlereg.acyclicity.trace_exponential`: exactly zero without cycles, finite for any
    finite weights, with the gradient ``exp(A)^T`` from the same exponential. It can be differentiated once.

    Parameters
    ----------
    adjacency : tensor of shape (p, p)
        Non-negative edge weights, the square of the paper's ``M``.

    Examples
    --------
    >>> loop = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> round(float(trace_exponential(loop)), 5)  # 2 cosh(1) - 2
    1.08616
    """
    value: Tensor = _TraceExponential.apply(adjacency)[0]
    return value


class _TraceExponential(torch.autograd.Function):
    @staticmethod
    def forward(adjacency: Tensor) -> tuple[Tensor, Tensor]:
        return _value_and_gradient(adjacency)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor, _: Tensor) -> Tensor:
        (gradient,) = ctx.saved_tensors
        return cotangent * gradient


def _value_and_gradient(adjacency: Tensor) -> tuple[Tensor, Tensor]:
    """Return h(A) and ``dh/dA``, past e^28 as a logarithm; see ``continued`` of the JAX version."""
    product, log_scale = _exponential_minus_identity(adjacency.clamp(max=LARGEST_WEIGHT))
    trace = float(product.trace())
    log_trace = log_scale + _log(trace)
    excess = log_trace - LARGEST_LOG_VALUE
    if excess > 0:
        value = math.exp(LARGEST_LOG_VALUE) * (1 + math.log1p(excess))
        gradient = product * (math.exp(LARGEST_LOG_VALUE) / (trace * (1 + excess)))
    else:
        value = trace if log_scale == 0 else math.exp(log_trace)
        inside = product * math.exp(min(log_scale, LARGEST_LOG_VALUE))
        gradient = inside + torch.eye(len(product), dtype=product.dtype, device=product.device)
    return adjacency.new_tensor(value), gradient.T.contiguous()


def _exponential_minus_identity(adjacency: Tensor) -> tuple[Tensor, float]:
    """Return ``F`` and ``c`` with ``exp(A) - I = e^c F``, by scaling and squaring."""
    size = _norm(adjacency)
    if math.isnan(size):
        return torch.full_like(adjacency, torch.nan), 0.0
    halvings = max(math.ceil(math.log2(size / TAYLOR_NORM)), 0) if size > 0 else 0
    x = adjacency * 2.0**-halvings
    x2 = x @ x
    x3 = x2 @ x
    squarings = max(halvings, _squarings_for_long_walks(x, x2, x3, halvings))
    shrink = 2.0 ** (halvings - squarings)
    product, log_scale = _taylor9(x * shrink, x2 * shrink**2, x3 * shrink**3), 0.0
    for _ in range(squarings):  # (I + F)^2 - I = 2 F + F F
        product = 2 * math.exp(-log_scale) * product + product @ product
        largest = float(product.max())
        log_scale *= 2
        if largest > RESCALE_ABOVE:
            product, log_scale = product / largest, log_scale + math.log(largest)
    return product, log_scale


def _squarings_for_long_walks(x: Tensor, x2: Tensor, x3: Tensor, halvings: int) -> int:
    """Return the number of squarings after which the omitted closed walks are below a millionth of h."""
    n_nodes, log_2 = len(x), halvings * math.log(2.0)
    longer = [s for s in MORE_SQUARINGS if 2.0 ** (s - 1) < n_nodes and n_nodes > 9]
    log_radius = _log(min(_norm(x), _norm(x3) ** (1 / 3))) + log_2
    at_least = _log_sum(_log(float(x2.trace()) / 2) + 2 * log_2, _log(float(x3.trace()) / 6) + 3 * log_2)
    for squarings, length in zip((0, *longer), (9, *(2**s for s in longer)), strict=True):
        at_most = math.log(2.0 * n_nodes) + (length + 1) * log_radius - math.lgamma(length + 2)
        if at_most <= at_least + math.log(1e-6):
            return squarings
    return longer[-1] if longer else 0


def _taylor9(x: Tensor, x2: Tensor, x3: Tensor) -> Tensor:
    """Return the sum of ``x**i / i!`` for i = 1..9 with two more products."""
    tail = x / 5040 + x2 / 40320 + x3 / 362880
    middle = x / 24 + x2 / 120 + x3 / 720 + x3 @ tail
    return x + x2 / 2 + x3 / 6 + x3 @ middle


def _norm(matrix: Tensor) -> float:
    """Return a bound of the spectral radius of a non-negative matrix."""
    return float(torch.minimum(matrix.sum(dim=0).max(), matrix.sum(dim=1).max()))


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf if value == 0 else math.nan


def _log_sum(left: float, right: float) -> float:
    """Return ``log(e^left + e^right)``."""
    largest = max(left, right)
    return largest if math.isinf(largest) else largest + math.log(math.exp(left - largest) + math.exp(right - largest))
