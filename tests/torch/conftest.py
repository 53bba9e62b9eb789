"""Small tensors: one thread is fastest, and tests run side by side."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("torch") is not None:
    import torch

    torch.set_num_threads(1)
