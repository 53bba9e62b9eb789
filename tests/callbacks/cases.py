"""A short fit for the tests of callbacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from castlereg import CastleRegressor, Recipe


def fit(*callbacks: Any, refit: bool = False) -> CastleRegressor:
    """Fit two small networks for three epochs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=60)
    recipe = Recipe(refit=True) if refit else None
    model = CastleRegressor(n_members=2, hidden_layer_sizes=(4,), recipe=recipe, max_epochs=3, random_state=0)
    return model.fit(X, y, callbacks=callbacks)
