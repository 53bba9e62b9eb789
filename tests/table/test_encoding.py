"""Channels of every kind of column, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy
from sklearn.preprocessing import RobustScaler
from sklearn.utils.class_weight import compute_sample_weight

from castlereg.layout import Layout, Node
from castlereg.table import encoding
from castlereg.table.encoding import (
    Channel,
    Encoded,
    Preprocessing,
    Rows,
    Standardization,
    _Moments,
    measure,
    padded_size,
    smooth_clip,
    standardize,
    weighted_by_class,
)
from castlereg.table.reading import Columns, on_disk, read_columns
from castlereg.table.targets import ClassTarget, NumericTarget
from castlereg.target_losses import Huber


def fitted(frame: pd.DataFrame, **options: Any) -> Preprocessing:
    rows = Rows(read_columns(frame), (np.arange(len(frame), dtype=float),))
    options = {"categorical": [False] * frame.shape[1], **options}
    return Preprocessing.fit(rows, (NumericTarget.fit(rows.targets[0], "y"),), **options)


def test_every_kind_has_its_channels() -> None:
    frame = pd.DataFrame(
        {
            "number": [1.5, 2.5, None, 5.0],
            "two": ["no", "yes", "no", None],
            "level": ["a", None, "c", "b"],
            "whole": [2, 4, 6, 8],
        }
    )
    preprocessing = fitted(frame)
    assert preprocessing.nodes == (
        Node(missing=True),
        Node("binary", missing=True),
        Node("categorical", 3, missing=True),
        Node(),
    )
    channels = preprocessing.encode(preprocessing.cells(read_columns(frame)))
    nan, spread = np.nan, np.std([1.5, 2.5, 5.0])
    np.testing.assert_allclose(channels[:, 0], (np.array([1.5, 2.5, nan, 5.0]) - 3) / spread)
    np.testing.assert_array_equal(channels[:, 1], [0, 0, 1, 0])
    np.testing.assert_array_equal(channels[:, 2:4], [[0, 0], [1, 0], [0, 0], [nan, 1]])
    np.testing.assert_array_equal(channels[:, 4:8], [[1, 0, 0, 0], [nan, nan, nan, 1], [0, 0, 1, 0], [0, 1, 0, 0]])
    np.testing.assert_allclose(channels[:, 8], np.array([-3, -1, 1, 3]) / np.sqrt(5))


def test_unknown_levels_and_new_missing_values() -> None:
    ordered = pd.Categorical(["lo", "mid", "hi"], ["lo", "mid", "hi"], ordered=True)
    frame = pd.DataFrame({"two": ["x", "y", "x"], "level": ["a", "b", "c"], "size": ordered, "n": [1.5, 2.0, 7.0]})
    preprocessing = fitted(frame)
    other = pd.Categorical(["huge", None], ["huge"], ordered=True)
    new = read_columns(pd.DataFrame({"two": ["z", None], "level": ["q", None], "size": other, "n": [2.0, None]}))
    with pytest.warns(UserWarning, match="not in the training data"):
        cells = preprocessing.cells(new)
    channels = preprocessing.encode(cells)
    assert np.isfinite(channels).all()
    np.testing.assert_array_equal(channels[:, 0], [0.5, 0.5])  # between the two
    np.testing.assert_array_equal(channels[:, 1:4], np.zeros((2, 3)))  # none of them
    np.testing.assert_array_equal(channels[:, 4], [0, 0])  # the mean
    assert channels[1, 5] == 0
    with pytest.warns(
        UserWarning, match="missing values in columns that had none in training: 1 in 'two', 1 in 'level'"
    ):
        preprocessing.warn_of_new_missing(cells)


def test_a_two_valued_number_goes_on_as_a_number() -> None:
    preprocessing = fitted(pd.DataFrame({"a": [3.0, 5.0, 3.0]}))
    np.testing.assert_array_equal(preprocessing.encode(np.array([[3.0], [5.0], [7.0]]))[:, 0], [0, 1, 2])


def test_only_numeric_columns_are_clipped() -> None:
    frame = pd.DataFrame({"n": [1.5, 2.5, 4.0], "whole": [1, 2, 3], "two": [0, 1, 0], "t": ["a", "b", "c"]})
    assert [node.clipped for node in fitted(frame, clipped=True).nodes] == [True, False, False, False]


def test_neither_units_nor_offsets_cost_digits(rng: np.random.Generator) -> None:
    columns = rng.normal(size=(50, 3)) * [1e-9, 1, 1e9] + [0, 5, -1e12]
    preprocessing = fitted(pd.DataFrame(columns))
    encoded = preprocessing.encode(columns)
    np.testing.assert_allclose(encoded.std(axis=0), 1, rtol=1e-4)
    np.testing.assert_allclose(encoded * preprocessing.spread + preprocessing.center, columns, rtol=1e-12)


PLAIN = pd.DataFrame({"a": [1.0, 2.0, 4.5], "b": [5.0, 3.0, 1.5]})
MIXED = PLAIN.assign(
    city=["Rome", "Oslo", "Lima"],
    lift=["yes", None, "no"],
    floor=[1.5, None, 3.0],
    size=pd.Categorical(list("SML"), list("SML"), ordered=True),
)


@pytest.mark.parametrize("frame", [PLAIN, MIXED])
def test_rows_beyond_the_cells_are_zero_whatever_the_columns(frame: pd.DataFrame) -> None:
    preprocessing = fitted(frame)
    cells = preprocessing.cells(read_columns(frame))
    padded = preprocessing.encode(cells, padded_rows=5)
    np.testing.assert_array_equal(padded[:3], preprocessing.encode(cells))
    np.testing.assert_array_equal(padded[3:], 0)


def by_hand(channel: Channel, cell: float) -> float:
    """Evaluate the description of a channel, one cell at a time."""
    if np.isnan(cell):
        return channel.fill
    if cell == -1 and channel.unknown is not None:
        return channel.unknown
    match channel.kind:
        case "value":
            return (cell - channel.center) * (1 / channel.spread)
        case "level":
            return float(cell == channel.level)
        case "missing":
            return 0.0


@pytest.mark.parametrize("frame", [PLAIN, MIXED])
@pytest.mark.filterwarnings("ignore:X has levels")
def test_encode_evaluates_the_description(frame: pd.DataFrame) -> None:
    preprocessing = fitted(frame)
    unseen = frame.astype({"city": object, "lift": object, "size": object} if "city" in frame else {})
    unseen.iloc[1] = None
    if "city" in frame:
        unseen.loc[2, ["city", "lift", "size"]] = "?!"
    for rows in (frame, unseen):
        cells = preprocessing.cells(read_columns(rows))
        expected = [[by_hand(channel, row[channel.column]) for channel in preprocessing.channels] for row in cells]
        np.testing.assert_array_equal(preprocessing.encode(cells), expected)


def test_encoded_rows_are_in_the_users_order() -> None:
    frame = pd.DataFrame({"n": [4.5, 3.5, 2.5, 1.5], "city": ["Rome", "Oslo", "Lima", "Rome"]})
    target = np.array([3.0, 1.0, 2.0, 0.0])
    rows = Rows(read_columns(frame), (target,), np.array([1.0, 0.0, 2.0, 1.0]))
    preprocessing = fitted(frame)
    coded = preprocessing.coded(rows)
    np.testing.assert_array_equal(coded.columns.cells, [[4.5, 2], [3.5, 1], [2.5, 0], [1.5, 2]])
    assert coded.columns.types[1].levels == ("Lima", "Oslo", "Rome")
    encoded = preprocessing.encoded(coded, coded.take(np.array([1])))
    assert encoded.layout is preprocessing.layout
    np.testing.assert_allclose(encoded.inputs[:4, :4], preprocessing.encode(coded.columns.cells), rtol=1e-6)
    np.testing.assert_allclose(encoded.inputs[:4, 4], (target - 1.5) / np.std(target), rtol=1e-6)
    np.testing.assert_array_equal(encoded.inputs[4], encoded.inputs[1])
    np.testing.assert_array_equal(encoded.weight, [1, 0, 2, 1, 0])
    assert encoded.padded()[:5].ctypes.data == encoded.inputs.ctypes.data  # not copied
    assert not encoded.padded()[5:].any()


@pytest.mark.parametrize("block", [3, 1000])
def test_rows_on_disk_are_encoded_on_disk_and_alike(
    block: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(encoding, "_MOST_AT_ONCE", block)
    monkeypatch.setattr(encoding, "_PIECE", block)
    frame = pd.DataFrame(
        {"n": rng.normal(size=50), "city": rng.choice(["Rome", "Oslo", "Lima"], 50), "q": ["1", "?"] * 25}
    )
    y = rng.normal(size=50)
    in_memory = read_columns(frame)
    stored = on_disk((50, 3), np.float64, by_column=True)
    stored[:] = in_memory.cells
    found = []
    for columns in (in_memory, Columns(stored, in_memory.types)):
        rows = Rows(columns, (y,))
        with pytest.warns(UserWarning, match="numbers stored as text in 'q'"):
            preprocessing = Preprocessing.fit(rows, (NumericTarget.fit(y, "y"),), categorical=[False] * 3, clipped=True)
        found.append(preprocessing.encoded(preprocessing.coded(rows)))
    memory, disk = found
    assert isinstance(disk.inputs, np.memmap) and not isinstance(memory.inputs, np.memmap)
    np.testing.assert_array_equal(disk.inputs, memory.inputs)
    np.testing.assert_array_equal(disk.padded(), memory.padded())
    rows = [np.arange(40), np.arange(0, 50, 2)]
    for one, other in zip(measure(disk, rows)[0], measure(memory, rows)[0], strict=True):
        np.testing.assert_array_equal(one, other)


def test_quantiles_of_rows_on_disk_come_from_evenly_spaced_rows(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    layout = Layout((Node(clipped=True), Node(target=True, loss=Huber())))
    inputs, weight, rows = rng.normal(size=(5000, 2)).astype(np.float32), rng.random(5000), np.arange(100, 5000)
    stored = on_disk((5000, 2), np.float32)
    stored[:] = inputs
    whole, _ = measure(Encoded(inputs, layout, weight), [rows])
    monkeypatch.setattr(encoding, "_ENOUGH_ON_DISK", 1000)
    some, _ = measure(Encoded(stored, layout, weight), [rows])
    every_fifth, _ = measure(Encoded(inputs, layout), [rows[::5]])
    np.testing.assert_array_equal(some.clip_center, every_fifth.clip_center)
    for one, other in zip(some, whole, strict=True):
        np.testing.assert_allclose(one, other, atol=0.1)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 1000, 1023, 1024, 5000, 99_999, 10**6])
def test_padding_wastes_little_and_has_few_sizes(n: int) -> None:
    assert n < padded_size(n) <= max(16, 2 * n if n < 1024 else n * 1.125 + 1)
    assert padded_size(padded_size(n) - 1) == padded_size(n)
    assert len({padded_size(n) for n in range(1, 100_000)}) < 70


def test_inputs_without_storage_are_copied_with_empty_rows(rng: np.random.Generator) -> None:
    inputs = rng.normal(size=(20, 2)).astype(np.float32)
    encoded = Encoded(inputs, Layout((Node(), Node(target=True))))
    assert encoded.padded().ctypes.data % 64 == 0
    np.testing.assert_array_equal(encoded.padded()[:20], inputs)
    assert encoded.padded().shape == (32, 2) and not encoded.padded()[20:].any()
    other = replace(encoded, inputs=inputs[:10] + 1, storage=encoded.padded())
    np.testing.assert_array_equal(other.padded()[:10], inputs[:10] + 1)  # not those of the storage


GAPS = Layout((Node(missing=True), Node("categorical", 3, missing=True), Node("binary"), Node(target=True)))


def encoded_gaps(rng: np.random.Generator, weight: np.ndarray | None = None) -> Encoded:
    n = 200
    number, missing = rng.normal(3, 2, n), rng.random(n) < 0.3
    level, no_level = rng.integers(0, 3, n), rng.random(n) < 0.2
    rows = np.column_stack(
        [
            np.where(missing, np.nan, number),
            missing,
            np.where(no_level[:, None], np.nan, np.eye(3)[level]),
            no_level,
            rng.random(n) < 0.25,
            rng.normal(size=n),
        ]
    )
    return Encoded(rows.astype(np.float32), GAPS, weight)


def measured(encoded: Encoded, rows: np.ndarray) -> Standardization:
    return measure(encoded, [rows])[0].take(0)


def test_values_are_standardized_by_the_cells_that_are_there(rng: np.random.Generator) -> None:
    table, rows = encoded_gaps(rng), np.arange(150)
    x = standardize(table.inputs[rows], measured(table, rows), GAPS)
    assert np.nanmean(x[:, 0]) == pytest.approx(0, abs=1e-5)
    assert np.nanstd(x[:, 0]) == pytest.approx(1, rel=1e-5)
    assert np.nanvar(x[:, 2:5], axis=0).sum() == pytest.approx(1, rel=1e-5)
    np.testing.assert_array_equal(np.isnan(x[:, 0]), np.isnan(table.inputs[rows, 0]))
    for flag in (1, 5):  # centred, in steps of one
        assert x[:, flag].mean() == pytest.approx(0, abs=1e-6)
        assert np.ptp(x[:, flag]) == pytest.approx(1)


def test_losses_are_in_units_of_the_base_rates(rng: np.random.Generator) -> None:
    table, rows = encoded_gaps(rng), np.arange(150)
    null_loss = measured(table, rows).null_loss
    assert null_loss is not None
    levels = np.nanmean(table.inputs[rows, 2:5], axis=0)
    share = table.inputs[rows, 6].mean()
    np.testing.assert_allclose(null_loss, [1, entropy(levels), entropy([share, 1 - share]), 1], rtol=1e-5)


def test_weights_are_copies(rng: np.random.Generator) -> None:
    weight = rng.integers(1, 4, 200).astype(np.float32)
    weighted, plain = encoded_gaps(np.random.default_rng(1), weight), encoded_gaps(np.random.default_rng(1))
    by_weight = measured(weighted, np.arange(200))
    by_copies = measured(plain, np.repeat(np.arange(200), weight.astype(int)))
    for one, other in zip(by_weight, by_copies, strict=True):
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_a_level_that_training_rows_lack_has_no_influence(rng: np.random.Generator) -> None:
    layout = Layout((Node("categorical", 3), Node(target=True)))
    levels = np.array([0, 1, 0, 1, 2])
    table = Encoded(np.column_stack([np.eye(3)[levels], rng.normal(size=5)]).astype(np.float32), layout)
    by = measured(table, np.arange(4))
    assert by.scale[2] == 0
    np.testing.assert_allclose(by.scale[:2], 1 / np.sqrt(0.5))


def test_clipped_columns_are_scaled_by_quartiles(rng: np.random.Generator) -> None:
    layout = Layout((Node(clipped=True), Node(), Node(target=True)))
    rows = rng.normal(size=(400, 3)).astype(np.float32)
    rows[:5, 0] = 1e6
    by = measured(Encoded(rows, layout), np.arange(400))
    x = standardize(rows, by, layout)
    expected = smooth_clip(RobustScaler(unit_variance=True).fit_transform(rows[:, :1].astype(np.float64))[:, 0])
    expected = (expected - expected.mean()) / expected.std()
    np.testing.assert_allclose(x[:, 0], expected, rtol=1e-3, atol=1e-4)
    assert np.abs(x[:, 0]).max() < 4
    np.testing.assert_allclose(x[:, 1], (rows[:, 1] - rows[:, 1].mean()) / rows[:, 1].std(), rtol=1e-3, atol=1e-5)


def test_smooth_clip_is_increasing_and_bounded() -> None:
    z = np.linspace(-50, 50, 1001)
    clipped = smooth_clip(z)
    assert (np.diff(clipped) > 0).all()
    assert np.abs(clipped).max() < 3
    np.testing.assert_allclose(smooth_clip(np.array([-0.01, 0.01])), [-0.01, 0.01], rtol=1e-5)


def test_a_column_of_mostly_one_value_is_not_blown_up() -> None:
    layout = Layout((Node(clipped=True), Node(target=True)))
    rows = np.zeros((100, 2), np.float32)
    rows[:10, 0], rows[:, 1] = 8.0, np.arange(100)
    x = standardize(rows, measured(Encoded(rows, layout), np.arange(100)), layout)
    assert np.isfinite(x).all()
    assert x[:, 0].std() == pytest.approx(1, rel=1e-5)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_moments_of_parts_are_those_of_the_whole(seed: int, has_missing: bool) -> None:
    rng = np.random.default_rng(seed)
    rows, weight = rng.normal(1e8, 1.0, (500, 3)), rng.random(500)
    if has_missing:
        rows[rng.random(rows.shape) < 0.2] = np.nan
        rows[:, 2] = np.nan  # no cell at all
        rows[:100, 1] = np.nan  # none in the first part
    first, second = (_Moments.of(rows[part], weight[part], has_missing) for part in (slice(100), slice(100, None)))
    joined, whole = first.joined(second), _Moments.of(rows, weight, has_missing)
    np.testing.assert_allclose(joined.total, whole.total)
    np.testing.assert_allclose(joined.mean, whole.mean, rtol=1e-14)
    np.testing.assert_allclose(joined.variance, whole.variance, rtol=1e-6)  # of numbers with eight equal digits
    present = ~np.isnan(rows[:, 0])
    known = np.cov(rows[present, 0], aweights=weight[present], ddof=0)
    np.testing.assert_allclose(joined.variance[0], known, rtol=1e-6)


KIND = np.array(["a", "b", "a", "c", "a", "b"])
OTHER = np.array([0, 1, 1, 1, 0, 1])


def rows(*targets: Any, weight: Any = None) -> Rows:
    return Rows(read_columns(np.arange(len(targets[0]) * 1.0)[:, None]), targets, weight)


def weighted(class_weight: Any, *targets: Any, weight: Any = None) -> Rows:
    encoders = [ClassTarget.fit(values, f"y{k}") for k, values in enumerate(targets)]
    return weighted_by_class(rows(*targets, weight=weight), encoders, class_weight)


def test_without_class_weights_rows_stay_as_they_are() -> None:
    given = rows(KIND)
    assert weighted_by_class(given, [ClassTarget.fit(KIND, "y")], None) is given


@pytest.mark.parametrize("class_weight", ["balanced", {"a": 2.0, "c": 0.5}, {}])
def test_weights_are_scikit_learns(class_weight: Any) -> None:
    np.testing.assert_allclose(weighted(class_weight, KIND).weight, compute_sample_weight(class_weight, KIND))


@pytest.mark.parametrize("entries", [["balanced", "balanced"], [{"b": 3.0}, {0: 2.0}], [None, {1: 0.25}]])
def test_factors_of_several_targets_are_multiplied(entries: list[Any]) -> None:
    expected = np.prod(
        [
            np.ones(6) if entry is None else compute_sample_weight(entry, values)
            for entry, values in zip(entries, (KIND, OTHER), strict=True)
        ],
        axis=0,
    )
    np.testing.assert_allclose(weighted(entries, KIND, OTHER).weight, expected)


def test_they_multiply_the_weights_that_rows_have() -> None:
    own = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    np.testing.assert_allclose(weighted({"b": 10.0}, KIND, weight=own).weight, [1, 20, 3, 4, 5, 60])
    balanced = weighted("balanced", KIND, weight=own)
    totals = [balanced.weight[label == KIND].sum() for label in "abc"]  # type: ignore[index]
    np.testing.assert_allclose(totals, [7.0] * 3)  # a third of 21 each


def test_rows_of_a_class_without_weight_stay_with_weight_0() -> None:
    np.testing.assert_array_equal(weighted({"a": 0}, KIND).weight, [0, 1, 0, 1, 0, 1])


def test_targets_of_numbers_have_no_factors() -> None:
    numbers = np.linspace(0, 1, 6)
    encoders = [ClassTarget.fit(KIND, "kind"), NumericTarget.fit(numbers, "size")]
    both = weighted_by_class(rows(KIND, numbers), encoders, ["balanced", "balanced"])
    np.testing.assert_allclose(both.weight, compute_sample_weight("balanced", KIND))


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({"q": 2.0}, r"class_weight has class 'q', which y0 does not have; its classes are \['a', 'b', 'c'\]"),
        ({"a": -1}, r"class_weight\['a'\]=-1 must be at least 0"),
        ({"a": "much"}, r"class_weight\['a'\]='much' must be a finite number"),
        ({"a": np.inf}, r"class_weight\['a'\]=inf must be a finite number"),
        (["balanced", None], "class_weight has 2 entries for 1 targets: pass one for each"),
    ],
)
def test_bad_weights_raise(class_weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        weighted(class_weight, KIND)
