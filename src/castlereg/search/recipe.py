"""Training options and the stages of searches: the paper's grid, and the pool of ``search="fast"`` and ``"best"``.

An option that is None takes the value of the search, and any other value holds in every stage. The pool's own values
were chosen on five tables of the accuracy benchmark, with splits that the benchmark does not report; see
docs/accuracy.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from castlereg.layout import Layout
from castlereg.network import ActivationName
from castlereg.options import check_choice, check_flag, check_fraction, check_integer, check_number, check_share
from castlereg.regularizers import Castle, Dropout, Regularizer
from castlereg.search.candidates import LinearStage, NetworkStage, Regularizers, Stage
from castlereg.training import Plan, phases_for
from castlereg.training.state import Batches, EngineChoice, Schedule, Start


@dataclass(frozen=True)
class Recipe:
    """Details of the training of networks, beyond the options of the estimator.

    A field that is None takes the value of the search. The values in brackets are those of the paper, which hold for
    estimators without a search and for ``search="paper"``.

    Parameters
    ----------
    scaling : {"standard", "robust"}, optional
        ``"standard"`` standardizes columns, as in the paper [default]. ``"robust"`` first scales numeric columns by
        their quartiles and clips extreme values smoothly; use it for columns with long tails or outliers.
    input_init : {"small", "glorot"} or callable, optional
        Initial weights of the input layers: normal with standard deviation 0.01 ["small"], or the usual Glorot scale,
        with which the acyclicity term of wide tables dominates all others. For custom initial weights, pass a function
        of layout, widths, seed and nodes, see :func:`castlereg.network.initialize`.
    validation_fraction : float, optional
        Share of rows held out for early stopping [0.1], unless ``X_val`` and ``y_val`` are passed to ``fit``. With
        cross-validation, early stopping uses the rows that each fold leaves out, and a value raises.
    patience : int, optional
        Training stops after this number of epochs without a lower validation loss [30], and keeps the best epoch's
        weights.
    warmup : int, optional
        Number of epochs at the start that early stopping ignores [0], at most all but the last one.
    batch_size : int, optional
        Number of rows in a step [32].
    batches : {"shuffle", "independent"}, optional
        ``"shuffle"`` uses every row once per epoch, in random order; ``"independent"`` draws each batch independently.
    schedule : {"constant", "cosine"}, optional
        Learning rate schedule: constant, or decaying to a hundredth along half a cosine wave.
    activation : {"relu", "silu"}, optional
        Activation of the hidden units.
    averaging : float, optional
        Predict with an exponential moving average of the weights over epochs, with this decay per epoch, such as 0.8.
    weight_decay : float, optional
        Weight decay of AdamW: each step shrinks all weights by this share, times the learning rate.
    embedding : int, optional
        Number of additional inputs that the network computes from each numeric value with learned waves [0], see
        :class:`castlereg.network.Embedding`; 8 suits tables with thresholds and bumps. All inputs of a column belong to
        its node, so the nodes of the graph do not change.
    refit : bool, optional
        Select columns, then refit: find the smallest set of columns with which the CASTLE networks predict the
        validation rows nearly as well, and train new networks on these without the CASTLE penalty [False]. The input
        graph is still that of CASTLE; ``selected_features_`` lists the columns. The pool refits unless this is False.
    engine : {"auto", "jax", "native"}
        Engine that trains the networks; ``engine_`` shows which one was used. ``"native"`` uses the compiled kernels,
        which start immediately and use all cores, and raises for options that they do not support. ``"auto"`` uses the
        kernels if they support the networks and are faster, and JAX otherwise or if JAX has an accelerator.

    Examples
    --------
    >>> from castlereg import CastleRegressor, Recipe
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = CastleRegressor(recipe=Recipe(scaling="robust"), max_epochs=10, random_state=0).fit(X, y)
    """

    scaling: Literal["standard", "robust"] | None = None
    input_init: Start | None = None
    validation_fraction: float | None = None
    patience: int | None = None
    warmup: int | None = None
    batch_size: int | None = None
    batches: Batches | None = None
    schedule: Schedule | None = None
    activation: ActivationName | None = None
    averaging: float | None = None
    weight_decay: float | None = None
    embedding: int | None = None
    refit: bool | None = None
    engine: EngineChoice = "auto"

    def __post_init__(self) -> None:
        checks: dict[str, Any] = {
            "scaling": lambda name, value: check_choice(name, value, ["standard", "robust"]),
            "input_init": lambda name, value: (
                None if callable(value) else check_choice(name, value, ["small", "glorot"])
            ),
            "validation_fraction": check_fraction,
            "patience": check_integer,
            "warmup": lambda name, value: check_integer(name, value, least=0),
            "batch_size": check_integer,
            "batches": lambda name, value: check_choice(name, value, ["shuffle", "independent"]),
            "schedule": lambda name, value: check_choice(name, value, ["constant", "cosine"]),
            "activation": lambda name, value: check_choice(name, value, ["relu", "silu"]),
            "averaging": check_share,
            "weight_decay": lambda name, value: check_number(name, value, least=0),
            "embedding": lambda name, value: check_integer(name, value, least=0),
            "refit": check_flag,
            "engine": lambda name, value: check_choice(name, value, ["auto", "jax", "native"]),
        }
        for name, check in checks.items():
            if getattr(self, name) is not None:
                check(name, getattr(self, name))

    def filled(self, defaults: Recipe) -> Recipe:
        """Replace fields that are None by those of ``defaults``."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(defaults, **{name: value for name, value in values.items() if value is not None})


PAPER = Recipe("standard", "small", 0.1, 30, 0, 32, "shuffle", "constant", "relu", embedding=0, refit=False)
PAPER_BETAS = (0.001, 0.01, 0.1, 1.0)
PAPER_LEARNING_RATE, PAPER_EPOCHS = 1e-3, 200
# In two layers of three or four ReLUs, all units often die; the paper's narrowest table has 8 features.
_NARROWEST = 8

# Values of the pool.
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
class TrainingOptions:
    """Options of an estimator that decide how its networks are trained; None for the value of the search."""

    hidden_layer_sizes: tuple[int, ...] | None = None
    learning_rate: float | None = None
    max_epochs: int | None = None
    recipe: Recipe = field(default_factory=Recipe)
    castles: tuple[Castle, ...] | None = None  # details of the penalty, each tried with every strength
    reg_betas: tuple[float, ...] | None = None
    regularizers: Regularizers = ()  # of every network, besides CASTLE

    def plan(self, sizes: tuple[int, ...], learning_rate: float, max_epochs: int, defaults: Recipe) -> Plan:
        """Return the plan of a stage, whose own values hold where an option is None."""
        recipe: Any = self.recipe.filled(defaults)
        epochs = max_epochs if self.max_epochs is None else self.max_epochs
        return Plan(
            sizes if self.hidden_layer_sizes is None else self.hidden_layer_sizes,
            phases_for(epochs, recipe.warmup or 0, recipe.schedule),
            learning_rate if self.learning_rate is None else self.learning_rate,
            **{option.name: getattr(recipe, option.name) for option in fields(Plan) if hasattr(recipe, option.name)},
        )

    def candidates(self, betas: Sequence[float], castle: Castle) -> tuple[Regularizers, ...]:
        """Return CASTLE in all strengths, with the other regularizers."""
        castles = self.castles or (castle,)
        strengths = betas if self.reg_betas is None else self.reg_betas
        return tuple((replace(c, reg_beta=float(beta)), *self.regularizers) for beta in strengths for c in castles)


def network_stages(
    candidates: Sequence[Regularizers],
    options: TrainingOptions,
    layout: Layout,
    kind: str,
    names: tuple[str, ...] | None = None,
) -> list[Stage]:
    """Return the stages of a grid or of a plain fit, with the paper's values, and that of the refit if there is one."""
    width = max(layout.n_features + 1, _NARROWEST)
    plan = options.plan((width, width), PAPER_LEARNING_RATE, PAPER_EPOCHS, PAPER)
    stages: list[Stage] = [NetworkStage(kind, plan, tuple(candidates), member_names=names)]
    if options.recipe.refit:
        stages.append(NetworkStage("refit", plan, (options.regularizers,), refit=True, member_names=names))
    return stages


def paper_grid(options: TrainingOptions, layout: Layout) -> list[Stage]:
    """Return CASTLE in the strengths of the paper."""
    return network_stages(options.candidates(PAPER_BETAS, Castle()), options, layout, "CASTLE")


def pool(options: TrainingOptions, layout: Layout, n_rows: int) -> list[Stage]:
    """Return the stages of the pool for a table.

    Parameters
    ----------
    options : TrainingOptions
    layout : Layout
    n_rows : int

    Examples
    --------
    >>> from castlereg.layout import Layout, Node
    >>> layout = Layout((Node(), Node(), Node(target=True)))
    >>> [stage.name for stage in pool(TrainingOptions(), layout, 500)]
    ['linear', 'CASTLE', 'embedded', 'embedded, sparse', 'refit']
    """
    epochs = next((epochs for most, epochs in _EPOCHS if n_rows <= most), _EPOCHS_OF_MORE)
    epochs = max(_FEWEST_EPOCHS, round(epochs * min(1.0, _FEATURES_OF_ALL_EPOCHS / layout.n_features)))
    embedding = next((inputs for most, inputs in _EMBEDDING if layout.n_features <= most), 0)
    batch = 64 if n_rows < 1000 else 128 if n_rows < 10_000 else 256
    base = replace(PAPER, batch_size=batch, patience=_PATIENCE, schedule="cosine")
    # CASTLE selects columns and has the input graph.
    if layout.n_features <= _MOST_FEATURES:
        width, most_epochs, castle = _CASTLE_WIDTH, epochs, Castle()
    else:
        width, most_epochs = _WIDE["width"], min(_WIDE["epochs"], epochs)
        castle = Castle(features_per_step=_WIDE["features_per_step"], acyclicity="auto")
    plan = options.plan((width, width), _LEARNING_RATE, most_epochs, base)

    def stage(name: str, *strengths: tuple[float, float], refit: bool = False, **recipe: Any) -> NetworkStage:
        own = options.plan((_WIDTH, _WIDTH), _LEARNING_RATE, epochs, replace(base, embedding=embedding, **recipe))
        return NetworkStage(name, own, _sparse(options, strengths), refit, halving=True)

    name = "embedded" if (embedding if options.recipe.embedding is None else options.recipe.embedding) else "wide"
    stages: list[Stage] = [LinearStage()] if LinearStage.supports(layout) else []
    stages += [
        NetworkStage("CASTLE", plan, options.candidates(_BETAS, castle), halving=True),
        stage(name, (0.0, 0.1), (0.003, 0.1), input_init="glorot"),
        stage(f"{name}, sparse", (0.01, 0.1), (0.03, 0.1)),
    ]
    if options.recipe.refit is not False:
        stages.append(stage("refit", (0.0, 0.1), (0.0, 0.3), refit=True, input_init="glorot"))
    return stages


def _sparse(options: TrainingOptions, strengths: Sequence[tuple[float, float]]) -> tuple[Regularizers, ...]:
    """Return candidates with a sparse input layer and dropout, given pairs of beta and dropout rate.

    The user's regularizers replace those of the same kind.
    """
    kinds = {type(regularizer) for regularizer in options.regularizers}

    def combined(*own: Regularizer) -> Regularizers:
        needed = [r for r in own if not (r.needs_hidden_layers and options.hidden_layer_sizes == ())]
        return (*(r for r in needed if type(r) not in kinds), *options.regularizers)

    sparse = Castle(reconstruction=False, acyclicity=None)
    candidates = [combined(replace(sparse, reg_beta=beta), Dropout(rate)) for beta, rate in strengths]
    return tuple(dict.fromkeys(candidates))
