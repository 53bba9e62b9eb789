"""One table in five forms: text, typed, CSV, Parquet and streamed has one schema and one task."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg import NetworkRegressor
from castlereg.estimators.base import checked_plan
from castlereg.search.file_data import FileData
from castlereg.search.request import FitRequest
from castlereg.table.files import TableFile
from castlereg.table.schema import schema_frame
from castlereg.table.targets import inferred_task
from tests.estimators.test_odd_frames import untrained

pytest.importorskip("pyarrow")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("no_training")]
N = 60


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castlereg.search.grid.train", untrained)


def texts() -> pd.DataFrame:
    """Columns as a file has them: text in every cell."""
    rng = np.random.default_rng(0)
    days = pd.Series(pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D"))
    moments = days + pd.to_timedelta(rng.integers(0, 1440, N), "min")
    numbers = pd.Series(rng.normal(size=N).round(3))
    columns: dict[str, Any] = {
        "number": numbers.astype(str),
        "spaced": " " + numbers.astype(str) + " ",
        "whole": pd.Series(rng.integers(0, 5, N)).astype(str),
        "marked": numbers.astype(str).where(rng.random(N) > 0.2, "-"),
        "unknown": numbers.astype(str).where(rng.random(N) > 0.2, "?"),
        "flag": pd.Series(rng.random(N) > 0.5).astype(str),
        "pair": rng.choice(["+", "-"], N),
        "city": rng.choice(["Oslo", "Rome", "NA", "", "?", "Lima"], N),
        "band": rng.choice(["10-20", "20-30", "30+"], N),
        "iso": days.dt.strftime("%Y-%m-%d"),
        "moment": moments.dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "german": days.dt.strftime("%d.%m.%Y").where(rng.random(N) > 0.2, ""),
        "american": moments.dt.strftime("%m/%d/%Y %I:%M %p"),
        "named": days.dt.strftime("%d %b %Y"),
        "month": days.dt.strftime("%Y-%m"),
        "same": "x",
        "empty": "",
        "name": [f"person {i}" for i in range(N)],
        "user_id": pd.Series(rng.permutation(1000)[:N]).astype(str),
        "row": pd.Series(np.arange(N)).astype(str),
    }
    return pd.DataFrame(columns).assign(y=rng.normal(size=N).round(3)).astype(str)


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the same columns with the types that a careful user would give them."""
    table = frame.replace({"?": None, "": None, "NA": None})
    for name in ("number", "spaced", "whole", "marked", "unknown", "user_id", "row", "y"):
        table[name] = pd.to_numeric(table[name], errors="coerce")
    table["flag"] = table["flag"] == "True"
    formats = {
        **{"iso": "%Y-%m-%d", "moment": "%Y-%m-%dT%H:%M:%SZ", "german": "%d.%m.%Y", "named": "%d %b %Y"},
        **{"american": "%m/%d/%Y %I:%M %p", "month": "%Y-%m"},
    }
    return table.assign(**{name: pd.to_datetime(table[name], format=form) for name, form in formats.items()})


def schema_of(table: pd.DataFrame) -> pd.DataFrame:
    model = NetworkRegressor(unusable_columns="drop", random_state=0)
    return model.fit(table.drop(columns="y"), table["y"].astype(float)).schema_


def test_one_table_in_five_forms_has_one_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = texts()
    expected = schema_of(typed(frame))
    assert expected["kind"].tolist() == [
        *("numeric", "numeric", "ordinal", "numeric", "numeric", "binary", "binary", "categorical", "categorical"),
        *("numeric", "numeric", "numeric", "numeric", "numeric", "numeric"),
        *("constant", "constant", "unusable", "unusable", "unusable"),
    ]
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "text.parquet")
    typed(frame).to_parquet(tmp_path / "typed.parquet")
    forms = {
        "text": schema_of(frame),
        "objects": schema_of(frame.astype(object)),
        "CSV": schema_of(TableFile.open(tmp_path / "t.csv").read()),
        "text in Parquet": schema_of(TableFile.open(tmp_path / "text.parquet").read()),
        "types in Parquet": schema_of(TableFile.open(tmp_path / "typed.parquet").read()),
    }
    monkeypatch.setattr("castlereg.search.file_data._READ_ROWS", 25)
    for name in ("t.csv", "text.parquet", "typed.parquet"):
        data = FileData.opened(tmp_path / name, "y", None, None, target_kind="numbers", drop_unusable=True)
        request = FitRequest(data, checked_plan(NetworkRegressor(), len(expected)), [()], np.random.SeedSequence(0))
        with data.prepared(request) as rows:
            forms[f"streamed {name}"] = schema_frame(rows.preprocessing.schema)
    for name, schema in forms.items():
        compared = [column for column in expected if column != "note"]  # which says what was text
        pd.testing.assert_frame_equal(schema[compared], expected[compared], obj=name)
        dates = expected["note"].str.startswith("dates") | (expected["kind"] == "unusable")
        assert schema["note"][dates].tolist() == expected["note"][dates].tolist()


@pytest.mark.parametrize(
    ("column", "task"),
    [
        ("number", "regression"),
        ("whole", "classification"),
        ("unknown", "regression"),
        ("flag", "classification"),
        ("pair", "classification"),
        ("city", "classification"),
        ("band", "classification"),
    ],
)
def test_one_target_in_all_forms_has_one_task(column: str, task: str, tmp_path: Path) -> None:
    frame = texts()[[column]].assign(other="1.5")
    frame.to_csv(tmp_path / "t.csv", index=False)
    forms = [
        frame[column],
        frame[column].to_numpy(str),
        typed(texts())[column],
        TableFile.open(tmp_path / "t.csv").read()[column],
    ]
    assert [inferred_task(values)[0] for values in forms] == [task] * 4


@pytest.mark.parametrize("column", ["iso", "german", "name"])
def test_targets_that_are_neither_numbers_nor_classes_raise(column: str) -> None:
    with pytest.raises(ValueError, match=f"{column} has text (that looks like dates|with hardly any repeated values)"):
        inferred_task(texts()[column])


def test_rules_hold_for_prediction_too(tmp_path: Path) -> None:
    frame = texts()
    table = typed(frame)
    predictions = []
    frame.to_csv(tmp_path / "t.csv", index=False)
    read = TableFile.open(tmp_path / "t.csv").read()
    for learned in (frame, table, read):
        model = NetworkRegressor(unusable_columns="drop", random_state=0)
        model.fit(learned.drop(columns="y"), table["y"])
        for given in (frame, table, read):
            if learned is table:  # which does not say whether the month or the day comes first
                with pytest.raises(ValueError, match="X has dates in column 'american' that could be day/month"):
                    model.predict(frame.drop(columns="y"))
                given = given.assign(american=table["american"])
            predictions.append(model.predict(given.drop(columns="y")))
    with pytest.warns(UserWarning, match="missing values in columns that had none in training: 1 in 'number'"):
        model.predict(frame.assign(number=["-", *frame["number"][1:]]).drop(columns="y"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        odd = frame.assign(name=np.inf, row="any", user_id=[object()] * N).drop(columns="y")
        predictions.append(model.predict(odd.assign(marked=table["marked"], unknown=table["unknown"])))
    for predicted in predictions[1:]:
        np.testing.assert_allclose(predicted, predictions[0], rtol=1e-9, atol=1e-12)
