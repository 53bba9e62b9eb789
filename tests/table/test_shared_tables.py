"""The paper's tables as pandas reads them, where ``CASTLEREG_DATA`` names their folder."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from castlereg.layout import Node
from castlereg.table.encoding import Preprocessing, Rows
from castlereg.table.reading import read_columns
from castlereg.table.schema import ColumnSchema
from castlereg.table.targets import NumericTarget

FOLDER = os.environ.get("CASTLEREG_DATA")
pytestmark = pytest.mark.skipif(FOLDER is None, reason="CASTLEREG_DATA is not set")
IDENTIFIERS = ["state", "county", "community", "communityname", "fold"]


def schema_of(file: str, drop: list[str]) -> tuple[tuple[ColumnSchema, ...], Preprocessing, np.ndarray]:
    frame = pd.read_csv(Path(str(FOLDER)) / file).drop(columns=drop)
    rows = Rows(read_columns(frame), (np.arange(len(frame)),))
    target = NumericTarget("y", 0.0, 1.0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X has numbers stored as text")
        preprocessing = Preprocessing.fit(rows, (target,), categorical=[False] * frame.shape[1])
    return preprocessing.schema, preprocessing, preprocessing.encode(preprocessing.cells(rows.columns))


def count(schema: tuple[ColumnSchema, ...], kind: str) -> int:
    return sum(column.kind == kind for column in schema)


def test_student() -> None:
    schema, preprocessing, channels = schema_of("student_performance_por.csv", ["G3"])
    assert len(schema) == 32
    assert count(schema, "binary") == 13
    assert count(schema, "categorical") == 4
    assert channels.shape == (649, 45)
    assert not preprocessing.constant


def test_las_vegas() -> None:
    schema, _, _ = schema_of("las_vegas.csv", ["Score"])
    assert len(schema) == 19
    assert sum(column.levels is not None for column in schema) == 13


def test_communities() -> None:
    schema, _, channels = schema_of("communities_crime.csv", ["ViolentCrimesPerPop", *IDENTIFIERS])
    assert len(schema) == 122
    gaps = [column for column in schema if column.missing]
    assert len(gaps) == 23
    assert sum(column.missing for column in schema) == 39202 - 1174 - 1177  # the others are of identifiers
    assert all(column.kind == "numeric" for column in schema)
    assert channels.shape == (1994, 145)
    assert int(np.isnan(channels).sum()) == 36851


def test_facebook() -> None:
    schema, _, _ = schema_of("facebook_metrics.csv", ["Total Interactions"])
    assert len(schema) == 18
    by_name = {column.name: column for column in schema}
    assert {name: one.missing for name, one in by_name.items() if one.missing} == {"Paid": 1, "like": 1, "share": 4}
    assert by_name["Type"].levels == ("Link", "Photo", "Status", "Video")
    assert by_name["Paid"].node() == Node("binary", missing=True)
    assert by_name["Category"].kind == "ordinal"  # codes: for the user to call categorical
