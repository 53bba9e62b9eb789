"""Candidates of a search: stages of networks that train as one stack, and linear forms that are solved.

A stage has candidates that are trained together on every fold. Its result is one :class:`TrainedStack` per candidate,
with one network per fold, so all candidates predict in the same way.
"""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, enet_path

from castlereg.layout import Layout, Node
from castlereg.losses import Batch, as_batch, logistic_loss, softmax_loss, squared_error
from castlereg.network import Parameters
from castlereg.notices import warn_user
from castlereg.regularizers import Castle, Dropout, Regularizer
from castlereg.regularizers.protocol import trained_nodes
from castlereg.table.encoding import Encoded, Standardization, measure
from castlereg.table.splits import Fold
from castlereg.training import Control, Epoch, Member, Plan, TrainedStack, train

Regularizers = tuple[Regularizer, ...]


class Result(NamedTuple):
    """A trained candidate of a stage."""

    name: str
    regularizers: Regularizers
    stack: TrainedStack  # one network per fold


@dataclass(frozen=True)
class NetworkStage:
    """Networks with the same plan and different regularizers or strengths."""

    name: str
    plan: Plan
    candidates: tuple[Regularizers, ...]
    refit: bool = False  # whether it trains only on the columns that the CASTLE networks before it select
    halving: bool = False  # whether clearly worse candidates are stopped early
    member_names: tuple[str, ...] | None = None  # of the folds, for callbacks; "fold 0" and so on by default

    @property
    def epochs(self) -> int:
        """Number of epochs of all candidates on one fold, for the progress bar."""
        return len(self.candidates) * self.plan.max_epochs

    def _label(self, candidate: Regularizers) -> str:
        """Return a name that distinguishes a candidate from the others of a search."""
        parts = [self.name]
        for regularizer in candidate:
            if isinstance(regularizer, Castle) and regularizer.reg_beta > 0:
                parts.append(f"beta {regularizer.reg_beta:g}")
            if isinstance(regularizer, Dropout):
                parts.append(f"dropout {regularizer.rate:g}")
        return ", ".join(parts)

    def train(
        self,
        encoded: Encoded,
        folds: Sequence[Fold],
        seeds: Sequence[np.random.SeedSequence],
        control: Control,
        used: Sequence[NDArray[np.bool_]] | None = None,
    ) -> list[Result]:
        """Train one network per fold and candidate; ``used`` are masks of the columns of each fold, shape (nodes,).

        Early stopping uses the rows that a fold leaves out. Networks of one fold start from the same weights and train
        on the same batches, whatever their regularizers. Candidates that do not fit into memory together are trained in
        parts. The networks of a stack are independent, so this does not change the result, except that halving compares
        only the candidates of one part. After Ctrl-C with "keep", candidates without a network for every fold are left
        out.
        """
        parts = self._parts(encoded, len(folds))
        names = _member_names(self.candidates, self.member_names or [f"fold {k}" for k in range(len(folds))])
        columns = [None] * len(folds) if used is None else used
        done: list[list[TrainedStack]] = [[] for _ in self.candidates]
        for number, part in enumerate(parts):
            members = [Member(*folds[k], seeds[k], self.candidates[i], columns[k], names[i][k]) for i, k in part]
            rules = (_Halving(len(folds), self.plan.max_epochs),) if self.halving else ()
            stage = self.name if len(parts) == 1 else f"{self.name}, part {number + 1} of {len(parts)}"
            own_control = replace(control, stage=stage, callbacks=(*control.callbacks, *rules))
            try:
                stack = train(encoded, members, self.plan, own_control)
            except KeyboardInterrupt:
                if control.on_interrupt == "raise":
                    raise
                break  # in the first epoch
            candidate_numbers = np.array([i for i, _ in part])
            for i in np.unique(candidate_numbers):
                done[i].append(stack.take(np.flatnonzero(candidate_numbers == i)))
            if stack.interrupted:
                break
        trained = [i for i, stacks in enumerate(done) if sum(len(s.validation_loss) for s in stacks) == len(folds)]
        if not trained:
            raise KeyboardInterrupt("training was interrupted before any candidate was trained on all folds")
        if len(trained) < len(self.candidates):
            warn_user(
                f"training was interrupted: {len(trained)} of {len(self.candidates)} candidates were trained and are "
                "compared"
            )
        joined = {i: TrainedStack.joined(done[i]) for i in trained}
        return [Result(self._label(self.candidates[i]), self.candidates[i], stack) for i, stack in joined.items()]

    def _parts(self, encoded: Encoded, n_folds: int) -> list[list[tuple[int, int]]]:
        """Split pairs of candidate and fold into runs with the same regularizers that fit into memory."""
        by_structure: dict[Any, list[int]] = {}
        for i, candidate in enumerate(self.candidates):
            by_structure.setdefault(jax.tree.structure(candidate), []).append(i)
        layout = replace(encoded.layout, embedding=self.plan.embedding)
        parts = []
        for alike in by_structure.values():
            size = _member_bytes(layout, len(encoded.inputs), self.plan.hidden_layer_sizes, self.candidates[alike[0]])
            most = max(1, int(_SHARE * _free_memory()) // size)
            pairs = [(i, fold) for i in alike for fold in range(n_folds)]
            parts += [pairs[start : start + most] for start in range(0, len(pairs), most)]
        return parts


def strengths_of(candidate: Sequence[Regularizer]) -> dict[str, float]:
    """Return a candidate's strengths by name: ``L2.strength``; those of CASTLE are ``reg_beta`` and ``reg_lambda``."""
    named: dict[str, float] = {}
    for regularizer in candidate:
        if isinstance(regularizer, Castle):
            named |= {"reg_beta": float(regularizer.reg_beta), "reg_lambda": float(regularizer.reg_lambda)}
            continue
        for path, leaf in jax.tree_util.tree_leaves_with_path(regularizer):
            named[f"{type(regularizer).__name__}.{path[-1].name}"] = float(leaf)
    return named


def _member_names(candidates: Sequence[Regularizers], fold_names: Sequence[str]) -> list[list[str]]:
    """Return names of the networks of every candidate and fold, with the strengths that differ."""
    if len(candidates) == 1:
        return [list(fold_names)]
    strengths = [strengths_of(candidate) for candidate in candidates]
    differ = [name for name in dict.fromkeys(itertools.chain(*strengths)) if len({s.get(name) for s in strengths}) > 1]
    labels = [", ".join(f"{name}={s[name]:g}" for name in differ if name in s) for s in strengths]
    if len(set(labels)) < len(labels) or "" in labels:
        labels = [f"candidate {i}" for i in range(len(candidates))]
    return [[f"{label}, {fold}" for fold in fold_names] for label in labels]


_RUNGS = (0.25, 0.5)  # shares of the epochs after which candidates are compared
_CLEARLY = 2.0  # standard errors
_MARGIN = 0.1  # of the best loss


def _clearly_worse(losses: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Return which candidates to stop, given losses of shape (candidates, folds).

    A candidate is stopped if its loss exceeds the best one by a tenth and by two standard errors of the difference over
    folds. Candidates without a finite loss on every fold so far continue.
    """
    means = losses.mean(axis=1)
    best = int(np.argmin(np.where(np.isfinite(means), means, np.inf)))
    with np.errstate(invalid="ignore"):  # a fold without a finite loss yet
        difference = losses - losses[best]
        error = difference.std(axis=1, ddof=1) / np.sqrt(losses.shape[1]) if losses.shape[1] > 1 else np.inf
        worse: NDArray[np.bool_] = difference.mean(axis=1) > np.maximum(_MARGIN * means[best], _CLEARLY * error)
    return worse


class _Halving:
    """Callback that stops the members of clearly worse candidates at each rung."""

    def __init__(self, n_folds: int, max_epochs: int) -> None:
        self.n_folds = n_folds
        self.every = [math.ceil(share * max_epochs) for share in _RUNGS]

    def __call__(self, epoch: Epoch) -> NDArray[np.bool_] | None:
        """Return which members to stop."""
        if not epoch.active.any() or len(epoch.members) % self.n_folds:
            return None
        return np.repeat(_clearly_worse(epoch.best_loss.reshape(-1, self.n_folds)), self.n_folds)


# --- memory -----------------------------------------------------------------------------------------

# Weights, Adam's two moments and the best weights; and temporarily the gradient, its update and copies between calls.
_COPIES_OF_WEIGHTS = 8
_SHARE = 0.5  # of the free memory
_FALLBACK = 4 * 2**30  # bytes, if the system does not report it


def _member_bytes(
    layout: Layout, n_rows: int, hidden_layer_sizes: tuple[int, ...], regularizers: Sequence[Regularizer]
) -> int:
    """Estimate the memory of one network during training: weights, batches, and the rows of an epoch."""
    n_trained = len(trained_nodes(regularizers, layout))
    widths = hidden_layer_sizes or (layout.output_width,)
    weights = (layout.n_inputs + 1) * n_trained * widths[0]
    weights += sum((fan_in + 1) * fan_out for fan_in, fan_out in itertools.pairwise(widths))
    if hidden_layer_sizes:
        weights += n_trained * (widths[-1] + 1) * layout.output_width
    batches = 16 * 2 * n_rows  # indices of up to sixteen epochs, on the host and on the device
    epoch = n_rows * layout.n_channels // max(1, os.cpu_count() or 1)  # for the networks in training, one per core
    return 4 * (_COPIES_OF_WEIGHTS * weights + batches + epoch)


def _free_memory() -> int:
    """Return the free memory in bytes, within the limit of a container."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return _FALLBACK
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    try:
        return max(0, min(free, int(limit.read_text()) - int(used.read_text())))
    except (OSError, ValueError):  # not in a container, or no limit
        return int(free)


# --- linear forms -----------------------------------------------------------------------------------

# Strengths of the penalty, from the strongest to the weakest; each solution starts from the previous one. They cover
# the choices of cross-validation on tables of 100 to 5,000 rows.
_STRENGTHS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
_L1_SHARES = (0.1, 0.9)
_ABSENT = -10.0  # logit of a class without training rows
_MOST_STEPS = 300


_Form = tuple[float, float]  # strength of the penalty, and the share of the l1 norm in it


@dataclass(frozen=True)
class LinearStage:
    """Exact solutions of the linear form: elastic nets and logistic regressions as networks without hidden layers."""

    name: str = "linear"
    refit: bool = False
    epochs: int = 0

    @staticmethod
    def supports(layout: Layout) -> bool:
        """Whether the solutions have the losses and the signs that the layout asks for."""
        return not layout.is_monotone and all(layout.nodes[k].loss is None for k in layout.targets)

    def train(
        self,
        encoded: Encoded,
        folds: Sequence[Fold],
        seeds: Sequence[np.random.SeedSequence],
        control: Control,
        used: Sequence[NDArray[np.bool_]] | None = None,
    ) -> list[Result]:
        """Solve every form on every fold; only the targets' sub-networks exist."""
        layout = encoded.layout
        shares = _L1_SHARES if all(layout.nodes[k].kind == "numeric" for k in layout.targets) else (0.0,)
        forms = [(strength, share) for share in shares for strength in _STRENGTHS]
        standardization, _ = measure(encoded, [training_rows for training_rows, _ in folds])
        allowed = None if encoded.edges is None else encoded.edges.allowed
        enters = layout.edge_mask(encoded.constant, allowed)[:, list(layout.targets)] > 0
        shape = (len(forms), len(folds), layout.n_channels, len(layout.targets), layout.output_width)
        weights, bias = np.zeros(shape, np.float32), np.zeros((*shape[:2], *shape[3:]), np.float32)
        losses = np.zeros(shape[:2], np.float32)
        for fold, (training_rows, held) in enumerate(folds):
            own = standardization.take(fold)
            rows, left_out = _batch(encoded, training_rows, own), _batch(encoded, held, own)
            for k, node in enumerate(layout.targets):
                solve = _solve_numbers if layout.nodes[node].kind == "numeric" else _solve_classes
                inputs = np.flatnonzero(enters[:, k])
                solution, offset = solve(rows, inputs, node, layout.nodes[node], forms)
                width = solution.shape[-1]
                weights[:, fold, inputs, k, :width], bias[:, fold, k, :width] = solution, offset
            losses[:, fold] = _linear_losses(weights[:, fold], bias[:, fold], left_out, own, layout)
        return [
            Result(
                f"linear, strength {strength:g}, l1 share {share:g}",
                (),
                _solved_stack(weights[i], bias[i], standardization, losses[i]),
            )
            for i, (strength, share) in enumerate(forms)
        ]


Stage = NetworkStage | LinearStage


def _batch(encoded: Encoded, rows: Any, own: Standardization) -> Batch:
    weight = np.ones(len(rows)) if encoded.weight is None else encoded.weight[rows].astype(np.float64)
    return as_batch(encoded.inputs[rows].astype(np.float64), weight / weight.sum(), own, encoded.layout)


def _linear_losses(weights: Any, bias: Any, rows: Batch, own: Standardization, layout: Layout) -> NDArray[np.float64]:
    """Return the loss of the targets for every form, in NumPy, so that JAX need not start."""
    total = np.zeros(len(weights))
    x: Any = rows.inputs
    truth: Any = rows.truth
    for k, node in enumerate(layout.targets):
        outputs = np.einsum("rc,fco->fro", x, weights[:, :, k]) + bias[:, None, k]
        levels, unit = layout.nodes[node].levels, 1.0 if own.null_loss is None else float(own.null_loss[node])
        if layout.nodes[node].kind == "categorical":
            losses: Any = softmax_loss(outputs[..., :levels], truth[:, node, :levels])
        else:
            loss = squared_error if layout.nodes[node].kind == "numeric" else logistic_loss
            losses = loss(outputs[..., 0], truth[:, node, 0])
        total += np.asarray(losses) @ np.asarray(rows.weight) / unit
    return total


def _solve_numbers(
    rows: Batch, inputs: NDArray[np.int64], node: int, target: Node, forms: Sequence[_Form]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve elastic nets: weights of shape (forms, inputs, 1), and no bias, since means are zero."""
    root = np.sqrt(np.asarray(rows.weight) * len(rows.weight))
    X = np.asfortranarray(np.asarray(rows.inputs)[:, inputs] * root[:, None])
    y = np.asarray(rows.truth)[:, node, 0] * root
    weights = np.zeros((len(forms), len(inputs), 1))
    if not len(inputs):
        return weights, np.zeros((len(forms), 1))
    for share in {share for _, share in forms}:
        at = [i for i, form in enumerate(forms) if form[1] == share]
        strengths = [forms[i][0] for i in at]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # accurate enough for a candidate
            _, path, _ = enet_path(
                X, y, l1_ratio=share, alphas=strengths, tol=1e-3, max_iter=_MOST_STEPS, random_state=0
            )
        order = np.argsort(np.argsort(strengths)[::-1])  # the path starts with the strongest
        weights[at, :, 0] = path.T[order]
    return weights, np.zeros((len(forms), 1))


def _solve_classes(
    rows: Batch, inputs: NDArray[np.int64], node: int, target: Node, forms: Sequence[_Form]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve logistic regressions: weights of shape (forms, inputs, outputs), and biases."""
    X, weight = np.asarray(rows.inputs)[:, inputs], np.asarray(rows.weight)
    truth = np.asarray(rows.truth)[:, node]
    is_binary = target.kind == "binary"
    codes = truth[:, 0].astype(int) if is_binary else truth[:, : target.levels].argmax(axis=1)
    present = np.unique(codes)
    weights, offset = np.zeros((len(forms), len(inputs), target.levels)), np.full((len(forms), target.levels), _ABSENT)
    if len(present) == 1:
        offset[:, 0 if is_binary else present[0]] = _ABSENT if is_binary and not present[0] else -_ABSENT
        return weights, offset
    if not len(inputs):
        shares = np.bincount(codes, weight)[present]
        if is_binary:
            offset[:, 0] = np.log(shares[1] / shares[0])
        else:
            offset[:, present] = np.log(shares)
        return weights, offset
    model = LogisticRegression(warm_start=True, max_iter=_MOST_STEPS, tol=1e-4)
    for i in np.argsort([-strength for strength, _ in forms], kind="stable"):
        model.C = 1 / (forms[i][0] * len(codes))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, codes, sample_weight=weight * len(codes))
        if is_binary:
            weights[i, :, 0], offset[i, 0] = model.coef_[0], model.intercept_[0]
        elif len(present) == 2:  # two of several classes: half of the logit for each
            weights[i][:, present], offset[i, present] = model.coef_.T * [-0.5, 0.5], model.intercept_ * [-0.5, 0.5]
        else:
            weights[i][:, present], offset[i, present] = model.coef_.T, model.intercept_
    return weights, offset


def _solved_stack(weights: Any, bias: Any, standardization: Standardization, losses: Any) -> TrainedStack:
    n = len(losses)
    return TrainedStack(
        parameters=Parameters(weights, bias, (), None, None),
        standardization=standardization,
        validation_loss=losses,
        best_epoch=np.ones(n, np.int32),
        history=pd.DataFrame({"member": np.arange(n), "epoch": 1, "validation_loss": losses}),
        interrupted=False,
        engine="",
    )
