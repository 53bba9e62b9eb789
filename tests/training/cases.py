"""Small tables and members for the tests of training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from castlereg.layout import Layout, Node
from castlereg.regularizers import Castle
from castlereg.table.encoding import Encoded
from castlereg.training import Member, Phase, Plan, TrainedStack
from castlereg.training.loop import Stack
from castlereg.training.state import Setup


def plan(sizes: tuple[int, ...], epochs: int = 12, patience: int = 5, **options: Any) -> Plan:
    return Plan(sizes, **{"phases": (Phase(epochs),), "patience": patience, "engine": "jax", **options})


def table(n_rows: int = 120, d: int = 4, kind: str = "numeric", seed: int = 0) -> Encoded:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, d))
    y = x[:, 0] - np.tanh(x[:, 1]) + 0.3 * rng.normal(size=n_rows)
    if kind == "numeric":
        target, channels = Node(target=True), y[:, None]
    elif kind == "binary":
        target, channels = Node("binary", target=True), (y > 0)[:, None]
    else:
        target, channels = Node("categorical", 3, target=True), np.eye(3)[np.digitize(y, [-0.5, 0.5])]
    layout = Layout((*(Node() for _ in range(d)), target))
    return Encoded(np.hstack([x, channels]).astype(np.float32), layout)


def members(n: int, n_rows: int = 120, **castle: Any) -> list[Member]:
    """Folds of unequal size with different seeds and strengths."""
    out = []
    for i in range(n):
        fold = np.arange(n_rows) % 10 == i % 10
        rows = np.flatnonzero(~fold)[: n_rows - 8 * i]
        out.append(Member(rows, np.flatnonzero(fold), np.random.SeedSequence(i), (Castle(10.0 ** (-i % 4), **castle),)))
    return out


def plain(n: int, n_rows: int = 120) -> list[Member]:
    return [replace(member, regularizers=()) for member in members(n, n_rows)]


def stack_of(data: Encoded, of_members: list[Member], of_plan: Plan) -> Stack:
    """Members before their first step."""
    return Stack(Setup(data, of_members, of_plan))


def assert_same(one: TrainedStack, other: TrainedStack, rtol: float = 0.0) -> None:
    def check(a: Any, b: Any) -> None:
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)

    jax.tree.map(check, one.parameters, other.parameters)
    np.testing.assert_allclose(one.validation_loss, other.validation_loss, rtol=rtol)
