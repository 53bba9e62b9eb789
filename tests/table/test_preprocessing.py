"""Channels of every kind of column, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg.layout import Node
from castlereg.table.preprocessing import Channel, Preprocessing
from castlereg.table.reading import read_columns
from castlereg.table.rows import Rows
from castlereg.table.targets import NumericTarget


def fitted(frame: pd.DataFrame, **options: Any) -> Preprocessing:
    rows = Rows(read_columns(frame), (np.arange(len(frame), dtype=float),))
    categorical = [False] * frame.shape[1]
    return Preprocessing.fit(
        rows, None, lambda rows: (NumericTarget.fit(rows.targets[0], "y"),), categorical=categorical, **options
    )[0]


def in_users_order(preprocessing: Preprocessing) -> Preprocessing:
    """The same preprocessing with a node for each column in the user's order."""
    place = np.argsort(preprocessing.order)
    nodes = tuple(preprocessing.nodes[k] for k in place)
    center, spread = preprocessing.center[place], preprocessing.spread[place]
    return replace(preprocessing, order=tuple(range(len(place))), nodes=nodes, center=center, spread=spread)


def test_every_kind_has_its_channels() -> None:
    frame = pd.DataFrame(
        {
            "number": [1.5, 2.5, None, 5.0],
            "two": ["no", "yes", "no", None],
            "level": ["a", None, "c", "b"],
            "whole": [2, 4, 6, 8],
        }
    )
    preprocessing = in_users_order(fitted(frame))
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
    preprocessing = in_users_order(fitted(frame))
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


def test_nodes_stand_in_their_own_order() -> None:
    frame = pd.DataFrame({"n": [1.0, 2.5, 4.0], "t": ["a", "b", "c"]})
    turned = fitted(frame)
    assert turned.order == (1, 0)
    np.testing.assert_array_equal(turned.node_order(), [1, 0, 2])
    straight = in_users_order(turned)
    cells = straight.cells(read_columns(frame))
    np.testing.assert_array_equal(turned.encode(cells), straight.encode(cells)[:, [1, 2, 3, 0]])


def test_only_numeric_columns_are_clipped() -> None:
    frame = pd.DataFrame({"n": [1.5, 2.5, 4.0], "whole": [1, 2, 3], "two": [0, 1, 0], "t": ["a", "b", "c"]})
    assert [node.clipped for node in in_users_order(fitted(frame, clipped=True)).nodes] == [True, False, False, False]


def test_neither_units_nor_offsets_cost_digits(rng: np.random.Generator) -> None:
    columns = rng.normal(size=(50, 3)) * [1e-9, 1, 1e9] + [0, 5, -1e12]
    preprocessing = in_users_order(fitted(pd.DataFrame(columns)))
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
    padded = preprocessing.encode(cells, room=5)
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


def test_fitted_rows_are_coded_and_in_their_own_order() -> None:
    frame = pd.DataFrame({"city": ["Rome", "Oslo", "Lima", "Rome"], "n": [4.5, 3.5, 2.5, 1.5]})
    rows = Rows(read_columns(frame), (np.array([3.0, 1.0, 2.0, 0.0]),))
    preprocessing, (coded,) = Preprocessing.fit(
        rows, None, lambda rows: (NumericTarget.fit(rows.targets[0], "y"),), categorical=[False, False]
    )
    np.testing.assert_array_equal(coded.index, [3, 1, 2, 0])
    np.testing.assert_array_equal(coded.columns.cells, [[2, 1.5], [1, 3.5], [0, 2.5], [2, 4.5]])
    assert coded.columns.types[0].levels == ("Lima", "Oslo", "Rome")
    table = preprocessing.table(coded)
    assert table.layout is preprocessing.layout
    np.testing.assert_allclose(table.inputs[:, :4], preprocessing.encode(coded.columns.cells), rtol=1e-6)
    np.testing.assert_allclose(table.inputs[:, 4], (np.arange(4) - 1.5) / np.std(np.arange(4)), rtol=1e-6)
    np.testing.assert_array_equal(preprocessing.table(preprocessing.coded(rows)).inputs, table.inputs[[3, 1, 2, 0]])
