"""Scaling and ranges."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.tables.encoding import Scaling, check_range, class_channels, is_constant


def test_decode_undoes_encode(rng: np.random.Generator) -> None:
    columns = rng.normal(size=(50, 3)) * [1e-9, 1, 1e9] + [0, 5, -1e12]
    scaling = Scaling.fit(columns)
    encoded = scaling.encode(columns)
    np.testing.assert_allclose(encoded.std(axis=0), 1, rtol=1e-4)
    np.testing.assert_allclose(scaling.decode(encoded), columns, rtol=1e-12)


def test_rounding_noise_is_constant_and_small_spread_is_not() -> None:
    columns = np.array([[0.1 + 0.2, 1e9, 0.0], [0.3, 1e9 + 1, 0.0]])
    np.testing.assert_array_equal(is_constant(columns), [True, False, True])


def test_check_range_names_row_and_column() -> None:
    with pytest.raises(ValueError, match=r"X has -1e\+39 in row 1 of column 'b'"):
        check_range(np.array([[0.0, 0.0], [0.0, -1e39]]), ["a", "b"], "X")


def test_class_channels() -> None:
    np.testing.assert_array_equal(class_channels(np.array([0, 1]), 2), [[0], [1]])
    np.testing.assert_array_equal(class_channels(np.array([2, 0]), 3), [[0, 0, 1], [1, 0, 0]])
