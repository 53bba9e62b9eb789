"""Moments, and standardization of missing values, indicators, levels and clipped columns, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.preprocessing import RobustScaler

from castlereg.layout import Layout, Node
from castlereg.table.table import (
    MOST_AT_ONCE,
    Moments,
    Standardization,
    Table,
    blocks,
    center_and_spread,
    measure,
    smooth_clip,
    standardize,
)

GAPS = Layout((Node(missing=True), Node("categorical", 3, missing=True), Node("binary"), Node(target=True)))


def gaps_table(rng: np.random.Generator, weight: np.ndarray | None = None) -> Table:
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
    return Table(rows.astype(np.float32), GAPS, weight)


def measured(table: Table, rows: np.ndarray) -> Standardization:
    by, _ = measure(table, [rows])
    return by.of_member(0)


def test_values_are_standardized_by_the_cells_that_are_there(rng: np.random.Generator) -> None:
    table, rows = gaps_table(rng), np.arange(150)
    x = standardize(table.inputs[rows], measured(table, rows), GAPS)
    assert np.nanmean(x[:, 0]) == pytest.approx(0, abs=1e-5)
    assert np.nanstd(x[:, 0]) == pytest.approx(1, rel=1e-5)
    assert np.nanvar(x[:, 2:5], axis=0).sum() == pytest.approx(1, rel=1e-5)
    np.testing.assert_array_equal(np.isnan(x[:, 0]), np.isnan(table.inputs[rows, 0]))
    for flag in (1, 5):  # centred, in steps of one
        assert x[:, flag].mean() == pytest.approx(0, abs=1e-6)
        assert np.ptp(x[:, flag]) == pytest.approx(1)


def test_losses_are_in_units_of_the_base_rates(rng: np.random.Generator) -> None:
    table, rows = gaps_table(rng), np.arange(150)
    null_loss = measured(table, rows).null_loss
    assert null_loss is not None
    levels = np.nanmean(table.inputs[rows, 2:5], axis=0)
    share = table.inputs[rows, 6].mean()
    np.testing.assert_allclose(null_loss, [1, entropy(levels), entropy([share, 1 - share]), 1], rtol=1e-5)


def test_weights_are_copies(rng: np.random.Generator) -> None:
    weight = rng.integers(1, 4, 200).astype(np.float32)
    weighted, plain = gaps_table(np.random.default_rng(1), weight), gaps_table(np.random.default_rng(1))
    by_weight = measured(weighted, np.arange(200))
    by_copies = measured(plain, np.repeat(np.arange(200), weight.astype(int)))
    for one, other in zip(by_weight, by_copies, strict=True):
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_a_level_that_training_rows_lack_has_no_influence(rng: np.random.Generator) -> None:
    layout = Layout((Node("categorical", 3), Node(target=True)))
    levels = np.array([0, 1, 0, 1, 2])
    table = Table(np.column_stack([np.eye(3)[levels], rng.normal(size=5)]).astype(np.float32), layout)
    by = measured(table, np.arange(4))
    assert by.scale[2] == 0
    np.testing.assert_allclose(by.scale[:2], 1 / np.sqrt(0.5))


def test_clipped_columns_are_scaled_by_quartiles(rng: np.random.Generator) -> None:
    layout = Layout((Node(clipped=True), Node(), Node(target=True)))
    rows = rng.normal(size=(400, 3)).astype(np.float32)
    rows[:5, 0] = 1e6
    by = measured(Table(rows, layout), np.arange(400))
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
    x = standardize(rows, measured(Table(rows, layout), np.arange(100)), layout)
    assert np.isfinite(x).all()
    assert x[:, 0].std() == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("has_missing", [False, True])
def test_moments_of_parts_are_those_of_the_whole(rng: np.random.Generator, has_missing: bool) -> None:
    rows, weight = rng.normal(1e8, 1.0, (500, 3)), rng.random(500)
    if has_missing:
        rows[rng.random(rows.shape) < 0.2] = np.nan
        rows[:, 2] = np.nan  # no cell at all
        rows[:100, 1] = np.nan  # none in the first part
    parts = [Moments.of(rows[part], weight[part], has_missing) for part in blocks(500, 100)]
    joined, whole = Moments.joined(parts), Moments.of(rows, weight, has_missing)
    np.testing.assert_allclose(joined.total, whole.total)
    np.testing.assert_allclose(joined.mean, whole.mean, rtol=1e-14)
    np.testing.assert_allclose(joined.variance, whole.variance, rtol=1e-6)  # of numbers with eight equal digits
    present = ~np.isnan(rows[:, 0])
    known = np.cov(rows[present, 0], aweights=weight[present], ddof=0)
    np.testing.assert_allclose(joined.variance[0], known, rtol=1e-6)


def test_short_tables_are_one_block_and_long_ones_are_covered() -> None:
    assert list(blocks(MOST_AT_ONCE)) == [slice(0, MOST_AT_ONCE)]
    long = list(blocks(MOST_AT_ONCE + 1))
    assert len(long) > 1 and sum(b.stop - b.start for b in long) == MOST_AT_ONCE + 1


def test_center_and_spread_skip_missing_values(rng: np.random.Generator) -> None:
    values = rng.normal(3, 2, size=50)
    assert center_and_spread(values) == (values.mean(), values.std())
    values[::3] = np.nan
    np.testing.assert_allclose(center_and_spread(values), [np.nanmean(values), np.nanstd(values)])


@pytest.mark.parametrize("values", [[0.3, 0.1 + 0.2], [7.0, 7.0, np.nan], [np.nan]])
def test_values_that_differ_by_rounding_only_have_unit_spread(values: list[float]) -> None:
    assert center_and_spread(np.array(values))[1] == 1
