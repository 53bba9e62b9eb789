"""Figures of epochs: means over the networks that trained, without what is not finite."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.callbacks import Epoch
from castlereg.callbacks.figures import figures_of, final_figures, mean_figures
from tests.callbacks.cases import fit

METRICS = {
    "objective": np.array([3.0, 5.0, np.nan]),
    "validation_loss": np.array([0.5, np.inf, np.nan]),
    "learning_rate": np.array([0.1, 0.1, np.nan]),
}
EPOCH = Epoch("training", 7, 9, ("a", "b", "c"), METRICS, np.array([0.5, np.inf, 0.4]), np.array([True, True, False]))


def test_means_are_those_of_the_networks_that_trained() -> None:
    assert mean_figures(EPOCH) == {
        "objective": 4.0,
        "learning_rate": pytest.approx(0.1),
        "best_validation_loss": 0.4,
        "networks_in_training": 2.0,
    }


def test_a_network_that_has_stopped_has_no_figures() -> None:
    assert figures_of(EPOCH, 0) == {"objective": 3.0, "validation_loss": 0.5, "learning_rate": pytest.approx(0.1)}
    assert set(figures_of(EPOCH, 1)) == {"objective", "learning_rate"}
    assert figures_of(EPOCH, 2) == {}


def test_a_fitted_model_has_edges_and_perhaps_a_loss() -> None:
    model = fit()
    figures = final_figures(model)
    assert figures == {"final_validation_loss": model.validation_loss_, "edges": len(model.graph_.edges())}
    rng = np.random.default_rng(0)
    assert set(final_figures(model.partial_fit(rng.normal(size=(9, 3)), rng.normal(size=9)))) == {"edges"}
