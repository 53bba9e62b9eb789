"""The equations of both peers, one small network a node, computed in one pass instead of a dozen.

DAGMA and NOTEARS spend most of their time in a layer that is written as a product of many tiny matrices, and in passes
over arrays of rows x nodes x hidden units. Here both layers are one matrix product and one pass over its result each
way (``quick_equations.c``, compiled when it is first used), the same to rounding. Everything else stays the peers' own.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch

_KEEP_FREED, _NO_MAPPING = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt


@cache
def _compiled() -> ctypes.CDLL:
    source = Path(__file__).with_suffix(".c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "equations.so"
        options = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
        subprocess.run([os.environ.get("CC", "cc"), *options, str(source), "-o", str(library), "-lm"], check=True)
        return ctypes.CDLL(str(library))


def _call(name: str, tensors: list[torch.Tensor], sizes: tuple[int, int, int]) -> None:
    pointers = [ctypes.c_void_p(one.data_ptr()) for one in tensors]
    getattr(_compiled(), name)(*pointers, *map(ctypes.c_long, sizes))


class _Equations(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, inputs: Any, first: Any, start: Any, weight: Any, bias: Any) -> torch.Tensor:
        context.sizes = (*weight.shape, len(inputs))
        units = first @ inputs.t()
        outputs = units.new_empty(len(weight), len(inputs))
        weight = weight.contiguous()
        _call("forward", [units, start.contiguous(), weight, bias.contiguous(), outputs], context.sizes)
        context.kept = inputs, units, weight
        return outputs.t()

    @staticmethod
    def backward(context: Any, gradient: Any) -> tuple[torch.Tensor | None, ...]:
        inputs, units, weight = context.kept
        to_start, to_weight = units.new_empty(len(units)), torch.empty_like(weight)
        to_bias = units.new_empty(len(weight))
        # The sigmoids are overwritten: a second backward pass through the same outputs would be wrong.
        del context.kept
        tensors = [units, weight, gradient.t().contiguous(), to_start, to_weight, to_bias]
        _call("backward", tensors, context.sizes)
        return None, units @ inputs, to_start, to_weight, to_bias


def equations(inputs: Any, first: Any, start: Any, layer: Any) -> torch.Tensor:
    """Predict every node from the others, as the peers' models do.

    Parameters
    ----------
    inputs : tensor of shape (rows, nodes)
    first, start : tensor of shape (nodes * hidden, nodes) and (nodes * hidden,)
        Weights and biases of the hidden layers.
    layer : LocallyConnected
        The peer's output layer.

    Returns
    -------
    tensor of shape (rows, nodes)
    """
    return _Equations.apply(inputs, first, start, layer.weight[:, :, 0], layer.bias[:, 0])


def replace_forward(model: type, quick: Any, example: Any, inputs: Any) -> None:
    """Let a peer's model use quick equations, after they have given the same as its own.

    Parameters
    ----------
    model : type
        The peer's class of models.
    quick : callable
        Takes a model and inputs, like its ``forward``.
    example : Module
        A model of this class.
    inputs : tensor of shape (rows, nodes)
    """
    found = []
    own_forward = getattr(model, "own_forward", model.forward)
    for forward in (own_forward, quick):
        example.zero_grad()
        outputs = forward(example, inputs)
        (outputs - inputs).square().mean().backward()
        found.append([outputs.detach(), *[one.grad.clone() for one in example.parameters()]])
    example.zero_grad()
    for own, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, own, rtol=1e-10, atol=1e-10)
    model.own_forward, model.forward = own_forward, quick


def keep_freed_memory() -> None:
    """Let the C library reuse large arrays instead of asking the system for new ones in every iteration."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_KEEP_FREED, 2**31 - 1)
        library.mallopt(_NO_MAPPING, 2**25)
