"""The course of training: one curve per network, and their mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

_MOST_DRAWN = 40  # networks; more curves overlap too much

Points = tuple[tuple[float, float], ...]  # epoch, value


@dataclass(frozen=True)
class Curves:
    """One quantity over the epochs."""

    title: str
    unit: str
    members: tuple[Points, ...]  # one line per network
    mean: Points  # over the epochs in which all networks train
    best: Points  # one per network, at the epoch that its weights come from


@dataclass(frozen=True)
class TrainingContent:
    """Number of epochs, losses and curves."""

    n_networks: int
    n_drawn: int
    epochs: tuple[int, int]  # of the shortest and the longest training
    best_epochs: tuple[int, int]  # earliest and latest; without a validation loss, the last epochs
    validation_loss: float | None  # mean over networks, each at its best epoch; None if no rows were held out
    curves: tuple[Curves, ...]  # training objective and, if known, validation loss


def training_content(history: pd.DataFrame, validation_loss: float, warmup: int = 0) -> TrainingContent:
    """Convert a history, one row per network and epoch, to curves; the first ``warmup`` epochs cannot be the best.

    A validation loss of NaN means that the networks have the weights of the last epoch.

    >>> history = pd.DataFrame(
    ...     {"member": [0, 0, 0], "epoch": [1, 2, 3], "objective": [9.0, 7.0, 6.0], "validation_loss": [0.9, 0.7, 0.8]}
    ... )
    >>> training = training_content(history, 0.7)
    >>> training.best_epochs, training.curves[1].best
    ((2, 2), ((2.0, 0.7),))
    """
    tables = history.pivot(index="epoch", columns="member", values=["objective", "validation_loss"])
    validation = tables["validation_loss"]
    lengths = history.groupby("member")["epoch"].max()
    has_best = not np.isnan(validation_loss)
    best = validation[validation.index > warmup].idxmin() if has_best else lengths
    best_of_drawn = best[:_MOST_DRAWN]
    unit = "about 1 if the mean or the base rates are predicted"
    return TrainingContent(
        n_networks=len(best),
        n_drawn=len(best_of_drawn),
        epochs=(int(lengths.min()), int(lengths.max())),
        best_epochs=(int(best.min()), int(best.max())),
        validation_loss=float(validation_loss) if has_best else None,
        curves=(
            _curves("Training objective", "sum of all terms", tables["objective"], best_of_drawn),
            *([_curves("Validation loss", unit, validation, best_of_drawn)] if has_best else []),
        ),
    )


def _curves(title: str, unit: str, table: pd.DataFrame, best: pd.Series) -> Curves:
    table = table.where(np.isfinite(table))
    return Curves(
        title,
        unit,
        tuple(_points(table[member].dropna()) for member in best.index),
        _points(table.dropna().mean(axis=1)),
        tuple((float(epoch), float(table.loc[epoch, member])) for member, epoch in best.items()),
    )


def _points(values: pd.Series) -> Points:
    return tuple((float(epoch), float(value)) for epoch, value in values.items())
