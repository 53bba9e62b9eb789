"""Channels of every kind of column, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg.data.encoding import Encoder, Scaling
from castlereg.data.reading import read_columns
from castlereg.data.schema import coded_columns, infer_schema
from castlereg.layout import Node


def encoder_of(frame: pd.DataFrame, order: tuple[int, ...] | None = None, **options: Any) -> Encoder:
    columns = read_columns(frame)
    schema = infer_schema(columns, [False] * frame.shape[1])
    order = tuple(range(frame.shape[1])) if order is None else order
    return Encoder.fit(schema, coded_columns(columns, schema), order, **options)


def test_decode_undoes_encode(rng: np.random.Generator) -> None:
    columns = rng.normal(size=(50, 3)) * [1e-9, 1, 1e9] + [0, 5, -1e12]
    scaling = Scaling.fit(columns)
    encoded = scaling.encode(columns)
    np.testing.assert_allclose(encoded.std(axis=0), 1, rtol=1e-4)
    np.testing.assert_allclose(scaling.decode(encoded), columns, rtol=1e-12)


def test_scaling_skips_gaps(rng: np.random.Generator) -> None:
    columns = rng.normal(3, 2, size=(50, 2))
    columns[::3, 0] = np.nan
    scaling = Scaling.fit(columns)
    np.testing.assert_allclose(scaling.center, np.nanmean(columns, axis=0))
    np.testing.assert_allclose(scaling.spread, np.nanstd(columns, axis=0))


def test_every_kind_has_its_channels() -> None:
    frame = pd.DataFrame(
        {
            "number": [1.5, 2.5, None, 5.0],
            "two": ["no", "yes", "no", None],
            "level": ["a", None, "c", "b"],
            "whole": [2, 4, 6, 8],
        }
    )
    encoder = encoder_of(frame)
    assert encoder.nodes == (Node(gaps=True), Node("binary", gaps=True), Node("categorical", 3, gaps=True), Node())
    channels = encoder.encode(encoder.cells(read_columns(frame)))
    nan, spread = np.nan, np.std([1.5, 2.5, 5.0])
    np.testing.assert_allclose(channels[:, 0], (np.array([1.5, 2.5, nan, 5.0]) - 3) / spread)
    np.testing.assert_array_equal(channels[:, 1], [0, 0, 1, 0])
    np.testing.assert_array_equal(channels[:, 2:4], [[0, 0], [1, 0], [0, 0], [nan, 1]])
    np.testing.assert_array_equal(channels[:, 4:8], [[1, 0, 0, 0], [nan, nan, nan, 1], [0, 0, 1, 0], [0, 1, 0, 0]])
    np.testing.assert_allclose(channels[:, 8], np.array([-3, -1, 1, 3]) / np.sqrt(5))


def test_unknown_levels_and_new_gaps() -> None:
    ordered = pd.Categorical(["lo", "mid", "hi"], ["lo", "mid", "hi"], ordered=True)
    frame = pd.DataFrame({"two": ["x", "y", "x"], "level": ["a", "b", "c"], "size": ordered, "n": [1.5, 2.0, 7.0]})
    encoder = encoder_of(frame)
    other = pd.Categorical(["huge", None], ["huge"], ordered=True)
    new = read_columns(pd.DataFrame({"two": ["z", None], "level": ["q", None], "size": other, "n": [2.0, None]}))
    with pytest.warns(UserWarning, match="not there in training"):
        cells = encoder.cells(new)
    channels = encoder.encode(cells)
    assert np.isfinite(channels).all()
    np.testing.assert_array_equal(channels[:, 0], [0.5, 0.5])  # between the two
    np.testing.assert_array_equal(channels[:, 1:4], np.zeros((2, 3)))  # none of them
    np.testing.assert_array_equal(channels[:, 4], [0, 0])  # the mean
    assert channels[1, 5] == 0
    with pytest.warns(UserWarning, match="gaps in columns that had none in training: 1 in 'two', 1 in 'level'"):
        encoder.warn_of_new_gaps(cells)


def test_a_two_valued_number_goes_on_as_a_number() -> None:
    encoder = encoder_of(pd.DataFrame({"a": [3.0, 5.0, 3.0]}))
    np.testing.assert_array_equal(encoder.encode(np.array([[3.0], [5.0], [7.0]]))[:, 0], [0, 1, 2])


def test_nodes_stand_in_the_given_order() -> None:
    frame = pd.DataFrame({"n": [1.0, 2.5, 4.0], "t": ["a", "b", "c"]})
    turned = encoder_of(frame, (1, 0))
    straight = encoder_of(frame)
    cells = straight.cells(read_columns(frame))
    np.testing.assert_array_equal(turned.encode(cells), straight.encode(cells)[:, [1, 2, 3, 0]])


def test_only_numeric_columns_are_clipped() -> None:
    frame = pd.DataFrame({"n": [1.5, 2.5, 4.0], "whole": [1, 2, 3], "two": [0, 1, 0], "t": ["a", "b", "c"]})
    assert [node.clipped for node in encoder_of(frame, clipped=True).nodes] == [True, False, False, False]


def test_rows_beyond_the_cells_are_zero_whatever_the_columns() -> None:
    plain = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [5.0, 3.0, 1.0]})
    mixed = plain.assign(city=["Rome", "Oslo", "Lima"], gap=[1.0, None, 3.0])
    for frame in (plain, mixed):
        encoder = encoder_of(frame, tuple(range(frame.shape[1]))[::-1])
        cells = encoder.cells(read_columns(frame))
        padded = encoder.centred(cells, room=5)
        np.testing.assert_array_equal(padded[:3], encoder.centred(cells))
        np.testing.assert_array_equal(padded[3:], 0)
