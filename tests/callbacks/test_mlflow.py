"""MLflow: runs in a real store, read back."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import castlereg
from castlereg.callbacks import Epoch, MLflow
from tests.callbacks.cases import fit


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder of files, which MLflow takes only if it is told to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return (tmp_path / "runs").as_uri()


def client(store: str) -> Any:
    from mlflow.tracking import MlflowClient

    return MlflowClient(store)


def history(store: str, run_id: str, name: str) -> dict[int, float]:
    return {metric.step: metric.value for metric in client(store).get_metric_history(run_id, name)}


@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_a_fit_is_a_run(store: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    report = rng.normal(size=(60, 3)), rng.normal(size=60)
    callback = MLflow("homes", "first", store, model=True, report=report, each=True)
    model = fit(callback, refit=True)
    run = client(store).get_run(callback.run_id)
    assert (run.info.status, run.info.run_name) == ("FINISHED", "first")
    assert client(store).get_experiment_by_name("homes").experiment_id == run.info.experiment_id
    assert run.data.params["estimator"] == "CastleRegressor"
    assert run.data.params["n_members"] == "2" and run.data.params["recipe"].startswith("Recipe(")
    means = model.history_.groupby("epoch")["validation_loss"].mean()
    np.testing.assert_allclose(list(history(store, callback.run_id, "validation_loss").values()), means, rtol=1e-6)
    assert list(history(store, callback.run_id, "refit/objective")) == [1, 2, 3]
    of_second = model.history_.query("member == 1")["objective"]
    np.testing.assert_allclose(
        list(history(store, callback.run_id, "network_1/objective").values()), of_second, rtol=1e-6
    )
    assert run.data.metrics["edges"] == len(model.graph_.edges())
    assert {item.path for item in client(store).list_artifacts(callback.run_id)} == {"model.castle", "report.html"}
    path = client(store).download_artifacts(callback.run_id, "model.castle", str(tmp_path))
    np.testing.assert_array_equal(castlereg.load(path).predict(report[0]), model.predict(report[0]))


@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_raises_is_a_run_that_failed(store: str) -> None:
    def broken(epoch: Epoch) -> None:
        raise OSError("disk full")

    callback = MLflow(tracking_uri=store)
    with pytest.raises(OSError, match="disk full"):
        fit(callback, broken)
    assert client(store).get_run(callback.run_id).info.status == "FAILED"


@pytest.mark.filterwarnings("ignore")
def test_an_active_run_is_joined_and_stays_open(store: str) -> None:
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(store)
    try:
        with mlflow.start_run() as run:
            callback = MLflow()
            fit(callback)
            assert callback.run_id == run.info.run_id
            assert client(store).get_run(callback.run_id).info.status == "RUNNING"
        assert list(history(store, callback.run_id, "objective")) == [1, 2, 3]
    finally:
        mlflow.set_tracking_uri(before)


def test_without_the_package_a_fit_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"pip install 'castlereg\[mlflow\]'"):
        fit(MLflow())
