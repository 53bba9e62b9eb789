"""Targets of all makes, to channels and back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import expit, softmax
from sklearn.exceptions import DataConversionWarning

from castlereg.table.targets import (
    ClassTarget,
    NumericTarget,
    _as_target,
    _is_missing,
    check_class_weight,
    check_target,
    has_targets,
    inferred_task,
    plain_target,
    read_target,
    target_kinds,
)


@pytest.mark.parametrize(
    "y",
    [
        [1, 2, 3],
        np.array([1.0, 2.0, 3.0]),
        pd.Series([1, 2, 3]),
        pd.Series([1, 2, 3], dtype="Int64"),
        pd.Series([1, 2, 3], dtype=object),
        pd.Series([1, 2, 3], dtype="category"),
        pl.Series([1, 2, 3]),
    ],
)
def test_numbers_of_any_make(y: Any) -> None:
    columns, names = read_target(y)
    assert names == ["y"]
    np.testing.assert_array_equal(_as_target(columns[0], "y"), [1, 2, 3])


@pytest.mark.parametrize("dtype", [object, "str", "string", "category"])
def test_classes_of_any_make(dtype: Any) -> None:
    columns, names = read_target(pd.Series(["b", "a", "b"], dtype=dtype, name="kind"))
    assert names == ["kind"]
    target = ClassTarget.fit(check_target(columns[0], "kind", "classes"), "kind")
    assert list(target.classes) == ["a", "b"]
    np.testing.assert_array_equal(target.encode(columns[0]), [[1], [0], [1]])


def test_several_targets_keep_their_names_and_types() -> None:
    frame = {"price": [1.5, 2.5, 3.5], "sold": ["yes", "no", "no"]}
    for y in (pd.DataFrame(frame), pl.DataFrame(frame)):
        assert read_target(y)[1] == ["price", "sold"]
        assert target_kinds(y, "any") == ["numbers", "classes"]
        assert target_kinds(y, "classes") == ["classes", "classes"]
    assert read_target(np.ones((3, 2)))[1] == ["y0", "y1"]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_values_are_counted(missing: Any) -> None:
    with pytest.raises(ValueError, match=r"y has 2 missing values \(NaN or None\), first in row 1"):
        read_target(pd.Series([1.0, missing, 2.0, missing], dtype=object))
    with pytest.raises(ValueError, match=r"y's column 'b' has 1 missing values .* first in row 0"):
        read_target(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}).assign(b=pd.Series([missing, "y"], dtype=object)))
    with pytest.raises(ValueError, match="y has 1 missing values"):
        read_target(pd.Series([1, None], dtype="Int64"))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        (np.ones((2, 2, 2)), "shape \\(2, 2, 2\\)"),
        (np.array([1 + 1j]), "Complex data not supported"),
        (pd.Series(pd.to_datetime(["2020-01-01"])), "y has dates"),
        (pd.DataFrame(index=[0, 1]), "y has no columns"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "y has 2 columns named 'a'"),
        (pd.Series([[1], [2]], dtype=pd.ArrowDtype(pa.list_(pa.int64()))), "y has .* in row 0: pass one number"),
        ([[1], [1, 2]], "y has rows of different lengths"),
        (pd.Series([0, {1}], dtype=object), "y has .* in row 1: pass one number"),
    ],
)
def test_what_is_not_a_target_raises(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_target(y)


def test_mixed_classes_raise() -> None:
    with pytest.raises(ValueError, match="kind mixes text with int"):
        check_target(np.array(["a", 1], object), "kind", "classes")


def test_odd_labels() -> None:
    with pytest.raises(ValueError, match="Unknown label type: continuous"):  # without a warning of the arithmetic
        check_target(np.array([1e300, -1e300]), "kind", "classes")
    with pytest.raises(ValueError, match=r"kind has '\\ud800', which is not valid Unicode"):
        check_target(np.array(["a", "\ud800"]), "kind", "classes")


def test_a_target_whose_squares_are_zero_raises() -> None:
    with pytest.raises(ValueError, match="y varies by less than 1e-100: rescale it"):
        NumericTarget.fit(np.array([1e-300, 2e-300]), "y")


def test_a_column_vector_is_one_target_with_a_warning() -> None:
    with pytest.warns(DataConversionWarning, match="column-vector"):
        columns, _ = read_target(np.ones((4, 1)))
    assert columns[0].shape == (4,)


def test_outputs_are_decoded(rng: np.random.Generator) -> None:
    y = rng.normal(5, 3, 20)
    number = NumericTarget.fit(y, "y")
    np.testing.assert_allclose(number.decode(np.c_[number.encode(y), np.zeros(20)]), y)
    outputs = rng.normal(size=(2, 7, 4))
    two, three = ClassTarget("y", np.array([0, 1])), ClassTarget("y", np.array(list("abc")))
    np.testing.assert_allclose(two.decode(outputs)[..., 1], expit(outputs[..., 0]))
    np.testing.assert_allclose(three.decode(outputs), softmax(outputs[..., :3], axis=-1))
    np.testing.assert_array_equal(three.encode(np.array(["c", "a"])), [[0, 0, 1], [1, 0, 0]])
    with pytest.raises(
        ValueError, match=r"y_val has class 'q', which is not in the training data; known classes are \['a', 'b', 'c'\]"
    ):
        three.checked(np.array(["a", "q"]), "y_val")
    with pytest.raises(ValueError, match="y has class 'q'"):
        three.encode(np.array(["q"]))
    with pytest.raises(ValueError, match="y has class 3, which is not in the training data"):
        ClassTarget("y", np.array(["a", "b"], object)).codes(np.array([3, 4]))


def test_numbers_stored_as_objects_are_numbers() -> None:
    for stored, kind in (([1, 2, 1], "i"), ([1.5, 2, 1], "f"), ([True, False, True], "b"), (["a", "b", "a"], "O")):
        (column,), _ = read_target(np.array(stored, object))
        assert column.dtype.kind == kind
        assert column.tolist() == stored


def test_numbers_written_as_text_are_numbers() -> None:
    np.testing.assert_array_equal(_as_target(np.array(["1.5", " 2"], object), "y"), [1.5, 2])
    for texts, message in ((["1.5", "x"], "'x' in row 1"), (["1.5", "-"], "'-' in row 1")):
        with pytest.raises(ValueError, match=f"y has {message}, which is not a number"):
            _as_target(np.array(texts, object), "y")
    with pytest.raises(ValueError, match="y has text that looks like numbers with decimal commas"):
        _as_target(np.array([f"{i},5" for i in range(30)]), "y")


def test_text_that_stands_for_missing_values_is_missing() -> None:
    with pytest.raises(ValueError, match=r"y has 2 missing values \('NA'\), first in row 1"):
        read_target(np.array(["a", "NA", "?", "b"]))
    for make in (list, pd.Series, pl.Series):
        np.testing.assert_array_equal(_is_missing(make(["a", "NA", " ", None, "-"])), [0, 1, 1, 1, 0])
    (column,), _ = read_target(pd.Series(["a", "NA"], dtype="category"))
    assert list(column) == ["a", "NA"]


def test_what_is_not_a_number_is_named() -> None:
    for values, shown in ((["1", 2], "'1' in row 0"), ([1, 2j], "2j in row 1")):
        with pytest.raises(ValueError, match=f"y has {shown}, which is not a number"):
            _as_target(np.array(values, object), "y")
    with pytest.raises(ValueError, match="y contains infinity: inf in row 1"):
        _as_target(np.array([1, 10**400], object), "y")


def test_marks_are_missing_among_numbers_only() -> None:
    """Of a price list with some "-", no row is a class."""
    for marks in (["-", " . "], ["none", "missing"]):
        prices = [f"{price}.5" for price in range(30)]
        assert _is_missing(pd.Series([*prices, *marks])).tolist() == [False] * 30 + [True] * 2
        assert _is_missing(np.array([1.5, 2.5, *marks], object)).tolist() == [False, False, True, True]
        assert not _is_missing(["a", *marks]).any()
        assert not _is_missing(["01", "2", *marks]).any()  # codes
        assert not _is_missing(marks).any()
    with pytest.raises(ValueError, match=r"y has 1 missing values \('-'\), first in row 1"):
        read_target(["1", "-"])


def test_rows_that_have_all_targets() -> None:
    frame = pd.DataFrame({"a": [1, None, 3], "b": ["x", "y", "?"]})
    for y in (frame, pl.DataFrame(frame.to_dict("list"), strict=False), frame.to_numpy()):
        assert has_targets(y).tolist() == [True, False, False]


def test_text_of_numbers_is_plain_numbers() -> None:
    assert plain_target(pd.Series(["3", "1"], index=[5, 7])).to_dict() == {5: 3, 7: 1}
    assert plain_target(pd.Series(["True", "False"])).dtype == bool
    assert plain_target(pd.Series([1, 2], dtype=object)).dtype.kind == "i"
    for column in (pd.Series(["a", "1"]), pd.Series(["1", "2"], dtype="category"), pd.Series([1.5, 2])):
        assert plain_target(column) is column


ODD: list[tuple[Any, str]] = [
    (["a", "b", "a"], "classification"),
    ([True, False, True], "classification"),
    ([0.0, 1.0, None], "classification"),
    ([1, 2, 3, 1, 2, 3], "classification"),
    (np.array([1, 2, 3, 1, 2, 3], object), "classification"),
    (np.array([True, False, None], object), "classification"),
    ([1.0, 2.0, 1.0], "classification"),
    (pd.Categorical([1, 2, 3]), "classification"),
    (pd.Categorical(["x", "y", "x"]), "classification"),
    (pd.array([0, 1, None, 1], dtype="Int64"), "classification"),
    (pd.array([True, None], dtype="boolean"), "classification"),
    (pd.array(["a", None], dtype="string"), "classification"),
    ([2, 3, 4, 5, 4, 7, 8, 9, 9, 12], "regression"),  # few rows, not classes
    (list(range(20)), "regression"),
    ([0.5, 1.0, 1.5], "regression"),
    ([0.5, 1.5, 0.5, 1.5], "regression"),  # two values, but not whole
    (np.array([0.5, 1.5, 0.5, 1.5], object), "regression"),
    ([7, 7, 7], "regression"),  # a constant, which no estimator accepts
    ([Decimal("0.5"), Decimal(1)], "regression"),
    (pd.array([0.5, 1.5, None], dtype="Float64"), "regression"),
    (["0.5", "1.5", "NA"], "regression"),  # text of numbers
    (["0.5", "1.5"], "regression"),
    (["0.5", "-", "1.5", "none"], "regression"),  # marks among numbers
    (np.array([0.5, "-", 1.5], object), "regression"),
    (["+", "-", "+"], "classification"),
    (["none", "some", "none"], "classification"),
    (["1", "2", "1", "?", "2"], "classification"),
    (["01", "02", "03"], "classification"),  # codes
]


@pytest.mark.parametrize(("values", "task"), ODD)
def test_the_task_follows_from_the_target(values: Any, task: str) -> None:
    assert inferred_task(values)[0] == inferred_task(pd.Series(values))[0] == task


MANY = np.random.default_rng(0).uniform(0, 99, 60)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([f"{x:.2f}".replace(".", ",") for x in MANY], r"price has text that looks like numbers with decimal commas"),
        ([f"{x:.2f} kg" for x in MANY], "price has text that looks like numbers with thousands separators or units"),
        ([*map(str, MANY), "n.v."], "price has text that looks like numbers except for 'n.v.'"),
        ([f"2024-{i // 28 + 1:02}-{i % 28 + 1:02}" for i in range(60)], "price has text that looks like dates, such"),
        ([f"person {i}" for i in range(60)], r"hardly any repeated values \(60 different values in 60 rows, such as"),
    ],
)
def test_text_that_is_neither_numbers_nor_classes_raises(values: list[str], message: str) -> None:
    y = pd.Series(values, name="price")
    with pytest.raises(ValueError, match=message):
        inferred_task(y)
    with pytest.raises(ValueError, match=message):
        ClassTarget.fit(y.to_numpy(object), "price")


def test_many_classes_that_repeat_are_classes() -> None:
    for labels in ([str(i) for i in range(30)], [f"word {i}" for i in range(30)], [f"{i:02}" for i in range(30)]):
        assert len(ClassTarget.fit(np.array(labels * 2), "y").classes) == 30
    with pytest.raises(
        ValueError, match=r"y has text that looks like numbers, such as '0\.5'.*: predict them with a regressor"
    ):
        ClassTarget.fit(np.array([f"{i}.5" for i in range(30)] * 9), "y")


@pytest.mark.parametrize("class_weight", ["balance", 2.0, ["balanced", "even"]])
def test_only_none_balanced_and_dicts_are_class_weights(class_weight: Any) -> None:
    with pytest.raises(ValueError, match="must be None, 'balanced' or a dict of classes to weights"):
        check_class_weight(class_weight)
