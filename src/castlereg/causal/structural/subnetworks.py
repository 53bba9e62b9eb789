"""Networks for single columns whose causes interact, which a sum of functions cannot represent.

A column with two or more causes gets a network only if products of its causes explain residuals of the sum, and only if
the network predicts held-out rows clearly better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from castlereg.causal.structural.smooth import Design, Position
from castlereg.causal.structural.variables import Variable
from castlereg.layout import Layout, Node
from castlereg.network import Parameters, forward
from castlereg.search.grid import train_folds
from castlereg.table.table import Standardization, Table, standardize
from castlereg.training import Phase, Plan
from castlereg.training.plan import cosine

Array = NDArray[np.float64]

_PLAN = Plan((32, 32), (Phase(120, learning_rate=cosine),), 4e-3, 64, 40, "glorot", schedule="cosine")
_SHAPES = 3  # number of features of each cause that are used in products
_CLEARLY, _MARGIN = 2.0, 0.02  # a network must be better by this many standard errors, and by this share of the loss
FOLDS = 4


@dataclass(frozen=True)
class Encoding:
    """How columns become the channels of networks that predict one of them."""

    variables: tuple[Variable, ...]
    node: int  # the column that is predicted
    center: Array  # (variables,), 0 for levels
    spread: Array
    missing: tuple[bool, ...]  # whether each column had missing values

    @classmethod
    def of(cls, variables: Sequence[Variable], values: Array, node: int) -> Encoding:
        """Measure the location and spread of the columns."""
        is_number = np.array([variable.levels is None for variable in variables])
        center = np.where(is_number, np.nanmean(values, axis=1), 0.0)
        spread = np.where(is_number, np.nanstd(values, axis=1), 1.0)
        missing = tuple(bool(np.isnan(column).any()) for column in values)
        return cls(tuple(variables), node, center, np.where(spread > 0, spread, 1.0), missing)

    @cached_property
    def order(self) -> list[int]:
        """Columns in the order of the layout; the predicted one is last."""
        return [*(k for k in range(len(self.variables)) if k != self.node), self.node]

    @cached_property
    def layout(self) -> Layout:
        """Layout with the columns in this order as nodes."""
        nodes = []
        for k in self.order:
            levels, target = self.variables[k].levels, k == self.node
            missing = self.missing[k] and not target
            kind: Any = "numeric" if levels is None else "categorical"
            nodes.append(Node(kind, 1 if levels is None else max(len(levels), 2), target, missing))
        return Layout(tuple(nodes))

    def channels(self, values: Array) -> NDArray[np.float32]:
        """Encode values, shape (variables, rows) to (rows, channels); NaN where they are missing."""
        columns = []
        for k, node in zip(self.order, self.layout.nodes, strict=True):
            absent = np.isnan(values[k])
            if node.kind == "numeric":
                columns.append((values[k] - self.center[k]) / self.spread[k])
            else:
                levels = (values[k] == np.arange(node.levels)[:, None]).astype(np.float64)
                columns += list(np.where(absent, np.nan, levels))
            if node.missing:
                columns.append(absent.astype(np.float64))
        return np.stack(columns, axis=1).astype(np.float32)

    def used(self, parents: Sequence[int]) -> NDArray[np.bool_]:
        """Return which nodes of the layout the network uses, shape (nodes,)."""
        return np.isin(self.order, [*parents, self.node])


@dataclass(frozen=True)
class SubNetwork:
    """A network as the function of a column's parents."""

    encoding: Encoding
    parameters: Parameters  # of the column's sub-network
    standardization: Standardization

    def __call__(self, positions: Sequence[Position], values: Array) -> Array:
        """Return values of numbers, shape (rows, 1), or scores of levels, (rows, levels); values are (nodes, rows)."""
        encoding, layout = self.encoding, self.encoding.layout
        filled = values.copy()
        filled[encoding.node] = 0.0  # not used
        x = standardize(encoding.channels(filled).astype(np.float64), self.standardization, layout)
        inputs: Any = np.where(np.isnan(x), 0.0, x)
        outputs: Array = np.asarray(forward(self.parameters, inputs))[:, 0]
        if layout.nodes[-1].kind == "categorical":
            return outputs[:, : layout.nodes[-1].levels]
        channel = layout.output_channels[layout.targets[0], 0]
        scale, shift = float(self.standardization.scale[channel]), float(self.standardization.shift[channel])
        encoded = outputs[:, :1] / scale + shift if scale else np.full((len(outputs), 1), shift)
        return np.asarray(encoded * encoding.spread[encoding.node] + encoding.center[encoding.node])


def acts_together(design: Design, values: Array, weight: Array, n_levels: int) -> bool:
    """Return whether products of functions of two causes predict left-out rows clearly better than the sum does.

    A column of levels counts as one number per level, so one rule applies to all columns.
    """
    if len(design.bases) < 2:
        return False
    columns = [values] if not n_levels else [(values == level).astype(np.float64) for level in range(n_levels)]
    loss_of_sum, loss_with_products = (
        sum(np.square(d.best_ridge(column, weight)[1]) for column in columns)
        for d in (design, design.with_products(_SHAPES))
    )
    return is_clearly_lower(np.asarray(loss_with_products), np.asarray(loss_of_sum), weight)


def is_clearly_lower(losses: Array, than: Array, weight: Array) -> bool:
    """Return whether the losses of rows are lower than others by a clear margin."""
    share = weight / weight.sum()
    gain = than - losses
    mean = float(gain @ share)
    error = float(np.sqrt(np.square(gain - mean) @ share / len(gain)))
    return mean > max(_CLEARLY * error, _MARGIN * float(than @ share))


class Job(NamedTuple):
    """A network to train: the parents it may use, and its rows."""

    parents: tuple[int, ...]
    train: NDArray[np.int64]
    validation: NDArray[np.int64]


def trained(
    encoding: Encoding, values: Array, jobs: Sequence[Job], seed: int, progress: Any = False
) -> list[SubNetwork]:
    """Train the networks of one column together."""
    table = Table(encoding.channels(values), encoding.layout)
    grid = train_folds(
        table,
        [(job.train, job.validation) for job in jobs],
        _PLAN,
        seeds=[np.random.SeedSequence([seed, encoding.node, i]) for i in range(len(jobs))],
        used=[encoding.used(job.parents) for job in jobs],
        progress=progress,
    )
    stack = grid.stacks[0]
    return [
        SubNetwork(
            encoding,
            jax.tree.map(lambda a, i=i: np.asarray(a[i], np.float64), stack.parameters),
            stack.standardization.of_member(i),
        )
        for i in range(len(jobs))
    ]


def left_out(
    encoding: Encoding, values: Array, parent_sets: Sequence[tuple[int, ...]], seed: int
) -> list[tuple[Array, Array]]:
    """Return the losses and residuals of each row under networks of the other folds, for every set of parents.

    Losses are squared errors or log losses; only numbers have residuals. Each has shape (rows,).
    """
    n_rows, n_levels = values.shape[1], len(encoding.variables[encoding.node].levels or ())
    fold = np.random.default_rng(seed).permutation(n_rows) % FOLDS
    rows = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(FOLDS)]
    networks = trained(encoding, values, [Job(parents, *of_fold) for parents in parent_sets for of_fold in rows], seed)
    results = []
    for first in range(0, len(networks), FOLDS):
        outputs = np.empty((n_rows, max(n_levels, 1)))
        for network, (_, held) in zip(networks[first : first + FOLDS], rows, strict=True):
            outputs[held] = network([], values[:, held])
        truth = values[encoding.node]
        if n_levels:
            losses = -log_softmax(outputs, axis=1)[np.arange(n_rows), truth.astype(np.int64)]
            results.append((losses, np.empty(0)))
        else:
            results.append((np.square(truth - outputs[:, 0]), truth - outputs[:, 0]))
    return results
