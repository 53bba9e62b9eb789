"""How training went: one curve for each network, and their mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

_MOST_DRAWN = 40  # networks; more only blacken the picture

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Curves:
    """One quantity over the epochs.

    Attributes
    ----------
    title, unit : str
    members : tuple of points (epoch, value)
        One line for each network.
    mean : points
        While all networks train.
    best : points
        Where each network was best, which is what was kept.
    """

    title: str
    unit: str
    members: tuple[Points, ...]
    mean: Points
    best: Points


@dataclass(frozen=True)
class TrainingContent:
    """All that is said of training.

    Attributes
    ----------
    n_networks : int
    n_drawn : int
    epochs : tuple of int
        Fewest and most epochs that a network was trained for.
    best_epochs : tuple of int
        Earliest and latest best epoch.
    validation_loss : float
        Mean over networks, at the best epoch.
    curves : tuple of Curves
        Training objective and validation loss.
    """

    n_networks: int
    n_drawn: int
    epochs: tuple[int, int]
    best_epochs: tuple[int, int]
    validation_loss: float
    curves: tuple[Curves, ...]


def training_content(history: pd.DataFrame, validation_loss: float) -> TrainingContent:
    """Read the curves off a history.

    Parameters
    ----------
    history : DataFrame
        ``history_`` of an estimator: one row per network and epoch.
    validation_loss : float

    Returns
    -------
    TrainingContent

    Examples
    --------
    >>> import pandas as pd
    >>> history = pd.DataFrame(
    ...     {"member": [0, 0, 0], "epoch": [1, 2, 3], "objective": [9.0, 7.0, 6.0], "validation_loss": [0.9, 0.7, 0.8]}
    ... )
    >>> training = training_content(history, 0.7)
    >>> training.best_epochs, training.curves[1].best
    ((2, 2), ((2.0, 0.7),))
    """
    validation = history.pivot(index="epoch", columns="member", values="validation_loss")
    best = validation.idxmin()
    lengths = history.groupby("member")["epoch"].max()
    drawn = list(validation.columns[:_MOST_DRAWN])
    return TrainingContent(
        n_networks=validation.shape[1],
        n_drawn=len(drawn),
        epochs=(int(lengths.min()), int(lengths.max())),
        best_epochs=(int(best.min()), int(best.max())),
        validation_loss=float(validation_loss),
        curves=(
            _curves("Training objective", "all terms together", history, "objective", best, drawn),
            _curves("Validation loss", "1 = nothing is known", history, "validation_loss", best, drawn),
        ),
    )


def _curves(title: str, unit: str, history: pd.DataFrame, column: str, best: pd.Series, drawn: list[int]) -> Curves:
    table = history.pivot(index="epoch", columns="member", values=column)
    table = table.where(np.isfinite(table))
    complete = table[table.notna().all(axis=1)].mean(axis=1)
    return Curves(
        title,
        unit,
        tuple(_points(table[member].dropna()) for member in drawn),
        _points(complete),
        tuple((float(best[member]), float(table.loc[best[member], member])) for member in drawn),
    )


def _points(values: pd.Series) -> Points:
    return tuple((float(epoch), float(value)) for epoch, value in values.items())
