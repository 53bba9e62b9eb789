"""The candidates of ``search="fast"`` and ``search="best"``: stages of networks, each trained as one stack.

Both have the same candidates; ``"best"`` trains them on two sets of folds. The settings were chosen on five tables of
the accuracy benchmark, with splits that the benchmark does not report; see docs/accuracy.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from castlereg.layout import Layout
from castlereg.regularizers import Castle, Dropout
from castlereg.search.grid import Candidate
from castlereg.training import Phase, Plan
from castlereg.training.engines.protocol import EngineChoice

_BETAS = (0.001, 0.01, 0.1)
_CASTLE_WIDTH = 32
_WIDTH = 64
# Embedded inputs cost as much as plain columns, so wide tables have fewer or none.
_EMBEDDING = ((40, 8), (100, 4))  # maximum number of features, inputs of each number
# Wide tables: each step trains the sub-networks of a few features; networks are narrower, with fewer epochs.
_MOST_FEATURES = 24
_WIDE = {"width": 16, "features_per_step": 8, "epochs": 60}
_LEARNING_RATE = 4e-3
_PATIENCE = 40
_EPOCHS = ((1000, 150), (10_000, 100))  # maximum number of rows, epochs
_EPOCHS_OF_MORE = 50
_FEWEST_EPOCHS, _FEATURES_OF_ALL_EPOCHS = 50, 60  # wider tables have fewer epochs, down to this minimum


@dataclass(frozen=True)
class Stage:
    """Candidates that are trained together, with the same plan and different strengths of the regularizers."""

    name: str
    plan: Plan
    candidates: tuple[Candidate, ...]
    refit: bool = False  # whether it trains on the columns selected by the first stage

    def label(self, number: int) -> str:
        """Return a name that distinguishes a candidate from the others."""
        parts = [self.name]
        for regularizer in self.candidates[number]:
            if isinstance(regularizer, Castle) and regularizer.reg_beta > 0:
                parts.append(f"beta {regularizer.reg_beta:g}")
            if isinstance(regularizer, Dropout):
                parts.append(f"dropout {regularizer.rate:g}")
        return ", ".join(parts)


def pool(layout: Layout, n_rows: int, causal: bool = True, engine: EngineChoice = "auto") -> list[Stage]:
    """Return the stages of a search for a table.

    Parameters
    ----------
    layout : Layout
    n_rows : int
    causal : bool
        Whether the first stage is CASTLE; otherwise only its sparsity, without reconstruction and acyclicity.
    engine : {"auto", "jax", "native"}
        Engine that trains the networks.

    Examples
    --------
    >>> from castlereg.layout import Layout, Node
    >>> [stage.name for stage in pool(Layout((Node(), Node(), Node(target=True))), 500)]
    ['CASTLE', 'embedded', 'embedded, sparse', 'refit']
    """
    batch = 64 if n_rows < 1000 else 128 if n_rows < 10_000 else 256
    epochs = next((epochs for most, epochs in _EPOCHS if n_rows <= most), _EPOCHS_OF_MORE)
    epochs = max(_FEWEST_EPOCHS, round(epochs * min(1.0, _FEATURES_OF_ALL_EPOCHS / layout.n_features)))
    plan = Plan((_WIDTH, _WIDTH), (Phase(epochs),), _LEARNING_RATE, batch, _PATIENCE, schedule="cosine", engine=engine)
    embedding = next((inputs for most, inputs in _EMBEDDING if layout.n_features <= most), 0)
    small = replace(plan, embedding=embedding)
    usual = replace(small, input_init="glorot")
    name = "embedded" if embedding else "wide"
    return [
        _first(plan, layout, causal),
        Stage(name, usual, _sparse((0.0, 0.1), (0.003, 0.1))),
        Stage(f"{name}, sparse", small, _sparse((0.01, 0.1), (0.03, 0.1))),
        Stage("refit", usual, _sparse((0.0, 0.1), (0.0, 0.3)), refit=True),
    ]


def _first(plan: Plan, layout: Layout, causal: bool) -> Stage:
    """Return the stage that selects columns: CASTLE, or its sparsity only."""
    if not causal:
        plan = replace(plan, hidden_layer_sizes=(_CASTLE_WIDTH, _CASTLE_WIDTH))
        castle = Castle(reconstruction=False, acyclicity=None)
        return Stage("sparse", plan, tuple((replace(castle, reg_beta=beta),) for beta in _BETAS))
    if layout.n_features <= _MOST_FEATURES:
        plan, castle = replace(plan, hidden_layer_sizes=(_CASTLE_WIDTH, _CASTLE_WIDTH)), Castle()
    else:
        width, epochs = _WIDE["width"], min(_WIDE["epochs"], plan.max_epochs)
        plan = replace(plan, hidden_layer_sizes=(width, width), phases=(Phase(epochs),))
        castle = Castle(features_per_step=_WIDE["features_per_step"], acyclicity="auto")
    return Stage("CASTLE", plan, tuple((replace(castle, reg_beta=beta),) for beta in _BETAS))


def _sparse(*strengths: tuple[float, float]) -> tuple[Candidate, ...]:
    """Return candidates with a sparse input layer and dropout, given pairs of beta and dropout rate."""
    return tuple(
        (Castle(reg_beta=beta, reconstruction=False, acyclicity=None), Dropout(rate)) for beta, rate in strengths
    )
