"""Items and searches on real clusters: Dask, and Ray where it is installed."""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV

from castlereg import CastleRegressor, compare
from castlereg.work import ItemsFailed, run_items
from tests.work.jobs import dies_at_five, fitted, process_of, rows, square

FITS = [{"beta": beta, "seed": seed} for beta in (0.1, 1.0) for seed in range(6)]

on_dask = pytest.mark.xdist_group("dask")


@pytest.fixture
def client(dask_cluster: Any) -> Iterator[Any]:
    from distributed import Client

    with Client(dask_cluster, set_as_default=False) as client, parallel_config("dask", client=client):
        yield client


def kill_when_begun(process: int, folder: Path) -> threading.Thread:
    """Kill a process as soon as there is a result in a folder."""

    def kill() -> None:
        while not list(folder.glob("*.json")):
            time.sleep(0.01)
        os.kill(process, signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


@on_dask
def test_dask_gives_what_this_process_gives_also_when_a_worker_is_killed(tmp_path: Path, client: Any) -> None:
    here = run_items(fitted, FITS, tmp_path / "here", n_jobs=1)
    (worker, *_) = client.run(os.getpid).values()
    killer = kill_when_begun(worker, tmp_path / "there")
    there = run_items(fitted, FITS, tmp_path / "there")
    killer.join(10)
    assert here == there
    assert len(set(map(tuple, there))) == len(FITS)
    client.wait_for_workers(2, timeout=60)
    assert worker not in client.run(os.getpid).values()


@on_dask
def test_a_search_of_scikit_learn_on_dask(client: Any) -> None:
    def search() -> Any:
        model = CastleRegressor(hidden_layer_sizes=(4,), max_epochs=2, random_state=0)
        return GridSearchCV(model, {"reg_beta": [0.1, 1.0]}, cv=2).fit(*rows())

    there = search()
    with parallel_config("sequential"):
        here = search()
    np.testing.assert_array_equal(there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"])
    assert there.best_params_ == here.best_params_


@on_dask
@pytest.mark.usefixtures("client")
def test_methods_are_compared_on_dask() -> None:
    def comparison() -> Any:
        return compare(*rows(), methods=["Baseline", "L2"], cv=2, hidden_layer_sizes=(4,), max_epochs=2, random_state=0)

    there = comparison()
    with parallel_config("sequential"):
        here = comparison()
    pd.testing.assert_frame_equal(there.scores, here.scores, check_exact=True)
    assert list(there.seconds.index) == ["Baseline", "L2"]


@on_dask
@pytest.mark.usefixtures("client")
def test_dask_gives_up_an_item_that_kills_its_workers(
    tmp_path: Path, dask_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_cluster.scheduler, "allowed_failures", 0)  # 3 takes four workers
    with pytest.raises(ItemsFailed, match=r"its workers died \(KilledWorker\)") as caught:
        run_items(dies_at_five, range(8), tmp_path)
    assert 5 in {done.item for done in caught.value.failed}
    with parallel_config("sequential"):
        assert run_items(square, range(8), tmp_path) == [square(n) for n in range(8)]


@on_dask
@pytest.mark.usefixtures("client")
def test_a_module_that_workers_do_not_have_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text("def double(n):\n    return 2 * n\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    double = importlib.import_module("only_here").double
    with pytest.raises(ItemsFailed, match="ModuleNotFoundError: No module named 'only_here'"):
        run_items(double, [1], tmp_path / "results")


@on_dask
def test_workers_without_castlereg_are_named(tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "run", lambda *_: {"tcp://1": None, "tcp://2": "found"})
    with pytest.raises(ModuleNotFoundError, match=r"not installed on the workers tcp://1; install it there$"):
        run_items(square, [1], tmp_path)


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    register_ray = pytest.importorskip("ray.util.joblib").register_ray
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # loopback only
        patch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        register_ray()
        yield ray
        ray.shutdown()


def test_ray_gives_what_this_process_gives_also_when_a_worker_is_killed(tmp_path: Path, ray: Any) -> None:
    here = run_items(fitted, FITS, tmp_path / "here")
    with parallel_config("ray"):
        worker, *_ = run_items(process_of, [0], tmp_path / "processes")
        killer = kill_when_begun(worker, tmp_path / "there")
        there = run_items(fitted, FITS, tmp_path / "there")
    killer.join(10)
    assert worker != os.getpid()
    assert here == there


def test_ray_gives_up_an_item_that_kills_its_workers(tmp_path: Path, ray: Any) -> None:
    with parallel_config("ray"), pytest.raises(ItemsFailed, match=r"its workers died \(WorkerCrashedError\)"):
        run_items(dies_at_five, range(8), tmp_path)
    assert run_items(square, range(8), tmp_path) == [square(n) for n in range(8)]
