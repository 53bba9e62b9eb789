"""The details of training that rarely need a change, in one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from castlereg.options import check_choice, check_fraction, check_integer
from castlereg.training.plan import Batches, Start


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
    batches : {"shuffle", "independent"}
        An epoch goes once through the rows in random order; or its batches are drawn independently.

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
    batches: Batches = "shuffle"

    def __post_init__(self) -> None:
        check_choice("scaling", self.scaling, ["standard", "robust"])
        if not callable(self.input_init):
            check_choice("input_init", self.input_init, ["small", "glorot"])
        check_fraction("validation_fraction", self.validation_fraction)
        check_integer("patience", self.patience)
        check_integer("warmup", self.warmup, least=0)
        check_choice("batches", self.batches, ["shuffle", "independent"])


DEFAULT_RECIPE = Recipe()
