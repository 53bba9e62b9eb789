"""Exact solutions of the linear form: elastic nets and logistic regressions as networks without hidden layers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, enet_path

from castlereg.layout import Layout, Node
from castlereg.losses import Batch, as_batch, logistic_loss, softmax_loss, squared_error
from castlereg.network import Parameters
from castlereg.table.rows import Fold
from castlereg.table.table import Standardization, Table, measure
from castlereg.training import TrainedStack

# Strengths of the penalty, from the strongest to the weakest; each solution starts from the previous one. They cover
# the choices of cross-validation on tables of 100 to 5,000 rows.
_STRENGTHS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
_L1_SHARES = (0.1, 0.9)
_ABSENT = -10.0  # logit of a class without training rows
_MOST_STEPS = 300


@dataclass(frozen=True)
class LinearForm:
    """One linear candidate: the strength of its penalty, and the share of the l1 norm in it."""

    strength: float
    l1_share: float

    @property
    def name(self) -> str:
        """Name in the table of results."""
        return f"linear, strength {self.strength:g}, l1 share {self.l1_share:g}"


def linear_forms(layout: Layout) -> list[LinearForm]:
    """Return the linear candidates; for classes, with only the l2 norm."""
    targets = [layout.nodes[k] for k in layout.targets]
    shares = _L1_SHARES if all(node.kind == "numeric" for node in targets) else (0.0,)
    return [LinearForm(strength, share) for share in shares for strength in _STRENGTHS]


def solve_linear(table: Table, folds: Sequence[Fold], forms: Sequence[LinearForm]) -> list[TrainedStack]:
    """Solve every form on every fold.

    Parameters
    ----------
    table : Table
    folds : sequence of (train_rows, validation_rows)
    forms : sequence of LinearForm
        From :func:`linear_forms`.

    Returns
    -------
    list of TrainedStack
        For each form, one network per fold, with only the targets' sub-networks.
    """
    layout = table.layout
    standardization, _ = measure(table, [train for train, _ in folds])
    allowed = None if table.edges is None else table.edges.allowed
    enters = layout.edge_mask(table.constant, allowed)[:, list(layout.targets)] > 0
    shape = (len(forms), len(folds), layout.n_channels, len(layout.targets), layout.output_width)
    weights, bias = np.zeros(shape, np.float32), np.zeros((*shape[:2], *shape[3:]), np.float32)
    losses = np.zeros(shape[:2], np.float32)
    for fold, (train, held) in enumerate(folds):
        by = standardization.of_member(fold)
        rows, left_out = _batch(table, train, by), _batch(table, held, by)
        for k, node in enumerate(layout.targets):
            solve = _solve_numbers if layout.nodes[node].kind == "numeric" else _solve_classes
            used = np.flatnonzero(enters[:, k])
            solution, offset = solve(rows, used, node, layout.nodes[node], forms)
            width = solution.shape[-1]
            weights[:, fold, used, k, :width], bias[:, fold, k, :width] = solution, offset
        losses[:, fold] = _losses(weights[:, fold], bias[:, fold], left_out, by, layout)
    return [_stack(weights[i], bias[i], standardization, losses[i]) for i in range(len(forms))]


def _batch(table: Table, rows: Any, by: Standardization) -> Batch:
    weight = np.ones(len(rows)) if table.weight is None else table.weight[rows].astype(np.float64)
    return as_batch(table.inputs[rows].astype(np.float64), weight / weight.sum(), by, table.layout)


def _losses(weights: Any, bias: Any, rows: Batch, by: Standardization, layout: Layout) -> NDArray[np.float64]:
    """Return the loss of the targets for every form, in NumPy: JAX must not start before its devices are set."""
    total = np.zeros(len(weights))
    x: Any = rows.inputs
    truth: Any = rows.truth
    for k, node in enumerate(layout.targets):
        outputs = np.einsum("rc,fco->fro", x, weights[:, :, k]) + bias[:, None, k]
        levels, unit = layout.nodes[node].levels, 1.0 if by.null_loss is None else float(by.null_loss[node])
        if layout.nodes[node].kind == "categorical":
            losses: Any = softmax_loss(outputs[..., :levels], truth[:, node, :levels])
        else:
            loss = squared_error if layout.nodes[node].kind == "numeric" else logistic_loss
            losses = loss(outputs[..., 0], truth[:, node, 0])
        total += np.asarray(losses) @ np.asarray(rows.weight) / unit
    return total


def _solve_numbers(
    rows: Batch, used: NDArray[np.int64], node: int, target: Node, forms: Sequence[LinearForm]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve elastic nets: weights of shape (forms, channels used, 1), and no bias, since means are zero."""
    root = np.sqrt(np.asarray(rows.weight) * len(rows.weight))
    X = np.asfortranarray(np.asarray(rows.inputs)[:, used] * root[:, None])
    y = np.asarray(rows.truth)[:, node, 0] * root
    weights = np.zeros((len(forms), len(used), 1))
    if not len(used):
        return weights, np.zeros((len(forms), 1))
    for share in {form.l1_share for form in forms}:
        at = [i for i, form in enumerate(forms) if form.l1_share == share]
        strengths = [forms[i].strength for i in at]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # accurate enough for a candidate
            _, path, _ = enet_path(X, y, l1_ratio=share, alphas=strengths, tol=1e-3, max_iter=_MOST_STEPS)
        order = np.argsort(np.argsort(strengths)[::-1])  # the path starts with the strongest
        weights[at, :, 0] = path.T[order]
    return weights, np.zeros((len(forms), 1))


def _solve_classes(
    rows: Batch, used: NDArray[np.int64], node: int, target: Node, forms: Sequence[LinearForm]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve logistic regressions: weights of shape (forms, channels used, outputs), and biases."""
    X, weight = np.asarray(rows.inputs)[:, used], np.asarray(rows.weight)
    truth = np.asarray(rows.truth)[:, node]
    codes = truth[:, 0].astype(int) if target.kind == "binary" else truth[:, : target.levels].argmax(axis=1)
    present = np.unique(codes)
    weights, offset = np.zeros((len(forms), len(used), target.levels)), np.full((len(forms), target.levels), _ABSENT)
    if len(present) == 1:
        if target.kind == "binary":
            offset[:, 0] = -_ABSENT if present[0] else _ABSENT
        else:
            offset[:, present[0]] = -_ABSENT
        return weights, offset
    if not len(used):
        shares = np.bincount(codes, weight)[present]
        offset[:, 0 if target.kind == "binary" else present] = (
            np.log(shares[1] / shares[0]) if target.kind == "binary" else np.log(shares)
        )
        return weights, offset
    model = LogisticRegression(warm_start=True, max_iter=_MOST_STEPS, tol=1e-4)
    for i in np.argsort([-form.strength for form in forms], kind="stable"):
        model.C = 1 / (forms[i].strength * len(codes))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, codes, sample_weight=weight * len(codes))
        if target.kind == "binary":
            weights[i, :, 0], offset[i, 0] = model.coef_[0], model.intercept_[0]
        elif len(present) == 2:  # two of several classes: half of the logit for each
            weights[i][:, present], offset[i, present] = model.coef_.T * [-0.5, 0.5], model.intercept_ * [-0.5, 0.5]
        else:
            weights[i][:, present], offset[i, present] = model.coef_.T, model.intercept_
    return weights, offset


def _stack(weights: Any, bias: Any, standardization: Standardization, losses: NDArray[np.float32]) -> TrainedStack:
    n = len(losses)
    history = pd.DataFrame({"member": np.arange(n), "epoch": 1, "validation_loss": losses})
    return TrainedStack(
        parameters=Parameters(weights, bias, (), None, None),
        standardization=standardization,
        validation_loss=losses,
        best_epoch=np.ones(n, np.int32),
        history=history,
        interrupted=False,
        engine="",
    )
