"""Every kind of value comes back as it was, in value and type; what is not known is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from castlereg import EdgeConstraints, regularizers
from castlereg.persistence.arrays import DTYPES, ArrayReader, ArrayWriter
from castlereg.persistence.json_content import parse
from castlereg.persistence.refusal import Unreadable
from castlereg.persistence.values import KINDS, NoWrittenForm, read_value, write_value
from castlereg.regularizers import L1, L2, Autoencoder, BatchNorm, Castle, Dropout, InputNoise, MixUp
from tests.persistence.test_model_file import assert_same


def round_trip(value: Any) -> Any:
    writer = ArrayWriter()
    text = json.dumps(write_value(value, writer), allow_nan=False).encode("ascii")
    reader = ArrayReader(writer.to_bytes())
    read = read_value(parse(text, "the text"), reader)
    reader.finish()
    return read


VALUES = [
    *(None, True, 0, -(10**30), 0.1 + 0.2, 5e-324, -0.0, math.nan, math.inf, -math.inf, "", "\udc80\x00é"),
    *([1, [2.5, ("x",)]], (), {1: "int", 1.5: "float", "1": "text", (0, "a"): None, True + 1: []}),
    *(dtype.type(1) for dtype in DTYPES.values()),
    *(np.float32("nan"), np.float64(np.inf), np.int64(-(2**63)), np.uint64(2**64 - 1)),
    *(np.array([[1, 0], [0, 1]], dtype) for dtype in DTYPES.values()),
    *(np.array(3.5), np.empty((0, 4)), np.array([np.nan, -np.inf]), np.arange(6).reshape(2, 3).T),
    *(np.array(["b", "long text"]), np.array([], "U7"), np.array(["a"], "U9"), np.array(["x", 1, 1.5, None], object)),
    np.ma.masked_invalid([1.0, np.nan]),
    *(L1(0.5), L2(0), Dropout(0.25), Autoencoder(2), BatchNorm(0.5), InputNoise(0.01), MixUp(0.7)),
    Castle(0.1, 2, acyclicity=None, capacity=True, reconstruct=3),
    EdgeConstraints([("a", "b")], [("b", "a")], [["a"], ["b", "c"]], ["c"], ["a"]),
    *(KFold(4), StratifiedKFold(3, shuffle=True, random_state=7), GroupKFold(2), StratifiedGroupKFold(2)),
    *(ShuffleSplit(2, test_size=0.3), StratifiedShuffleSplit(3, train_size=9), GroupShuffleSplit(2)),
    *(TimeSeriesSplit(3, gap=1), PredefinedSplit([0, 1, -1]), LeaveOneOut(), LeaveOneGroupOut()),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}-{str(value)[:20]!r}")
def test_values_come_back_as_they_were(value: Any) -> None:
    read = round_trip(value)
    assert_same(read, value)
    if isinstance(value, float):
        assert math.copysign(1, read) == math.copysign(1, value)


def test_every_kind_is_among_these_values() -> None:
    of_values = {name for value in VALUES for name, kind in KINDS.items() if kind.fits(value)}
    assert of_values == set(KINDS)


def test_every_regularizer_of_castlereg_has_a_form() -> None:
    assert {*regularizers.__all__} - {"Regularizer"} <= set(KINDS)


def test_options_that_came_after_a_file_are_at_their_defaults() -> None:
    assert read_value({"kind": "Castle", "is": {"reg_beta": 0.5}}, ArrayReader(ArrayWriter().to_bytes())) == Castle(0.5)


def circle() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    "value",
    [
        *(lambda: 0, print, object(), L2, {1, 2}, b"bytes", range(3), 1j, RepeatedKFold(), iter([]), circle()),
        *(KFold(2, shuffle=True, random_state=np.random.RandomState(0)), np.array([print]), np.array(["x"], "T")),
        *(np.array([["a"]]), np.datetime64("2020-01-01"), np.array([1j]), [print]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_need_pickle_have_no_form(value: Any) -> None:
    with pytest.raises(NoWrittenForm):
        write_value(value, ArrayWriter())


EVIL = [
    {"kind": "os.system", "is": ["true"]},
    {"kind": "KFold", "is": {"n_splits": 2, "shuffle": False, "random_state": None, "__class__": "x"}},
    {"kind": "KFold", "is": {"n_splits": "two", "shuffle": False, "random_state": None}},
    {"kind": "PredefinedSplit", "is": {"test_fold": [[], []]}},
    {"kind": "L2", "is": {"strength": "much"}},
    {"kind": "L2", "is": {"strength": {"kind": "float", "is": "nan"}}},
    {"kind": "L2", "is": {"strength": 0.1, "evil": 1}},
    {"kind": "PredefinedSplit", "is": {}},
    {"kind": "EdgeConstraints", "is": dict.fromkeys(("required", "forbidden", "tiers", "sinks", "sources"), 3)},
    {"kind": "float", "is": "1.5"},
    {"kind": "float", "is": 1.5},
    {"kind": "tuple", "is": "text"},
    {"kind": "dict", "is": [[1, 2, 3]]},
    {"kind": "dict", "is": [[1]]},
    {"kind": "dict", "is": [[[], 1]]},
    {"kind": "dict", "is": [[1, 2], [1, 3]]},
    {"kind": "numpy number", "is": ["object", 1]},
    {"kind": "numpy number", "is": ["int8", 300]},
    {"kind": "numpy number", "is": ["int8", 1.5]},
    {"kind": "numpy number", "is": [["int8"], 1]},
    {"kind": "numpy number", "is": ["int8"]},
    {"kind": "array", "is": "missing"},
    {"kind": "array", "is": 3},
    {"kind": "masked array", "is": []},
    {"kind": "text array", "is": {"width": 10**12, "texts": ["a"]}},
    {"kind": "text array", "is": {"width": 1, "texts": ["long"]}},
    {"kind": "text array", "is": {"width": 1, "texts": [1]}},
    {"kind": "text array", "is": {"width": -1, "texts": []}},
    {"kind": "object array", "is": 7},
    {"kind": ["tuple"], "is": []},
    {"kind": "tuple", "is": [], "more": 1},
    {"tuple": []},
    {},
    1e999,
]


@pytest.mark.parametrize("content", EVIL, ids=lambda content: str(content)[:40])
def test_content_that_is_none_of_the_kinds_is_refused(content: Any) -> None:
    with pytest.raises(Unreadable):
        read_value(content, ArrayReader(ArrayWriter().to_bytes()))


def test_deep_nesting_is_refused() -> None:
    deep: Any = 0
    for _ in range(100):
        deep = [deep]
    with pytest.raises(Unreadable, match="nested too deeply"):
        read_value(deep, ArrayReader(ArrayWriter().to_bytes()))
    with pytest.raises(Unreadable, match="nested too deeply"):
        parse(b"[" * 100_000 + b"]" * 100_000, "the text")


@pytest.mark.parametrize("text", [b"NaN", b"[Infinity]", b'{"a": 1, "a": 2}', b"{", b"\xff", b"", b"9" * 5000])
def test_text_that_is_no_strict_json_is_refused(text: bytes) -> None:
    with pytest.raises(Unreadable, match="the text is no JSON"):
        parse(text, "the text")
