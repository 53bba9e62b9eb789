"""The same fits on one device and on several: run by test_devices.py.

``python -m tests.training.fits_on_devices FOLDER``
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from castlereg import CastleRegressor, Recipe, use_devices
from castlereg.training import sources
from castlereg.training.engines import jax_engine


def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, X[:, 0] - np.tanh(X[:, 1]) + 0.3 * rng.normal(size=120)


def fitted(n_members: int, **options: Any) -> dict[str, Any]:
    """Networks that stop at different epochs, so that finished ones leave and the rest is dealt anew."""
    X, y = data()
    settings = {
        "hidden_layer_sizes": (4,),
        "learning_rate": 0.02,
        "max_epochs": 12,
        "recipe": Recipe(patience=2, batch_size=30, engine="jax"),
    }
    # 30 rows a batch, which the 108 training rows are not a multiple of.
    model = CastleRegressor(n_members=n_members, bootstrap=True, random_state=0, **(settings | options)).fit(X, y)
    return {
        "predictions": model.predict(X),
        "weights": model.graph_.weights.to_numpy(),
        "history": model.history_.to_numpy(np.float64),
    }


def main(folder: Path) -> None:
    jax.config.update("jax_num_cpu_devices", 4)
    sources._MOST_EPOCHS_PER_CALL = 2

    def save(name: str, n_members: int) -> None:
        np.savez(folder / f"{name}.npz", **fitted(n_members))

    with use_devices(1):
        save("5 members, 1 device", 5)
        save("1 member, 1 device", 1)
    with use_devices(3):
        save("5 members, 3 devices", 5)
    with use_devices(jax.devices()[1:3]):
        save("5 members, 2 chosen devices", 5)
    save("5 members, 4 devices", 5)
    save("1 member, 4 devices", 1)
    jax_engine.lanes = lambda mesh, members_per_device: members_per_device  # as on an accelerator
    with use_devices(2):
        save("5 members side by side, 2 devices", 5)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore", ConvergenceWarning)
    jax.config.update("jax_disable_most_optimizations", True)
    main(Path(sys.argv[1]))
