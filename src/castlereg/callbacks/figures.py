"""Metrics of an epoch by name, for logging tools."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from castlereg.training.callbacks import Epoch


def mean_figures(epoch: Epoch) -> dict[str, float]:
    """Return each metric as the mean over the networks that trained in this epoch, and the lowest validation loss.

    Values that are not finite are omitted.
    """
    trained = ~np.isnan(epoch.metrics["learning_rate"])
    figures = {name: float(values[trained].mean()) for name, values in epoch.metrics.items()} if trained.any() else {}
    figures["best_validation_loss"] = float(epoch.best_loss.min())
    if len(epoch.members) > 1:
        figures["networks_in_training"] = float(epoch.active.sum())
    return _finite(figures)


def figures_of(epoch: Epoch, member: int) -> dict[str, float]:
    """Return the metrics of one network; empty if it stopped before this epoch."""
    return _finite({name: float(values[member]) for name, values in epoch.metrics.items()})


def final_figures(estimator: Any) -> dict[str, float]:
    """Return the validation loss of a fitted estimator and the number of edges of its graph."""
    model = estimator.model_
    figures = {"final_validation_loss": float(model.validation_loss)}
    if model.graph is not None:
        figures["edges"] = float(len(model.graph.edges()))
    return _finite(figures)


def file_name(text: str) -> str:
    """Replace the characters of a name that files and metrics may not have.

    Examples
    --------
    >>> file_name("reg_beta=0.1, fold 2")
    'reg_beta_0.1_fold_2'
    """
    return re.sub(r"[^\w.-]+", "_", text)


def _finite(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if math.isfinite(value)}
