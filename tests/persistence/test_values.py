"""Every kind of value comes back as it was, in value and type; what is not known is rejected."""

from __future__ import annotations

import io
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

from castlereg import EdgeConstraints, Recipe, regularizers
from castlereg.acyclicity import trace_exponential
from castlereg.losses import Huber, Poisson, Quantiles
from castlereg.paper.released import ReleasedCastle
from castlereg.persistence.container import DTYPES, StoredArrays, pack, unpack
from castlereg.persistence.json_content import DOES_NOT_FIT, Unreadable, parse
from castlereg.persistence.values import CLASSES, NoWrittenForm, read_value, write_value
from castlereg.regularizers import (
    L1,
    L2,
    Autoencoder,
    BatchNorm,
    Castle,
    Corruption,
    DeepLasso,
    Dropout,
    InputNoise,
    MixUp,
    Tangos,
)
from tests.persistence.test_model_file import assert_same


def round_trip(value: Any) -> Any:
    arrays: dict[str, Any] = {}
    content, stored = unpack(io.BytesIO(pack(write_value(value, arrays), arrays, "0")))
    read = read_value(content, stored)
    stored.finish()
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
    *(L1(0.5), L2(0), Dropout(0.25), Autoencoder(2), BatchNorm(0.5), Corruption(0.2), InputNoise(0.01), MixUp(0.7)),
    *(DeepLasso(0.3), Tangos(0.5, 0.2, pairs=7)),
    Castle(0.1, 2, acyclicity=None, capacity=True, features_per_step=3, acyclicity_strength=0.5),
    *(Castle(objective="graph", acyclicity="auto", sparsity="group"), Castle(reconstruction=False, sparsity=None)),
    *(Huber(0.5), Poisson(), Quantiles((0.2, 0.7))),
    *(Recipe(), Recipe("robust", "glorot", 0.25, warmup=3, batches="independent")),
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
    written = (write_value(value, {}) for value in VALUES)
    kinds = {"float", "tuple", "dict", "numpy number", "array", "masked array", "text array", "object array", *CLASSES}
    assert {content["kind"] for content in written if isinstance(content, dict)} == kinds


def test_every_regularizer_of_castlereg_has_a_form() -> None:
    assert {*regularizers.__all__} - {"Own", "Regularizer"} <= CLASSES.keys()


def test_options_that_came_after_a_file_are_at_their_defaults() -> None:
    assert read_value({"kind": "Castle", "value": {"reg_beta": 0.5}}, StoredArrays({})) == Castle(0.5)


def circle() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    "value",
    [
        *(lambda: 0, print, object(), L2, {1, 2}, b"bytes", range(3), 1j, RepeatedKFold(), iter([]), circle()),
        *(KFold(2, shuffle=True, random_state=np.random.RandomState(0)), np.array([print]), np.array(["x"], "T")),
        *(Castle(acyclicity=trace_exponential), Recipe(input_init=print), ReleasedCastle()),
        *(np.array([["a"]]), np.datetime64("2020-01-01"), np.array([1j]), [print]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_need_pickle_have_no_form(value: Any) -> None:
    with pytest.raises(NoWrittenForm):
        write_value(value, {})


EVIL = [
    {"kind": "os.system", "value": ["true"]},
    {"kind": "KFold", "value": {"n_splits": 2, "shuffle": False, "random_state": None, "__class__": "x"}},
    {"kind": "KFold", "value": {"n_splits": "two", "shuffle": False, "random_state": None}},
    {"kind": "PredefinedSplit", "value": {"test_fold": [[], []]}},
    {"kind": "L2", "value": {"strength": "much"}},
    {"kind": "L2", "value": {"strength": {"kind": "float", "value": "nan"}}},
    {"kind": "L2", "value": {"strength": 0.1, "evil": 1}},
    {"kind": "PredefinedSplit", "value": {}},
    {"kind": "EdgeConstraints", "value": dict.fromkeys(("required", "forbidden", "tiers", "sinks", "sources"), 3)},
    {"kind": "Castle", "value": {"acyclicity": "builtins.eval"}},
    {"kind": "Castle", "value": {"acyclicity": {"kind": "Castle", "value": {}}}},
    {"kind": "Castle", "value": {"reconstruct": 3}},
    {"kind": "ReleasedCastle", "value": {}},
    {"kind": "Recipe", "value": {"input_init": "castlereg.paper.released.released_start"}},
    {"kind": "Recipe", "value": {"input_init": {"kind": "array", "value": "missing"}}},
    {"kind": "Recipe", "value": {"warmup": -1}},
    {"kind": "float", "value": "1.5"},
    {"kind": "float", "value": 1.5},
    {"kind": "tuple", "value": "text"},
    {"kind": "dict", "value": [[1, 2, 3]]},
    {"kind": "dict", "value": [[1]]},
    {"kind": "dict", "value": [[[], 1]]},
    {"kind": "dict", "value": [[1, 2], [1, 3]]},
    {"kind": "numpy number", "value": ["object", 1]},
    {"kind": "numpy number", "value": ["int8", 300]},
    {"kind": "numpy number", "value": ["int8", 1.5]},
    {"kind": "numpy number", "value": [["int8"], 1]},
    {"kind": "numpy number", "value": ["int8"]},
    {"kind": "array", "value": "missing"},
    {"kind": "array", "value": 3},
    {"kind": "masked array", "value": []},
    {"kind": "text array", "value": {"width": 10**12, "texts": ["a"]}},
    {"kind": "text array", "value": {"width": 10**12, "texts": []}},
    {"kind": "text array", "value": {"width": 1, "texts": ["long"]}},
    {"kind": "text array", "value": {"width": 1, "texts": [1]}},
    {"kind": "text array", "value": {"width": -1, "texts": []}},
    {"kind": "object array", "value": 7},
    {"kind": ["tuple"], "value": []},
    {"kind": "tuple", "value": [], "more": 1},
    {"tuple": []},
    {},
    1e999,
]


@pytest.mark.parametrize("content", EVIL, ids=lambda content: str(content)[:40])
def test_content_of_no_known_kind_is_rejected(content: Any) -> None:
    with pytest.raises((Unreadable, *DOES_NOT_FIT)):
        read_value(content, StoredArrays({}))


def test_deep_nesting_is_rejected() -> None:
    deep: Any = 0
    for _ in range(100):
        deep = [deep]
    with pytest.raises(Unreadable, match="nested too deeply"):
        read_value(deep, StoredArrays({}))
    with pytest.raises(Unreadable, match="nested too deeply"):
        parse(b"[" * 100_000 + b"]" * 100_000, "the text")


@pytest.mark.parametrize("text", [b"NaN", b"[Infinity]", b'{"a": 1, "a": 2}', b"{", b"\xff", b"", b"9" * 5000])
def test_text_that_is_not_strict_json_is_rejected(text: bytes) -> None:
    with pytest.raises(Unreadable, match="the text is not JSON"):
        parse(text, "the text")
