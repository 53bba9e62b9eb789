"""CASTLE's objective in eager PyTorch with a usual training loop, to compare with castlereg's compiled program.

``python benchmarks/peers/eager_castle.py NODES WIDTH MEMBERS ROWS EPOCHS`` prints the seconds of an epoch. Needs an
environment of its own with torch. Members are a leading axis, so that no time goes into starting small products.
"""

from __future__ import annotations

import sys
import time

import torch


def loss_of(parameters: list[torch.Tensor], x: torch.Tensor, beta: float) -> torch.Tensor:
    """Sum over members of eq. 5 with lambda 1: target, reconstruction, squared trace exponential, l1 norm."""
    inputs, input_bias, hidden, hidden_bias, outputs, output_bias = parameters
    members, nodes, _, width = inputs.shape
    z = torch.einsum("brc,bkcw->brkw", x, inputs) + input_bias[:, None]
    z = torch.relu(z)
    z = torch.relu(z.reshape(members, -1, width) @ hidden + hidden_bias[:, None]).reshape(members, -1, nodes, width)
    predicted = torch.einsum("brkw,bkw->brk", z, outputs) + output_bias[:, None]
    errors = ((predicted - x) ** 2).mean(dim=1)
    adjacency = (inputs**2).sum(dim=3).transpose(1, 2)
    cycles = torch.matrix_exp(adjacency).diagonal(dim1=1, dim2=2).sum(dim=1) - nodes
    sparsity = inputs.abs().sum(dim=(1, 2, 3))
    return (errors[:, -1] + errors.sum(dim=1) + cycles**2 + beta * sparsity).sum()


def seconds_of_an_epoch(nodes: int, width: int, members: int, rows: int, epochs: int) -> float:
    """Train with Adam on batches of 32; return the seconds of an epoch after the first."""
    torch.manual_seed(0)
    x = torch.randn(rows * 9 // 10, nodes)
    shapes = [(nodes, nodes, width), (nodes, width), (width, width), (width,), (nodes, width), (nodes,)]
    parameters = [(0.01 * torch.randn(members, *shape)).requires_grad_() for shape in shapes]
    mask = (1 - torch.eye(nodes))[None, :, :, None]
    adam = torch.optim.Adam(parameters, lr=1e-3)
    start = 0.0
    for epoch in range(epochs + 1):
        if epoch == 1:
            start = time.perf_counter()
        orders = torch.stack([torch.randperm(len(x)) for _ in range(members)])
        for first in range(0, len(x), 32):
            adam.zero_grad()
            loss_of(parameters, x[orders[:, first : first + 32]], 0.01).backward()
            parameters[0].grad.mul_(mask)
            adam.step()
    return (time.perf_counter() - start) / epochs


if __name__ == "__main__":
    print(seconds_of_an_epoch(*map(int, sys.argv[1:])))
