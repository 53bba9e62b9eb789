"""The recipes of examples/clusters run: a grid as elements of an array, and Parquet files on Dask."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import castlereg
from castlereg.work import ItemsFailed

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {
    **os.environ,
    "PYTHON": sys.executable,
    "PYTHONPATH": str(ROOT / "src"),
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
}


def element(number: int, folder: Path) -> subprocess.Popen[str]:
    """Start an element of an array as SLURM does."""
    return subprocess.Popen(
        ["bash", "examples/clusters/slurm_array.sh", str(folder), "--splits", "2", "--epochs", "1"],
        cwd=ROOT,
        env={**ENVIRONMENT, "SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": "3"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_elements_of_an_array_share_a_grid(tmp_path: Path) -> None:
    side_by_side = [element(number, tmp_path) for number in (0, 1)]
    printed = [process.communicate(timeout=300) for process in side_by_side]
    assert [process.returncode for process in side_by_side] == [0, 0], printed
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(files) == 12
    late = element(2, tmp_path)
    printed.append(late.communicate(timeout=300))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files
    summaries = {output.splitlines()[-1] for output, _ in printed}
    assert len(summaries) == 1
    assert summaries.pop().startswith("12 fits; best beta=")
    assert printed[2][0].startswith("element 2 of 3 on ")


def flats(n_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "area": rng.normal(80, 20, n_rows),
            "city": rng.choice(["Oslo", "Rome", "Lima"], n_rows),
            "balcony": rng.random(n_rows) < 0.5,
            "built": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, n_rows), "D"),
            "rooms": rng.integers(1, 6, n_rows),
        }
    )
    table.loc[::9, "area"] = np.nan
    table.loc[::7, "city"] = None
    return table


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script as a module whose functions workers get by value, as they do from a script."""
    cloudpickle = pytest.importorskip("cloudpickle")
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "clusters"))
    module = importlib.import_module("score_parquet")
    cloudpickle.register_pickle_by_value(module)
    yield module
    cloudpickle.unregister_pickle_by_value(module)
    del sys.modules["score_parquet"]


@pytest.mark.xdist_group("dask")
def test_parquet_files_are_scored_once_and_as_predict_does(
    tmp_path: Path, dask_cluster: Any, script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    table = flats(200, 0)
    dear = np.where(10 * table["area"].fillna(80) + 400 * (table["city"] == "Oslo") > 900, "dear", "cheap")
    options = {"hidden_layer_sizes": (4,), "max_epochs": 2, "random_state": 0}
    model = castlereg.CastleClassifier(**options).fit(table.drop(columns="rooms"), dear)
    castlereg.save(model, tmp_path / "rent.castle")
    (tmp_path / "flats").mkdir()
    for number, n_rows in enumerate((50, 0, 30)):
        flats(n_rows, number).to_parquet(tmp_path / "flats" / f"{number}.parquet")
    (tmp_path / "flats" / "3.parquet").write_bytes(b"not a table")

    paths = [str(tmp_path / name) for name in ("rent.castle", "flats", "predicted")]
    arguments = [*paths, "--scheduler", dask_cluster.scheduler_address]
    with pytest.raises(ItemsFailed, match=r"1 of 4 items failed \(1 of them: ArrowInvalid"):
        script.main(arguments)
    outputs = sorted(path.name for path in (tmp_path / "predicted").glob("*"))
    assert outputs == ["0.parquet", "1.parquet", "2.parquet", "items", "rent.onnx"]
    first = (tmp_path / "predicted" / "0.parquet").stat().st_mtime_ns
    (tmp_path / "predicted" / "2.parquet").unlink()
    flats(40, 3).to_parquet(tmp_path / "flats" / "3.parquet")

    script.main(arguments)
    assert capsys.readouterr().out.startswith("4 files, 120 rows")
    assert (tmp_path / "predicted" / "0.parquet").stat().st_mtime_ns == first
    for number, n_rows in enumerate((50, 0, 30, 40)):
        predicted = pd.read_parquet(tmp_path / "predicted" / f"{number}.parquet")
        assert list(predicted) == ["prediction", "probabilities_0", "probabilities_1"]
        assert len(predicted) == n_rows
        if n_rows:
            rows = flats(n_rows, number)[list(model.feature_names_in_)]
            assert predicted["prediction"].tolist() == model.predict(rows).tolist()
            np.testing.assert_allclose(predicted.iloc[:, 1:], model.predict_proba(rows), rtol=1e-5, atol=1e-9)
