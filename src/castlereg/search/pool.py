"""The candidates of ``search="fast"`` and ``search="best"``: stages of networks, each trained as one stack.

The settings were chosen on five tables of the accuracy benchmark, on splits that it does not report; see
docs/accuracy.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from castlereg.layout import Layout
from castlereg.regularizers import Castle, Dropout
from castlereg.search.grid import Candidate
from castlereg.training import Phase, Plan

Search = Literal["paper", "fast", "best"]

_CASTLE_WIDTH = 32
_WIDTH = 64
_EMBEDDING = 8
# Of more features, each step trains the sub-networks of some: its cost then hardly depends on how many there are.
_MOST_FEATURES = 24
_FEATURES_PER_STEP = 12
_LEARNING_RATE = 4e-3
_PATIENCE = 40
_EPOCHS = 150
_FEW_ROWS, _MANY_ROWS = 1000, 10_000


@dataclass(frozen=True)
class Stage:
    """Candidates that are trained together: the same plan, regularizers of different strengths."""

    name: str
    plan: Plan
    candidates: tuple[Candidate, ...]
    refit: bool = False  # whether it trains on the columns that the networks of the first stage selected

    def label(self, number: int) -> str:
        """Name a candidate by what distinguishes it."""
        parts = [self.name]
        for regularizer in self.candidates[number]:
            if isinstance(regularizer, Castle) and regularizer.reg_beta > 0:
                parts.append(f"beta {regularizer.reg_beta:g}")
            if isinstance(regularizer, Dropout):
                parts.append(f"dropout {regularizer.rate:g}")
        return ", ".join(parts)


def pool(search: Search, layout: Layout, n_rows: int, causal: bool = True) -> list[Stage]:
    """Return the stages of a search for a table.

    Parameters
    ----------
    search : {"fast", "best"}
    layout : Layout
    n_rows : int
    causal : bool
        Whether the first stage is CASTLE; otherwise only its sparsity, without reconstruction and acyclicity.

    Examples
    --------
    >>> from castlereg.layout import Layout, Node
    >>> [stage.name for stage in pool("fast", Layout((Node(), Node(), Node(target=True))), 500)]
    ['CASTLE', 'embedded', 'embedded, sparse', 'refit']
    """
    best = search == "best"
    batch = 64 if n_rows < _FEW_ROWS else 128 if n_rows < _MANY_ROWS else 256
    epochs = _EPOCHS if n_rows < _MANY_ROWS else 60
    wide = Plan(
        (_WIDTH, _WIDTH),
        (Phase(epochs),),
        _LEARNING_RATE,
        batch,
        _PATIENCE,
        input_init="glorot",
        schedule="cosine",
    )
    sampled = _FEATURES_PER_STEP if layout.n_features > _MOST_FEATURES and causal else None
    castle = Castle(features_per_step=sampled, acyclicity="auto")
    if not causal:
        castle = replace(castle, reconstruction=False, acyclicity=None)
    betas = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1) if best else (0.001, 0.01, 0.1)
    first = Stage(
        "CASTLE" if causal else "sparse",
        replace(wide, hidden_layer_sizes=(_CASTLE_WIDTH, _CASTLE_WIDTH), input_init="small"),
        tuple((replace(castle, reg_beta=beta),) for beta in betas),
    )
    wide = replace(wide, embedding=_EMBEDDING)
    small = replace(wide, input_init="small")
    return [
        first,
        Stage("embedded", wide, _sparse([(0.0, 0.1), (0.0, 0.3), (0.003, 0.1)][: 3 if best else 2])),
        Stage("embedded, sparse", small, _sparse([(0.01, 0.1), (0.03, 0.1), (0.01, 0.3)][: 3 if best else 2])),
        Stage("refit", wide, _sparse([(0.0, 0.1), (0.0, 0.3), (0.003, 0.1)][: 3 if best else 2]), refit=True),
    ]


def _sparse(strengths: Sequence[tuple[float, float]]) -> tuple[Candidate, ...]:
    """Return candidates of a sparse input layer and dropout."""
    return tuple(
        (Castle(reg_beta=beta, reconstruction=False, acyclicity=None), Dropout(rate)) for beta, rate in strengths
    )
