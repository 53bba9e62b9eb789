"""The details of training that rarely need a change, in one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from castlereg.network import ActivationName
from castlereg.options import check_choice, check_flag, check_fraction, check_integer, check_number, check_share
from castlereg.training.engines.protocol import EngineChoice
from castlereg.training.plan import Batches, Schedule, Start


@dataclass(frozen=True)
class Recipe:
    """How a network is trained, beyond the options that people tune.

    Parameters
    ----------
    scaling : {"standard", "robust"}
        ``"robust"`` scales numeric columns by their quartiles and draws far values in smoothly, before standardizing
        them: for columns with long tails or wild values. The paper standardizes.
    input_init : {"small", "glorot"} or callable
        Start of the input layers: normal with sd 0.01, or the usual scale, with which the acyclicity term of wide
        tables outweighs all others. A function of layout, widths, seed and nodes returns any other start, see
        :func:`castlereg.network.initialize`.
    validation_fraction : float
        Share of rows held out for early stopping, unless ``fit`` is given ``X_val`` and ``y_val``. Estimators that
        cross-validate use the rows that their folds leave out, and raise for any other fraction than the default.
    patience : int
        Epochs without a lower validation loss after which training stops. The best epoch's weights are kept.
    warmup : int
        Epochs, at most all but the last one, before the best epoch and patience count; 0 with ``objective="graph"``,
        which has its own phases.
    batch_size : int
        Rows in a step.
    batches : {"shuffle", "independent"}
        An epoch goes once through the rows in random order; or its batches are drawn independently.
    schedule : {"constant", "cosine"}
        Of the learning rate: the same in all epochs, or falling to a hundredth along half a cosine wave.
    activation : {"relu", "silu"}
        Of the hidden units.
    averaging : float, optional
        Predict with a running average of the weights over epochs; this share of it is left after each epoch, such as
        0.8.
    weight_decay : float, optional
        Share of all weights that each step takes away, times the learning rate (AdamW).
    embedding : int
        Inputs that the network computes of each number by learned waves, beside the number itself, see
        :class:`castlereg.network.Embedding`; 8 suits tables with thresholds and bumps. All inputs of a column belong to
        its node, so the graph has the same nodes.
    refit : bool
        Discover, then refit: keep the columns that CASTLE needs for the target, as few as predict the validation rows
        nearly as well, and train networks anew on these without CASTLE's penalty. The graph stays that of CASTLE;
        ``selected_features_`` names the columns.
    engine : {"auto", "jax", "native"}
        What trains the networks; ``engine_`` says what did. ``"native"`` are the kernels of the package
        castlereg-kernels, which start at once and use all cores; they raise for what they do not cover. ``"auto"``
        takes them where they cover the networks and are faster, unless devices were chosen by ``use_devices`` or
        ``jax_default_device`` or JAX has an accelerator, and JAX otherwise.

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
