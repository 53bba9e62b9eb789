"""`compare` with ten methods on 500 rows x 10 features against ten GridSearchCV runs of one scikit-learn MLP."""

from __future__ import annotations

import time
import warnings

import jax
import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neural_network import MLPRegressor

from benchmarks.problems import rows
from castlereg import compare


def sklearn_seconds(n_jobs: int | None) -> float:
    """Return the seconds of ten searches over one setting of a default MLP, on ten folds of the same rows."""
    data = rows(500, 11)
    folds = KFold(10, shuffle=True, random_state=0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in range(10):
            search = GridSearchCV(MLPRegressor(random_state=seed), {"alpha": [1e-4]}, cv=folds, n_jobs=n_jobs)
            search.fit(data[:400, :-1], data[:400, -1])
    return time.perf_counter() - start


def our_seconds() -> float:
    """Return the seconds of a comparison of all ten methods."""
    data = rows(500, 11)
    folds = KFold(10, shuffle=True, random_state=0)
    start = time.perf_counter()
    result = compare(data[:, :-1], data[:, -1], cv=folds, random_state=0, verbose=False)
    assert np.isfinite(result.scores["score"]).all()
    return time.perf_counter() - start


def run() -> pd.DataFrame:
    """Return the table."""
    jax.config.update("jax_enable_compilation_cache", False)
    first = our_seconds()
    peer = sklearn_seconds(None)
    steady = our_seconds()
    jax.config.update("jax_enable_compilation_cache", True)
    both_cores = sklearn_seconds(2)
    return pd.DataFrame(
        [
            ("scikit-learn, ten grid searches of a default MLP", peer, 1.0),
            ("the same with n_jobs=2", both_cores, peer / both_cores),
            ("castlereg, ten methods, 180 networks, compilation included", first, peer / first),
            ("castlereg, ten methods, 180 networks, steady", steady, peer / steady),
        ],
        columns=["", "seconds", "times as fast"],
    )
