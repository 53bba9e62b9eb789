"""Random worlds for choosing the constants of discovery: every kind of column, and ways in which tables break models.

The recovery page never uses these worlds: its families come from other code, ``benchmarks/real_columns.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import TopologicalSorter

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from castlereg.causal import random_dag

Values = NDArray[np.float64]
Edges = NDArray[np.bool_]

FUNCTIONS = ("linear", "smooth", "sine", "sigmoid", "mixed")
NOISES = ("normal", "laplace", "uniform", "skewed", "scaled")
COLUMNS = ("smooth", "survey", "zeros", "counts", "whole", "two_valued", "levels", "all")
BREAKS = (
    "none", "products", "bent", "hidden", "measurement", "derived", "grid", "missing", "time", "selected", "feedback",
    "groups", "rounded",
)  # fmt: skip


@dataclass(frozen=True)
class World:
    """A table with its truth; arrays have causes in rows."""

    name: str
    frame: pd.DataFrame
    truth: Edges
    hidden: Edges  # pairs with an unobserved common cause, symmetric
    scored: Edges  # pairs whose direction has an answer, symmetric


def _function(kind: str, x: Values, rng: np.random.Generator) -> Values:
    sign = rng.choice([-1.0, 1.0])
    if kind == "mixed":
        kind = str(rng.choice(FUNCTIONS[:-1]))
    if kind == "linear":
        return np.asarray(sign * rng.uniform(0.5, 1.8) * x)
    if kind == "sine":
        return np.asarray(sign * rng.uniform(0.8, 1.5) * np.sin(rng.uniform(1, 2) * x))
    if kind == "sigmoid":
        return np.asarray(sign * rng.uniform(2, 4) * expit(rng.uniform(1, 3) * (x - rng.normal() * 0.5)))
    frequencies, phases, weights = rng.normal(size=60), rng.uniform(0, 2 * np.pi, 60), rng.normal(size=60)
    return np.asarray(1.3 * np.sqrt(2 / 60) * np.cos(np.outer(x, frequencies) + phases) @ weights)


def _noise(kind: str, n: int, rng: np.random.Generator) -> Values:
    if kind == "laplace":
        return rng.laplace(size=n) / np.sqrt(2)
    if kind == "uniform":
        return rng.uniform(-1.7, 1.7, n)
    if kind == "skewed":
        return rng.gamma(2, size=n) / np.sqrt(2) - np.sqrt(2)
    return rng.normal(size=n)


def _cut(x: Values, column: str, rng: np.random.Generator) -> Values:
    """Turn a number into the kind of a column."""
    spread = x.std() or 1.0
    z = (x - x.mean()) / spread
    if column == "survey":
        n_levels = int(rng.integers(3, 8))
        shares = np.sort(rng.dirichlet(np.full(n_levels, 4.0)).cumsum()[:-1])
        return np.searchsorted(np.quantile(z, shares), z).astype(np.float64) + 1
    if column == "zeros":
        return np.maximum(z - rng.normal() * 0.5, 0.0)
    if column == "counts":
        return rng.poisson(np.exp(np.clip(rng.uniform(0.5, 1.0) * z + rng.uniform(0, 1.5), -3, 4))).astype(np.float64)
    if column == "whole":
        return np.clip(np.rint(5.5 + 2 * z), 1, 10)
    if column == "two_valued":
        return (rng.random(len(z)) < expit(rng.uniform(2, 4) * (z - 0.5 * rng.normal()))).astype(np.float64)
    return x


def draw(seed: int) -> World:
    """Draw a world: its size, functions, noise, columns and break depend on the seed."""
    rng = np.random.default_rng([seed, 3838])
    column = str(rng.choice(COLUMNS, p=[0.3, *[0.1] * 7]))
    broken = str(rng.choice(BREAKS, p=[0.22, *[0.065] * 12]))
    function, noise = str(rng.choice(FUNCTIONS)), str(rng.choice(NOISES))
    n_rows = int(rng.choice([150, 300, 600, 1000, 1000, 2000]))
    p = int(rng.choice([4, 6, 8, 10, 10, 13, 18]))
    n_hidden = int(rng.integers(1, 3)) if broken == "hidden" or rng.random() < 0.3 else 0
    many = p + n_hidden
    n_edges = min(int(rng.uniform(0.6, 2.2) * many), many * (many - 1) // 2)
    truth = random_dag(many, n_edges, rng).to_numpy() != 0
    in_line = bool(rng.random() < 0.5)  # children use the values as they are cut
    kinds = [column if column != "all" else str(rng.choice(COLUMNS[:-1])) for _ in range(many)]
    if column == "two_valued":
        kinds = [str(rng.choice(["smooth", "two_valued"])) for _ in range(many)]
    if column == "levels":
        kinds = [str(rng.choice(["smooth", "levels", "levels"])) for _ in range(many)]
    groups = rng.integers(0, 2, n_rows) if broken == "groups" else np.zeros(n_rows, np.int64)
    values = np.zeros((n_rows, many))
    parents = {k: np.flatnonzero(truth[:, k]).tolist() for k in range(many)}
    drift = np.cumsum(rng.normal(size=(n_rows, many)), axis=0) if broken == "time" else None
    for k in TopologicalSorter(parents).static_order():
        values[:, k] = _value(k, values, parents[k], kinds[k], function, noise, broken, groups, rng)
        if drift is not None and kinds[k] != "levels" and rng.random() < 0.5:
            values[:, k] += 0.5 * drift[:, k] / drift[:, k].std()
        if in_line and kinds[k] != "levels":
            values[:, k] = _cut(values[:, k], kinds[k], rng)
            if kinds[k] != "smooth":
                values[:, k] -= values[:, k].mean()
                values[:, k] /= values[:, k].std() or 1.0
    if not in_line:
        for k in range(many):
            values[:, k] = _cut(values[:, k], kinds[k], rng)
    return _broken(values, truth, kinds, broken, n_hidden, f"{column}/{broken}", rng)


def _value(
    k: int, values: Values, parents: list[int], kind: str, function: str, noise: str, broken: str,
    groups: NDArray[np.int64], rng: np.random.Generator,
) -> Values:  # fmt: skip
    """Compute a column from its parents."""
    n = len(values)
    if kind == "levels":
        n_levels = int(rng.integers(2, 5))
        scores = rng.gumbel(size=(n, n_levels)) + 0.3 * rng.normal(size=n_levels)
        for j in parents:
            for level in range(n_levels):
                scores[:, level] += 1.5 * _function(function, values[:, j], rng)
        return scores.argmax(axis=1).astype(np.float64)
    total = np.zeros(n)
    for j in parents:
        parts = np.stack([_function(function, values[:, j], rng) for _ in range(2 if broken == "groups" else 1)])
        total += parts[groups % len(parts), np.arange(n)]
    if broken == "products" and len(parents) > 1:
        a, b = rng.choice(parents, 2, replace=False)
        total = total * rng.choice([0.0, 1.0]) + rng.uniform(0.8, 1.5) * values[:, a] * values[:, b]
    strength = np.full(n, rng.uniform(0.4, 1.1))
    if noise == "scaled" and parents:
        strength *= np.exp(0.4 * _function("smooth", values[:, parents[0]], rng))
    x = total + strength * _noise(noise, n, rng)
    if broken == "feedback" and len(parents) > 1:  # the cause answers once to what it caused; rows keep the last state
        x = 0.7 * x + 0.3 * np.tanh(x) * np.sign(total)
    if broken == "bent":
        x = np.sinh(x / 2) if rng.random() < 0.5 else x / np.sqrt(1 + x**2) + 0.1 * x
    return np.asarray((x - x.mean()) / (x.std() or 1.0))


def _broken(
    values: Values, truth: Edges, kinds: list[str], broken: str, n_hidden: int, name: str, rng: np.random.Generator
) -> World:
    """Break the table, hide columns, and give it names."""
    n, many = values.shape
    scored = ~np.eye(many, dtype=bool)
    numeric = [k for k in range(many) if kinds[k] not in ("levels", "two_valued")]
    if broken == "measurement":
        for k in numeric:
            if rng.random() < 0.5:
                values[:, k] += rng.uniform(0.2, 0.6) * values[:, k].std() * rng.normal(size=n)
    elif broken == "derived" and len(numeric) > 2:
        for k in rng.choice(numeric, max(1, len(numeric) // 5), replace=False):  # an index of two others
            a, b = rng.choice([j for j in numeric if j != k], 2, replace=False)
            if not truth[k].any():
                truth[:, k] = False
                truth[[a, b], k] = True
                part = rng.choice(["sum", "ratio", "product"])
                x, y = values[:, a], values[:, b]
                combined = x + y if part == "sum" else x / (1 + np.abs(y)) if part == "ratio" else x * y
                values[:, k] = combined + rng.choice([0.0, 0.02, 0.1]) * combined.std() * rng.normal(size=n)
    elif broken == "grid":
        for k in numeric:
            if rng.random() < 0.6:  # a designed set of values, unevenly spaced
                points = np.sort(rng.choice(values[:, k], int(rng.integers(5, 25)), replace=False))
                values[:, k] = points[np.abs(values[:, k][:, None] - points).argmin(axis=1)]
    elif broken == "rounded":
        for k in numeric:
            step = float(rng.choice([0.05, 0.2, 0.5])) * (values[:, k].std() or 1.0)
            values[:, k] = np.rint(values[:, k] / step) * step
    elif broken == "selected":
        k = int(rng.integers(many))
        keep = rng.random(n) < expit(2.5 * (values[:, k] - values[:, k].mean()) / (values[:, k].std() or 1.0))
        values = values[keep] if keep.sum() > 80 else values
    elif broken == "feedback" and truth.any():
        j, k = rng.permutation(np.argwhere(truth))[0]
        values[:, j] += 0.4 * values[:, k]
        scored[[j, k], [k, j]] = False
    frame = pd.DataFrame(values)
    if broken == "missing" or rng.random() < 0.1:
        for k in range(many):
            if rng.random() < 0.6:
                other = int(rng.integers(many))
                turn = (values[:, other] - values[:, other].mean()) / (values[:, other].std() or 1.0)
                share = rng.uniform(0.03, 0.3)
                lost = rng.random(len(values)) < share * 2 * expit((other != k) * rng.choice([0, 2]) * turn)
                frame.loc[lost, k] = np.nan
    for k in range(many):
        if kinds[k] == "levels":
            frame[k] = pd.Categorical([None if v != v else f"level {v:g}" for v in frame[k]])
    gone = [int(k) for k in np.argsort(-truth.sum(axis=1), kind="stable")[:n_hidden] if truth[k].sum() > 1]
    hidden = np.zeros_like(truth)
    for h in gone:  # effects of a hidden column get edges from its causes
        children, causes = np.flatnonzero(truth[h]), np.flatnonzero(truth[:, h])
        hidden[np.ix_(children, children)] = True
        truth[np.ix_(causes, children)] = True
    np.fill_diagonal(hidden, False)
    np.fill_diagonal(truth, False)
    kept = rng.permutation([k for k in range(many) if k not in gone])
    at = np.ix_(kept, kept)
    names = [f"x{k}" for k in range(len(kept))]
    return World(name, frame[kept].set_axis(names, axis=1), truth[at], hidden[at], scored[at])
