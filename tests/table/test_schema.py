"""The rule that tells kinds of columns apart, and levels that a model knows or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg.layout import Node
from castlereg.table.reading import read_columns
from castlereg.table.schema import (
    _MOST_LEVELS,
    OTHER,
    ColumnSchema,
    center_and_spread,
    coded_columns,
    infer_schema,
    named_columns,
    schema_frame,
)


def schema_of(column: Any, categorical: bool = False) -> ColumnSchema:
    return infer_schema(read_columns(pd.DataFrame({"a": column})), [categorical])[0]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([1.5, 2.25, 3.0, 9.0], "numeric"),
        (np.arange(11.0), "numeric"),
        (np.arange(10), "ordinal"),
        ([1.0, 2.0, 3.0, None], "ordinal"),
        ([0, 1, 1, 0], "binary"),
        ([5.5, -3.0, 5.5, None], "binary"),
        ([True, False, True], "binary"),
        (["yes", "no", None], "binary"),
        (["a", "b", "c"], "categorical"),
        (pd.Categorical([1, 2, 3]), "categorical"),
        (pd.Categorical(["lo", "hi", "mid"], ["lo", "mid", "hi"], ordered=True), "ordinal"),
        (pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"]), "numeric"),
    ],
)
def test_kinds_follow_the_rule(column: Any, kind: str) -> None:
    assert schema_of(column).kind == kind


def test_numbers_named_as_categories_are_levels() -> None:
    schema = schema_of([3, 7, 6, 3, None], categorical=True)
    assert schema.kind == "categorical"
    assert schema.levels == (3.0, 6.0, 7.0)
    assert schema.node() == Node("categorical", 3, missing=True)
    assert schema_of([3, 7, 3], categorical=True).node() == Node("binary")


@pytest.mark.parametrize(
    ("column", "constant", "note"),
    [
        ([4.0, 4.0], True, "always '4'"),
        (["x", "x"], True, "always 'x'"),
        ([None, None], True, "no values"),
        ([np.nan, np.nan], True, "no values"),
        ([4.0, np.nan], False, "'4' or missing"),
        (["x", None], False, "'x' or missing"),
        ([0.1 + 0.2, 0.3], True, "always '0.3'"),
        ([1e9, 1e9 + 1], False, ""),
        ([1e-300, 3e-300], True, "always '1e-300'"),
        ([1e-90, 3e-90], False, ""),
    ],
)
def test_one_value_is_constant_unless_missing_values_vary(column: list[Any], constant: bool, note: str) -> None:
    if constant:
        with pytest.warns(UserWarning, match="constant columns have no edges and no influence: 'a'"):
            schema = schema_of(column)
    else:
        schema = schema_of(column)
    assert schema.constant == constant
    assert schema.note == note


def test_identifiers_and_free_text_are_left_out_with_a_warning_that_names_them() -> None:
    frame = pd.DataFrame(
        {
            "code": [f"id{i}" for i in range(60)],
            "user_id": np.arange(60.0)[::-1] * 7,
            "n": np.linspace(0, 1, 60),
            "said": [f"I have {i} words to say" for i in range(60)],
        }
    )
    columns = read_columns(frame)
    with pytest.warns(
        UserWarning,
        match=r"""left out: 'code' \(an identifier: 60 different values in 60 rows, such as 'id0'\); 'user_id' \(an """
        r"""identifier: whole.*'said' \(free text: .*such as 'I have 0 words to say'\); .*categorical_features""",
    ):
        schema = infer_schema(columns, [False] * 4)
    assert [column.kind for column in schema] == ["unusable", "unusable", "numeric", "unusable"]
    assert [column.constant for column in schema] == [True, True, False, True]
    assert schema_frame(schema)["kind"].tolist() == ["unusable", "unusable", "numeric", "unusable"]
    other = pd.DataFrame({"code": [1.5, 2.5], "user_id": ["x", None], "n": [0.25, 0.5], "said": [None, None]})
    np.testing.assert_array_equal(coded_columns(read_columns(other), schema).cells, [[0, 0, 0.25, 0], [0, 0, 0.5, 0]])
    assert schema_of([f"id{i}" for i in range(20)]).kind == "categorical"  # few rows may all differ
    assert [column.kind for column in infer_schema(columns, [True, True, True, True])] == ["categorical"] * 4


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("Unnamed: 0", np.arange(30)),
        ("no.", np.arange(1, 31)),
        *((name, np.random.default_rng(0).permutation(500)[:30]) for name in ("id", "ID", "user_id", "userId", "row")),
    ],
)
def test_numbers_of_rows_are_noticed(name: str, column: Any) -> None:
    with pytest.warns(UserWarning, match=rf"are left out: '{name}' \((row numbers|an identifier)"):
        schema = infer_schema(read_columns(pd.DataFrame({name: column})), [False])
    assert schema[0].kind == "unusable"


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("id", np.arange(10)),  # few rows
        ("id", [1, 1, *range(2, 30)]),  # twice the same
        ("id", np.arange(30) + 0.5),
        ("mass_index", np.arange(30) * 3),
        ("humid", np.arange(30) * 3),
        ("day", np.arange(30)),
        ("x0", np.arange(30)),
        ("size", np.arange(5, 35)),
    ],
)
def test_other_numbers_are_not(name: str, column: Any) -> None:
    infer_schema(read_columns(pd.DataFrame({name: column})), [False])  # a warning would raise


def test_rare_levels_of_many_are_joined() -> None:
    texts = [f"often {i}" for i in range(_MOST_LEVELS - 1)] * 4 + [f"rare {i}" for i in range(50)]
    with pytest.warns(UserWarning, match=r"more than 100 levels.*'a' \(50 of 149 levels joined as \(other\)\)"):
        schema = schema_of(texts)
    assert schema.levels is not None
    assert len(schema.levels) == _MOST_LEVELS
    assert schema.levels[-1] == OTHER
    cells = coded_columns(read_columns(pd.DataFrame({"a": ["rare 3", "often 5", "unheard of"]})), [schema]).cells
    assert cells[0, 0] == cells[2, 0] == _MOST_LEVELS - 1
    assert schema.levels[int(cells[1, 0])] == "often 5"


def test_unknown_levels_are_their_own_with_a_warning() -> None:
    schema = infer_schema(read_columns(pd.DataFrame({"a": list("abc"), "n": [1, 2, 3]})), [False, True])
    new = read_columns(pd.DataFrame({"a": ["c", "z", None], "n": [3.0, 9.0, 1.0]}))
    with pytest.warns(UserWarning, match=r"not in the training data: 'z' in column 'a', 9.0 in column 'n'"):
        cells = coded_columns(new, schema).cells
    np.testing.assert_array_equal(cells, [[2, 2], [-1, -1], [np.nan, 0]])


def test_a_text_among_known_numbers_is_an_unknown_level() -> None:
    schema = schema_of(["1", "2", "3"], categorical=True)
    assert schema.holds == "numbers"
    with pytest.warns(UserWarning, match=r"not in the training data: '4' in column 'a'"):
        cells = coded_columns(read_columns(pd.DataFrame({"a": ["3", "4", "x", "-", None, "1.0"]})), [schema]).cells
    np.testing.assert_array_equal(cells[:, 0], [2, -1, -1, np.nan, np.nan, 0])


@pytest.mark.parametrize(
    ("trained", "given", "message"),
    [
        ([1.0, 2.5, 3.0], ["1", "x", "2"], "X has text in column 'a', such as 'x', but the training data had numbers"),
        ([1.0, 2.5, 3.0], ["x", "y", "z"], "X has text in column 'a', such as 'x', but the training data had numbers"),
        (["x", "y", "z"], [1.0, 2.0, 3.0], "X has numbers in column 'a', but the training data had text"),
        (
            pd.to_datetime(["2020", "2021", "2022"]),
            [1.0, 2.0, 3.0],
            "X has numbers in column 'a', but the training data had dates",
        ),
        ([1.0, 2.5, 3.0], pd.to_datetime(["2020", "2021", "2022"]), "X has dates in column 'a'"),
    ],
)
def test_another_type_than_in_training_raises(trained: Any, given: Any, message: str) -> None:
    schema = schema_of(trained)
    with pytest.raises(ValueError, match=message):
        coded_columns(read_columns(pd.DataFrame({"a": given})), [schema])


@pytest.mark.parametrize("trained", [["x", "y", "z"], pd.to_datetime(["2020", "2021", "2022"]), [1.0, 2.5, 3.0]])
@pytest.mark.parametrize("dtype", [float, object, "M8[ns]", "str"])
def test_a_column_without_values_may_be_of_any_type(trained: Any, dtype: Any) -> None:
    """The column of text in a file is empty in the few rows to predict: pandas reads it as numbers."""
    empty = pd.DataFrame({"a": pd.Series([None, None], dtype=dtype)})
    cells = coded_columns(read_columns(empty), [schema_of(trained)]).cells
    assert np.isnan(cells).all()


def test_numbers_may_come_back_as_text_or_categories() -> None:
    schema = schema_of([1.5, 2.5, 3.5])
    for column in (["2.5", "?"], pd.Categorical([2.5, None]), ["2.5", None]):
        cells = coded_columns(read_columns(pd.DataFrame({"a": column})), [schema]).cells
        np.testing.assert_array_equal(cells[:, 0], [2.5, np.nan])


@pytest.mark.parametrize("given", [["b"], [1], [-2], [False, True, False]])
def test_categorical_features_by_name_index_or_mask(given: Any) -> None:
    assert named_columns(given, ["a", "b", "c"]) == [False, True, False]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["bb"], "column in categorical_features='bb' is not one of .*did you mean 'b'"),
        ([3], "categorical_features has index 3, but X has 3 columns"),
        ([True], "a mask of 1 columns, but X has 3"),
        ("b", "must be a sequence"),
        ([1.5], "1.5, which is not a column name or index"),
    ],
)
def test_bad_categorical_features_raise(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        named_columns(given, ["a", "b", "c"])


def test_text_of_numbers_is_numbers() -> None:
    frame = pd.DataFrame({"a": ["1.5", "?", "-2"], "b": ["1", "2", "x"], "c": ["1", " 2.5 ", "-"]})
    columns = read_columns(frame)
    with pytest.warns(UserWarning, match=r"X has numbers stored as text in 'a', 'c' \(except for '-', '\?'\): read"):
        schema = infer_schema(columns, [False] * 3)
    np.testing.assert_array_equal(
        coded_columns(columns, schema).cells[:, [0, 2]], [[1.5, 1], [np.nan, 2.5], [-2, np.nan]]
    )
    assert [column.missing for column in schema] == [1, 0, 1]
    assert schema[1].levels == ("1", "2", "x")
    with pytest.warns(UserWarning, match="X has numbers stored as text in 'a': read as numbers"):
        assert schema_of([str(i) for i in range(60)]).kind == "numeric"
    of_codes = schema_of(["1", "2", "3"], categorical=True)
    assert of_codes == schema_of([1, 2, 3], categorical=True)
    for given in (["3", "1", "-"], [3.0, 1.0, None]):
        cells = coded_columns(read_columns(pd.DataFrame({"a": given})), [of_codes]).cells
        np.testing.assert_array_equal(cells[:, 0], [2, 0, np.nan])
    assert schema_of(["1", "2", "x"], categorical=True).levels == ("1", "2", "x")
    assert schema_of(["01234", "94110", "10001"]).levels == ("01234", "10001", "94110")  # codes


def test_text_that_stands_for_missing_values_is_missing_unless_declared_a_category() -> None:
    with pytest.warns(UserWarning, match=r"is read as missing values: ' ', '\?', 'NA' in 'a'"):
        schema = schema_of(["x", "NA", "?", " ", "y", "-"])
    assert schema.levels == ("-", "x", "y")
    assert schema.missing == 3
    assert schema_of(pd.Categorical(["x", "NA", "?"])).levels == ("?", "NA", "x")


def test_levels_that_look_like_numbers_stay_levels_whatever_rows_are_asked_for() -> None:
    schema = schema_of(["1", "2", "x"])
    for texts, places in ((["1", "?"], [0, np.nan]), (["?"], [np.nan]), (["2", "x"], [1, 2])):
        cells = coded_columns(read_columns(pd.DataFrame({"a": texts})), [schema]).cells
        np.testing.assert_array_equal(cells[:, 0], places)


@pytest.mark.parametrize("text", ["1e300", "inf"])
def test_text_of_numbers_out_of_range_raises(text: str) -> None:
    columns = read_columns(pd.DataFrame({"a": ["1.5", "?", text]}))
    with pytest.warns(UserWarning, match="read as numbers"):
        schema = infer_schema(columns, [False])
    with pytest.raises(ValueError, match="row 2 of column 'a'"):
        coded_columns(columns, schema)


def test_the_schema_is_shown_as_a_frame() -> None:
    frame = pd.DataFrame({"n": [1.5, None, 2.0, 7.0], "t": list("abca"), "q": ["1.5", "?", "2.5", "3.5"]})
    with pytest.warns(UserWarning, match="read as numbers"):
        shown = schema_frame(infer_schema(read_columns(frame), [False] * 3))
    assert list(shown.index) == ["n", "t", "q"]
    assert list(shown["kind"]) == ["numeric", "categorical", "numeric"]
    assert shown.loc["t", "levels"] == ("a", "b", "c")
    assert list(shown["missing"]) == [1, 0, 1]
    assert shown.loc["q", "note"] == "text of numbers and '?'"


def test_center_and_spread_skip_missing_values(rng: np.random.Generator) -> None:
    values = rng.normal(3, 2, size=50)
    assert center_and_spread(values) == (values.mean(), values.std())
    values[::3] = np.nan
    np.testing.assert_allclose(center_and_spread(values), [np.nanmean(values), np.nanstd(values)])


@pytest.mark.parametrize("values", [[0.3, 0.1 + 0.2], [7.0, 7.0, np.nan], [np.nan]])
def test_values_that_differ_by_rounding_only_have_unit_spread(values: list[float]) -> None:
    assert center_and_spread(np.array(values))[1] == 1
