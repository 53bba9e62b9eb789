"""Odd frames are handled as documented or raise with the column's name: no crash, no silent coercion."""

from __future__ import annotations

import datetime
import warnings
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castlereg import CastleRegressor, NetworkRegressor
from castlereg.network import initialize
from castlereg.notices import FitWarning
from castlereg.table.encoding import measure
from castlereg.table.reading import read_columns
from castlereg.training import Plan, TrainedStack

NAMES = st.sampled_from(["a", "a", "b", "", "two words", "<b>&", "naïve", "y", "x0", 0, 1, 2.5, None, ("t", 1)])
NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(-1e6, 1e6),
    st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e300, 3e38, -3e38, 1e-45]),
    st.none(),
)
SMALL = st.integers(-2, 2)
TEXT = st.sampled_from(["x", "y", "z", "?", "", "NA", "1", "2.5", "ω"])
DATES = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
ANYTHING = st.one_of(NUMBERS, SMALL, TEXT, DATES, st.booleans(), st.binary(max_size=2), st.just([1]), st.just({"k": 1}))


@st.composite
def columns(draw: st.DrawFn, n: int) -> Any:
    """Draw one column: of one sort, only of missing values, constant, or of everything."""
    sorts = "numbers tame whole text unique dates bool gaps same anything category nullable"
    sort = draw(st.sampled_from(sorts.split()))
    many = {"min_size": n, "max_size": n}
    if sort == "numbers":
        return draw(st.lists(NUMBERS, **many))
    if sort == "tame":
        return np.random.default_rng(draw(st.integers(0, 99))).normal(size=n)
    if sort == "whole":
        return draw(st.lists(SMALL, **many))
    if sort == "text":
        return draw(st.lists(st.one_of(TEXT, st.none()), **many))
    if sort == "unique":
        return [f"id {i}" for i in range(n)]
    if sort == "dates":
        return draw(st.lists(st.one_of(DATES, st.none()), **many))
    if sort == "bool":
        return draw(st.lists(st.one_of(st.booleans(), st.none()), **many))
    if sort == "gaps":
        return [None] * n
    if sort == "same":
        return [draw(TEXT)] * n
    if sort == "category":
        values = draw(st.lists(st.one_of(SMALL, st.none()), **many))
        return pd.Categorical(values, ordered=draw(st.booleans()))
    if sort == "nullable":
        return pd.array(draw(st.lists(st.one_of(SMALL, st.none()), **many)), dtype="Int64")
    return draw(st.lists(ANYTHING, **many))


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    n = draw(st.sampled_from([12, 40, 40, 40, 3, 2, 1, 0]))
    series = [pd.Series(draw(columns(n))) for _ in range(draw(st.integers(0, 4)))]
    if not series:
        return pd.DataFrame(index=range(n))
    frame = pd.concat(series, axis=1)
    plain = ["a", "two words", "<b>&", "naïve"][: len(series)]
    odd = draw(st.sampled_from([False, False, False, True]))
    frame.columns = pd.Index([draw(NAMES) for _ in series] if odd else plain, dtype=object)
    return frame


def untrained(table: Any, members: Any, plan: Plan, _control: Any) -> TrainedStack:
    """Stand in for the trainer: starting weights, and everything around them as it is."""
    by, _ = measure(table, [member.train_rows for member in members])
    start = initialize(table.layout, plan.hidden_layer_sizes, members[0].seed, nodes=table.layout.targets)
    history = pd.DataFrame({"member": [0], "epoch": [1]})
    one = np.zeros(1, np.float32)
    return TrainedStack(jax.tree.map(lambda a: a[None], start), by, one, one.astype(np.int32), history, False, "jax")


ABOUT_THE_TABLE = ("is too few", "0 sample", "0 feature", "Feature names are only supported", "feature_names")


def check(model: Any, frame: pd.DataFrame, y: np.ndarray) -> None:
    """Fit and predict, or find the column's name in the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FitWarning)
        warnings.filterwarnings("ignore", message="constant columns have no edges")
        warnings.filterwarnings("ignore", message="X has (numbers stored as text|text that is read|columns that)")
        try:
            model.fit(frame, y)
        except (ValueError, TypeError) as error:
            message = str(error)
            named = any(repr(str(name)) in message for name in frame.columns)
            assert named or any(one in message for one in ABOUT_THE_TABLE), message
            return
        predictions = model.predict(frame)
    assert predictions.shape == (len(frame),)
    assert np.isfinite(predictions).all()
    np.testing.assert_array_equal(model.predict(frame[-1:]), predictions[-1:])
    assert list(model.schema_.index) == [str(name) for name in frame.columns]
    nothing_lost(model, frame)


def nothing_lost(model: Any, frame: pd.DataFrame) -> None:
    """Every cell that is there is a level or a number of the schema; every missing value is counted."""
    used = (model.schema_["kind"] != "unusable").to_numpy()
    cells = model.model_.preprocessing.cells(read_columns(frame))[:, used]
    np.testing.assert_array_equal(np.isnan(cells).sum(axis=0), model.schema_["missing"][used])
    frame = frame.loc[:, used]
    marks = frame.map(lambda value: isinstance(value, str) and value in ("?", "", "NA")).to_numpy(bool)
    gaps = frame.isna().to_numpy(bool)
    assert not (np.isnan(cells) & ~gaps & ~marks).any()


@settings(deadline=None, max_examples=300)
@given(frames())
def test_any_frame_is_handled_or_raises_with_a_name(frame: pd.DataFrame) -> None:
    y = np.random.default_rng(0).normal(size=len(frame))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("castlereg.search.candidates.train", untrained)
        check(NetworkRegressor(random_state=0), frame, y)


@settings(deadline=None, max_examples=12)
@given(frames())
def test_odd_frames_train_for_real(frame: pd.DataFrame) -> None:
    y = np.random.default_rng(0).normal(size=len(frame))
    check(CastleRegressor(random_state=0, max_epochs=2, hidden_layer_sizes=(4,)), frame, y)
