"""Fits in processes and threads that users start: forked, spawned, by joblib, side by side."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import numpy as np
import pytest

from castlereg import CastleRegressor, Recipe

QUICK = ("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # as programs are compiled in this process
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 5))
Y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=80)


def fitted(columns: int = 5, seed: int = 0) -> CastleRegressor:
    recipe = Recipe(engine="jax")
    return CastleRegressor(recipe=recipe, max_epochs=2, random_state=seed).fit(X[:, :columns], Y)


def predicted(columns: int = 5, seed: int = 0) -> Any:
    return fitted(columns, seed).predict(X[:, :columns])


FORKS = """
import multiprocessing, os
import numpy as np
from tests.training.test_processes import X, Y, fitted, predicted

early = os.fork()
if early == 0:
    os._exit(predicted().shape != (80,))
assert os.waitpid(early, 0)[1] == 0

def in_child(queue):
    queue.put((model.predict(X), model.log_likelihood(X, Y)))
    try:
        model.fit(X, Y)
    except RuntimeError as error:
        queue.put(str(error))

model = fitted()
context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
process = context.Process(target=in_child, args=(queue,), daemon=True)
process.start()
values, likelihood = queue.get()
message = queue.get()
process.join()
assert np.array_equal(values, model.predict(X))
assert likelihood == model.log_likelihood(X, Y)
assert "forked after JAX had started" in message and "get_context('spawn')" in message, message
"""
FORK_BEFORE_THE_IMPORT = """
import os
import jax

jax.numpy.zeros(1)
child = os.fork()
if child == 0:
    from castlereg import CastleRegressor
    from castlereg.forks import check_not_forked

    try:
        check_not_forked()
    except RuntimeError:
        os._exit(3)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_after_jax_has_started_predicts_and_says_that_it_cannot_fit() -> None:
    for script in (FORKS, FORK_BEFORE_THE_IMPORT):
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script], check=True, timeout=120, env=os.environ | dict([QUICK])
        )


def test_spawned_processes_and_joblib_fit_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*QUICK)
    here = predicted()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_allclose(pool.apply(predicted), here, rtol=1e-5, atol=1e-6)
    (there,) = joblib.Parallel(n_jobs=2)([joblib.delayed(predicted)()])
    np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-6)


def test_threads_fit_and_predict_side_by_side() -> None:
    wanted = [(4, 0), (3, 1), (4, 2), (3, 3)]  # two shapes, none compiled before
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda of_fit: predicted(*of_fit), wanted))
    for of_fit, values in zip(wanted, together, strict=True):
        np.testing.assert_array_equal(predicted(*of_fit), values)

    model = fitted()
    with ThreadPoolExecutor(8) as pool:
        for values in pool.map(lambda _: model.predict(X), range(40)):
            np.testing.assert_array_equal(values, model.predict(X))
