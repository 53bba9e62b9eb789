"""A grid of fits as work items: in one process, in several, on Dask, on Ray, or in a SLURM array.

Every call continues from the results in the folder, and any number of calls can share it::

    python examples/clusters/grid.py results
    python examples/clusters/grid.py results --jobs 2
    python examples/clusters/grid.py results --dask tcp://10.0.0.1:8786
    python examples/clusters/grid.py results --ray auto
    sbatch examples/clusters/slurm_array.sh results
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

from joblib import parallel_config

from castlereg.work import run_items


def fit(item: dict[str, Any]) -> float:
    """Fit one network; return R2 on held-out rows."""
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split

    from castlereg import CastleRegressor

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=item["split"])
    model = CastleRegressor(item["beta"], item["lambda"], max_epochs=item["epochs"], random_state=0)
    return float(model.fit(X, y).score(X_test, y_test))


def items(n_splits: int, epochs: int) -> list[dict[str, Any]]:
    """Return everything that each fit depends on."""
    grid = product((0.01, 0.1, 1.0), (0.3, 1.0), range(n_splits))
    return [{"beta": beta, "lambda": strength, "split": split, "epochs": epochs} for beta, strength, split in grid]


@contextmanager
def workers(dask: str | None, ray: str | None) -> Iterator[None]:
    """Run joblib on a cluster, if an address is passed."""
    if dask is not None:
        from distributed import Client

        with Client(dask), parallel_config("dask"):
            yield
    elif ray is not None:
        import ray as ray_itself
        from ray.util.joblib import register_ray

        ray_itself.init(None if ray == "local" else ray)
        register_ray()
        with parallel_config("ray"):
            yield
    else:
        yield


def main(arguments: list[str]) -> None:
    """Run the remaining fits of the grid, and print the best options."""
    parser = argparse.ArgumentParser(description="Fit a grid of networks, together with others that share the folder.")
    parser.add_argument("folder", help="Folder of the results; with several machines, a shared one.")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--jobs", type=int, help="Number of processes on this machine.")
    parser.add_argument("--dask", metavar="ADDRESS", help="Address of a Dask scheduler.")
    parser.add_argument("--ray", metavar="ADDRESS", help="Address of a Ray cluster, auto, or local for a new one.")
    given = parser.parse_args(arguments)
    listed = items(given.splits, given.epochs)
    with workers(given.dask, given.ray):
        scores = run_items(fit, listed, given.folder, n_jobs=given.jobs)
    means: dict[tuple[float, float], list[float]] = {}
    for item, score in zip(listed, scores, strict=True):
        means.setdefault((item["beta"], item["lambda"]), []).append(score)
    best = max(means, key=lambda options: sum(means[options]))
    r2 = sum(means[best]) / given.splits
    print(f"{len(scores)} fits; best beta={best[0]:g}, lambda={best[1]:g}: mean R2 {r2:.6f}")


if __name__ == "__main__":
    main(sys.argv[1:])
