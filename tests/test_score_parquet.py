"""The recipe examples/score_parquet.py: each file is scored once, as predict does."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import castlereg

SCRIPT = Path(__file__).parents[1] / "examples" / "score_parquet.py"


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


def test_parquet_files_are_scored_once_and_as_predict_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    spec = importlib.util.spec_from_file_location("score_parquet", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    table = flats(200, 0)
    dear = np.where(10 * table["area"].fillna(80) + 400 * (table["city"] == "Oslo") > 900, "dear", "cheap")
    options = {"hidden_layer_sizes": (4,), "max_epochs": 2, "random_state": 0}
    model = castlereg.CastleClassifier(**options).fit(table.drop(columns="rooms"), dear)
    castlereg.save(model, tmp_path / "rent.castle")
    (tmp_path / "flats").mkdir()
    for number, n_rows in enumerate((50, 0, 30)):
        flats(n_rows, number).to_parquet(tmp_path / "flats" / f"{number}.parquet")
    (tmp_path / "flats" / "3.parquet").write_bytes(b"not a table")

    arguments = [str(tmp_path / name) for name in ("rent.castle", "flats", "predicted")]
    with pytest.raises(ValueError, match="magic bytes"):
        script.main(arguments)
    outputs = sorted(path.name for path in (tmp_path / "predicted").glob("*"))
    assert outputs == ["0.parquet", "1.parquet", "2.parquet", "rent.onnx"]
    (tmp_path / "predicted" / "2.parquet").unlink()
    flats(40, 3).to_parquet(tmp_path / "flats" / "3.parquet")

    script.main(arguments)
    assert capsys.readouterr().out.startswith("2 files, 70 rows")
    for number, n_rows in enumerate((50, 0, 30, 40)):
        predicted = pd.read_parquet(tmp_path / "predicted" / f"{number}.parquet")
        assert list(predicted) == ["prediction", "probabilities_0", "probabilities_1"]
        assert len(predicted) == n_rows
        if n_rows:
            rows = flats(n_rows, number)[list(model.feature_names_in_)]
            assert predicted["prediction"].tolist() == model.predict(rows).tolist()
            np.testing.assert_allclose(predicted.iloc[:, 1:], model.predict_proba(rows), rtol=1e-5, atol=1e-9)
