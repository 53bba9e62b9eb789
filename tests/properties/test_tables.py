"""Odd tables are fitted, or rejected with an intended error; damaged table files too."""

from __future__ import annotations

import datetime
import gzip
import io
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import castlereg
from castlereg import CastleClassifier, CastleRegressor, CastleRegressorCV, NetworkClassifier, NetworkRegressor
from castlereg.table.files import TableFile
from castlereg.table.reading import read_columns
from tests.properties import cases, check_clear, mutated

YEARS = datetime.timedelta(days=30_000)
DATES = st.datetimes() | st.dates() | st.timedeltas(-YEARS, YEARS) | st.times()
EXTREME = st.sampled_from([-0.0, 1e-320, 1e38, 3.5e38, 1e300, 1e15 + 1, np.inf, -np.inf, np.nan])
TEXTS = st.text(max_size=5) | st.sampled_from(
    ["", " ", "?", "NA", "1", "1,5", "inf", "True", "12 kg", "2020-01-01", "12:30"]
)
TEXTS |= st.sampled_from(
    ["e\u0301", "é", "\u202eab", "\ud800", "\x00", "<b>", '"', "a\nb", "\ufeff", "x" * 3000, "(other)"]
)
OBJECTS = TEXTS | st.sampled_from(
    [1, 2.5, True, None, pd.NA, pd.NaT, b"b", [1], {"k": 1}, (1, 2), 1j, 10**400, set(), int]
)
OBJECTS |= st.sampled_from([Decimal("1.5"), Decimal("NaN"), Fraction(1, 3), UUID(int=5), np.float32(2), np.arange(2)])
CELLS: dict[str, Any] = {"numbers": st.floats(-1e30, 1e30), "texts": TEXTS, "dates": DATES, "objects": OBJECTS}
CELLS |= {
    "whole": st.integers(-(2**63), 2**64 - 1),
    "codes": st.integers(0, 3),
    "flags": st.booleans(),
    "extreme": EXTREME,
}
TYPES = ["category", "string", "Int64", "Float32", "boolean", "double[pyarrow]", "float16", ">f8", "u1"]
NAMES = TEXTS | st.sampled_from(["a", "b", "y", "x0", "Unnamed: 0", "prediction", "__class__", 0, 1.5])


@st.composite
def columns(draw: Any, n: int) -> pd.Series:
    """A column: a few values of one kind in random rows, alone or among ordinary numbers."""
    kind = draw(st.sampled_from(["", *sorted(CELLS)]))
    pool = draw(st.lists(CELLS[kind], min_size=1, max_size=6)) if kind else [None, 1.0]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    column = pd.Series([pool[k] for k in rng.integers(0, len(pool), n)], dtype=object)
    if kind in ("", "numbers", "codes", "extreme") and draw(st.booleans()):
        column = column.where(rng.random(n) < 0.1, rng.normal(size=n) * 10.0 ** rng.integers(-3, 4))
    dtype = draw(st.sampled_from(["", *TYPES]))
    if dtype == "category":  # infinity is accepted as a level, which cannot be saved
        column = column.where(~column.isin([np.inf, -np.inf]), 1.0)
    try:
        return column.astype(dtype) if dtype else column.infer_objects()
    except Exception:  # pandas cannot store these values in this type
        return column


@st.composite
def frames(draw: Any, n: int) -> pd.DataFrame:
    parts = [draw(columns(n)) for _ in range(draw(st.integers(1, 4)))]
    first, is_plain = draw(NAMES), draw(st.booleans())
    names = [f"c{k}" if is_plain or k else first for k in range(len(parts))]
    return pd.concat(parts, axis=1).set_axis(pd.Index(names, dtype=object), axis=1)


@st.composite
def problems(draw: Any, n: int) -> tuple[Any, Any]:
    """An estimator and a target for it, or an odd one."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    scale, labels = draw(st.just(1.0) | EXTREME), draw(st.sampled_from([["no", "yes"], [0, 1], [1e300, -1e300]]))
    regressor = draw(st.sampled_from([CastleRegressor, NetworkRegressor, CastleRegressorCV]))
    classifier = draw(st.sampled_from([CastleClassifier, NetworkClassifier]))
    of_numbers = rng.normal(size=draw(st.sampled_from([n, (n, 2)]))) * (scale if np.isfinite(scale) else 1)
    both = st.sampled_from([(regressor, of_numbers), (classifier, rng.choice(labels, n))])
    return draw(both | both | st.tuples(st.sampled_from([regressor, classifier]), columns(n)))


@given(st.data())
@cases(150)
def test_any_table_is_read_or_rejected(data: Any) -> None:
    frame = data.draw(frames(data.draw(st.integers(0, 9))))
    X = data.draw(st.sampled_from([frame, frame.to_numpy(), frame.to_numpy().tolist(), {}, frame.size]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            read = read_columns(X)
        except Exception as error:
            check_clear(error, names=tuple(map(str, frame.columns)))
        else:
            assert len(read) == len(frame)


@given(st.data())
@cases(25)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_any_table_is_fitted_or_rejected(tmp_path: Path, data: Any) -> None:
    n = data.draw(st.integers(18, 30))
    X, (kind, y) = data.draw(frames(n)), data.draw(problems(n))
    options = {"search": "paper", "cv": 2, "reg_betas": (0.1,)} if kind is CastleRegressorCV else {}
    model = kind(hidden_layer_sizes=(3,), max_epochs=1, random_state=0, **options)
    try:
        model.fit(X, y)
    except Exception as error:
        check_clear(error, ValueError, TypeError, FloatingPointError, names=tuple(map(str, X.columns)))
        return
    predicted = model.predict(X)
    assert predicted.dtype.kind != "f" or np.isfinite(predicted).all()
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(np.asarray(model.predict_proba(X)).sum(axis=-1), 1)
    row = data.draw(st.integers(0, n - 1))
    np.testing.assert_array_equal(model.predict(X.iloc[row : row + 1]), predicted[row : row + 1])
    castlereg.save(model, tmp_path / "model")
    np.testing.assert_array_equal(castlereg.load(tmp_path / "model").predict(X), predicted)


@cache  # workbooks contain the time of writing
def written(suffix: str) -> bytes:
    """A small table in a file of this format."""
    frame = pd.DataFrame({"a": [1.5, None, 3.0] * 4, "b, c": ["x", '"y"', "é"] * 4, "day": ["2024-01-01", "", "?"] * 4})
    content = io.BytesIO()
    if suffix == ".parquet":
        frame.to_parquet(content)
    elif suffix == ".xlsx":
        frame.to_excel(content, index=False)
    elif suffix.startswith(".jsonl"):
        frame.to_json(content, orient="records", lines=True)
    else:
        frame.to_csv(content, index=False, encoding="utf-8")
    return gzip.compress(content.getvalue(), mtime=0) if suffix.endswith(".gz") else content.getvalue()


@pytest.mark.parametrize("suffix", [".csv", ".txt", ".csv.gz", ".jsonl", ".parquet", ".xlsx"])
@pytest.mark.filterwarnings("ignore")
@given(st.data())
@cases(60)
def test_damaged_tables_are_read_or_rejected(tmp_path: Path, suffix: str, data: Any) -> None:
    path = tmp_path / f"table{suffix}"
    path.write_bytes(data.draw(mutated(written(suffix))))
    try:
        file = TableFile.open(path)
        frame = file.read()
    except Exception as error:
        check_clear(error, ValueError, TypeError, OSError)
        return
    assert list(frame.columns) == list(file.names) and len(set(file.names)) == len(file.names) and len(frame)
    try:
        n_rows = sum(map(len, file.frames(file.names, 5)))
    except Exception as error:
        check_clear(error, ValueError, OSError)
    else:
        assert n_rows == len(frame)
