"""The service of examples/serve.py answers as the model does, and rejects what the model rejects."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import castlereg
from tests.test_examples import example

pytest.importorskip("fastapi")
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="Using `httpx`")  # newer releases of starlette prefer its successor
    from starlette.testclient import TestClient

ROW = {"area": 80.0, "city": "Oslo", "balcony": True, "built": "2001-05-01"}


def flats() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    days = pd.to_timedelta(rng.integers(0, 900, 120), "D")
    table = pd.DataFrame(
        {
            "area": rng.normal(80, 20, 120),
            "city": rng.choice(["Oslo", "Rome"], 120),
            "balcony": rng.random(120) < 0.5,
            "built": pd.Timestamp("2001-01-01") + days,
        }
    )
    table.loc[::9, "area"] = None
    return table


def served(model: Any, folder: Path) -> TestClient:
    castlereg.save(model, folder / "model.castle")
    return TestClient(example("serve").create_app(folder / "model.castle"))


@pytest.fixture(scope="module")
def regressor() -> castlereg.CastleRegressor:
    table = flats()
    rent = 10 * table["area"].fillna(80) + 400 * (table["city"] == "Oslo")
    return castlereg.CastleRegressor(max_epochs=3, random_state=0).fit(table, rent)


@pytest.fixture(scope="module")
def client(regressor: castlereg.CastleRegressor, tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    return served(regressor, tmp_path_factory.mktemp("served"))


def test_health_names_the_model_and_its_columns(client: TestClient) -> None:
    answer = client.get("/health")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok", "model": "CastleRegressor", "columns": list(ROW)}


def test_predictions_are_those_of_the_model(client: TestClient, regressor: castlereg.CastleRegressor) -> None:
    rows = [ROW, {**ROW, "area": None}, {**ROW, "city": "Rome", "area": 95}]
    answer = client.post("/predict", json=rows)
    assert answer.status_code == 200
    assert answer.json() == {"prediction": regressor.predict(pd.DataFrame(rows)).tolist()}


def test_the_order_of_columns_does_not_matter(client: TestClient) -> None:
    turned = dict(reversed(ROW.items()))
    assert client.post("/predict", json=[turned]).json() == client.post("/predict", json=[ROW]).json()


def test_classes_come_with_probabilities(tmp_path: Path) -> None:
    table = flats()
    price = np.where(table["area"].fillna(80) > 80, "high", "low")
    model = castlereg.CastleClassifier(max_epochs=3, random_state=0).fit(table, price)
    answer = served(model, tmp_path).post("/predict", json=[ROW]).json()
    assert answer["prediction"] == model.predict(pd.DataFrame([ROW])).tolist()
    assert answer["classes"] == ["high", "low"]
    np.testing.assert_array_equal(answer["probabilities"], model.predict_proba(pd.DataFrame([ROW])))


@pytest.mark.parametrize(
    "change",
    [
        {"area": "big"},
        {"area": [80]},
        {"area": float("inf")},
        {"city": 3},
        {"built": "never"},
        {"floor": 2},
    ],
)
def test_invalid_rows_are_answered_with_the_message_of_the_model(
    change: dict[str, Any], client: TestClient, regressor: castlereg.CastleRegressor
) -> None:
    row = {**ROW, **change}
    with pytest.raises((ValueError, TypeError)) as raised:
        regressor.predict(pd.DataFrame([row]))
    answer = client.post("/predict", content=json.dumps([row]), headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.json() == {"detail": str(raised.value)}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{name: ROW[name] for name in ("area", "city", "balcony")}], "- built"),
        ([ROW, {"area": 80.0}], "row 1 has other columns than row 0; send null for a missing value"),
        ([], "got 0 rows; send 1 to 10000"),
    ],
)
def test_incomplete_requests_are_rejected(rows: list[Any], message: str, client: TestClient) -> None:
    answer = client.post("/predict", json=rows)
    assert answer.status_code == 422
    assert message in answer.json()["detail"]


def test_a_body_of_another_form_is_rejected(client: TestClient) -> None:
    assert client.post("/predict", json={"area": 80.0}).status_code == 422


def test_the_environment_names_the_model(
    regressor: castlereg.CastleRegressor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    castlereg.save(regressor, tmp_path / "model.castle")
    monkeypatch.setenv("MODEL", str(tmp_path / "model.castle"))
    assert TestClient(example("serve").from_environment()).get("/health").status_code == 200
