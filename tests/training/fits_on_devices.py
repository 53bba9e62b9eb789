"""The same fits on several devices of one process, or on processes joined on loopback: run by test_devices.py.

``python -m tests.training.fits_on_devices FOLDER [PORT PROCESS PROCESSES]``
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from castlereg import CastleRegressor, use_devices
from castlereg.data.table import Table
from castlereg.layout import Layout, Node
from castlereg.regularizers import Castle, Dropout, Regularizer
from castlereg.training import Member, Schedule, stack


def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, X[:, 0] - np.tanh(X[:, 1]) + 0.3 * rng.normal(size=120)


def fitted(n_members: int, **options: Any) -> dict[str, Any]:
    """Networks that stop at different epochs, so that finished ones leave and the rest is dealt anew."""
    X, y = data()
    settings = {"hidden_layer_sizes": (4,), "learning_rate": 0.02, "max_epochs": 12, "patience": 2, "random_state": 0}
    # 30 rows a batch, which neither four devices nor the 108 training rows divide by.
    model = CastleRegressor(n_members=n_members, batch_size=30, bootstrap=True, **(settings | options)).fit(X, y)
    return {
        "predictions": model.predict(X),
        "weights": model.graph_.weights.to_numpy(),
        "history": model.history_.to_numpy(np.float64),
    }


def save(folder: str, name: str, result: dict[str, Any]) -> None:
    np.savez(Path(folder) / f"{name}.npz", **result)


def mesh_of(*regularizers: Regularizer) -> dict[str, int]:
    """Axes of the mesh that a stack of two networks is laid over."""
    rows, layout = np.arange(40), Layout((Node(), Node(), Node(target=True)))
    member = Member(rows[:30], rows[30:], np.random.SeedSequence(0), regularizers)
    one = stack._Stack(Table(np.ones((40, 3), np.float32), layout), [member] * 2, (4,), Schedule(), "small", False)
    return dict(one.mesh.shape)


def in_one_process(folder: str) -> None:
    jax.config.update("jax_num_cpu_devices", 4)
    with use_devices(1):
        save(folder, "5 members, 1 device", fitted(5))
        save(folder, "1 member, 1 device", fitted(1))
    with use_devices(3):
        save(folder, "5 members, 3 devices", fitted(5))
    with use_devices(rows=2):
        save(folder, "5 members, 2 x 2 devices", fitted(5))
        assert mesh_of(Castle()) == {"members": 2, "rows": 2}
        assert mesh_of(Castle(), Dropout()) == mesh_of(Castle(acyclicity_schedule="exact")) == {"members": 2, "rows": 1}
    stack.lanes = lambda mesh, members_per_device: members_per_device  # as on an accelerator
    with use_devices(rows=4):
        save(folder, "5 members side by side, 4 devices of rows", fitted(5))


def in_joined_processes(folder: str, port: str, process: int, n_processes: int) -> None:
    jax.distributed.initialize(f"127.0.0.1:{port}", n_processes, process, initialization_timeout=60)
    save(folder, f"5 members, process {process}", fitted(5))
    assert jax.device_count() == n_processes, "the cluster keeps the devices it was given"
    save(folder, f"1 member, process {process}", fitted(1))  # the other process has none
    with use_devices(rows=2):
        save(folder, f"5 members, rows, process {process}", fitted(5))
    try:
        fitted(5, random_state=process)
    except ValueError as error:
        assert "different rows and seeds (random_state)" in str(error)
    else:
        raise AssertionError("other seeds in other processes were not refused")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore", ConvergenceWarning)
    jax.config.update("jax_disable_most_optimizations", True)
    stack._MOST_EPOCHS_PER_CALL = 2
    if len(sys.argv) == 2:
        in_one_process(sys.argv[1])
    else:
        in_joined_processes(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
