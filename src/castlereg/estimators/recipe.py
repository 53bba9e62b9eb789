"""Details of training that rarely need to be changed, in one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from castlereg.network import ActivationName
from castlereg.options import check_choice, check_flag, check_fraction, check_integer, check_number, check_share
from castlereg.training.engines.protocol import EngineChoice
from castlereg.training.plan import Batches, Schedule, Start


@dataclass(frozen=True)
class Recipe:
    """Details of the training of a network, beyond the options of the estimator.

    Parameters
    ----------
    scaling : {"standard", "robust"}
        ``"standard"`` standardizes columns, as in the paper. ``"robust"`` first scales numeric columns by their
        quartiles and clips extreme values smoothly; use it for columns with long tails or outliers.
    input_init : {"small", "glorot"} or callable
        Initial weights of the input layers: normal with standard deviation 0.01, or the usual Glorot scale, with which
        the acyclicity term of wide tables dominates all others. For custom initial weights, pass a function of layout,
        widths, seed and nodes, see :func:`castlereg.network.initialize`.
    validation_fraction : float
        Share of rows held out for early stopping, unless ``X_val`` and ``y_val`` are passed to ``fit``. With
        cross-validation, early stopping uses the rows that each fold leaves out, and any value but the default raises.
    patience : int
        Training stops after this number of epochs without a lower validation loss, and keeps the best epoch's weights.
    warmup : int
        Number of epochs at the start that early stopping ignores, at most all but the last one; must be 0 for
        ``objective="graph"``, which has its own phases.
    batch_size : int
        Number of rows in a step.
    batches : {"shuffle", "independent"}
        ``"shuffle"`` uses every row once per epoch, in random order; ``"independent"`` draws each batch independently.
    schedule : {"constant", "cosine"}
        Learning rate schedule: constant, or decaying to a hundredth along half a cosine wave.
    activation : {"relu", "silu"}
        Activation of the hidden units.
    averaging : float, optional
        Predict with an exponential moving average of the weights over epochs, with this decay per epoch, such as 0.8.
    weight_decay : float, optional
        Weight decay of AdamW: each step shrinks all weights by this share, times the learning rate.
    embedding : int
        Number of additional inputs that the network computes from each numeric value with learned waves, see
        :class:`castlereg.network.Embedding`; 8 suits tables with thresholds and bumps. All inputs of a column belong to
        its node, so the nodes of the graph do not change.
    refit : bool
        Select columns, then refit: find the smallest set of columns with which the CASTLE networks predict the
        validation rows nearly as well, and train new networks on these without the CASTLE penalty. The graph is still
        that of CASTLE; ``selected_features_`` lists the columns.
    engine : {"auto", "jax", "native"}
        Engine that trains the networks; ``engine_`` shows which one was used. ``"native"`` uses the compiled kernels of
        the package castlereg-kernels, which start immediately and use all cores, and raises for options that they do
        not support. ``"auto"`` uses the kernels if they support the networks and are faster, and JAX otherwise. It also
        uses JAX if devices were chosen with ``use_devices`` or ``jax_default_device``, or if JAX has an accelerator.

    Examples
    --------
    >>> from castlereg import CastleRegressor, Recipe
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = CastleRegressor(recipe=Recipe(scaling="robust"), max_epochs=10, random_state=0).fit(X, y)
    """

    scaling: Literal["standard", "robust"] = "standard"
    input_init: Start = "small"
    validation_fraction: float = 0.1
    patience: int = 30
    warmup: int = 0
    batch_size: int = 32
    batches: Batches = "shuffle"
    schedule: Schedule = "constant"
    activation: ActivationName = "relu"
    averaging: float | None = None
    weight_decay: float | None = None
    embedding: int = 0
    refit: bool = False
    engine: EngineChoice = "auto"

    def __post_init__(self) -> None:
        check_choice("scaling", self.scaling, ["standard", "robust"])
        if not callable(self.input_init):
            check_choice("input_init", self.input_init, ["small", "glorot"])
        check_fraction("validation_fraction", self.validation_fraction)
        check_integer("patience", self.patience)
        check_integer("warmup", self.warmup, least=0)
        check_integer("batch_size", self.batch_size)
        check_choice("batches", self.batches, ["shuffle", "independent"])
        check_choice("schedule", self.schedule, ["constant", "cosine"])
        check_choice("activation", self.activation, ["relu", "silu"])
        if self.averaging is not None:
            check_share("averaging", self.averaging)
        if self.weight_decay is not None:
            check_number("weight_decay", self.weight_decay, least=0)
        check_integer("embedding", self.embedding, least=0)
        check_flag("refit", self.refit)
        check_choice("engine", self.engine, ["auto", "jax", "native"])


DEFAULT_RECIPE = Recipe()
