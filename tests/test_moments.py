"""Moments of parts are those of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.moments import MOST_AT_ONCE, Moments, blocks


@pytest.mark.parametrize("has_gaps", [False, True])
def test_moments_of_parts_are_those_of_the_whole(rng: np.random.Generator, has_gaps: bool) -> None:
    rows, weight = rng.normal(1e8, 1.0, (500, 3)), rng.random(500)
    if has_gaps:
        rows[rng.random(rows.shape) < 0.2] = np.nan
        rows[:, 2] = np.nan  # no cell at all
        rows[:100, 1] = np.nan  # none in the first part
    parts = [Moments.of(rows[part], weight[part], has_gaps) for part in blocks(500, 100)]
    joined, whole = Moments.joined(parts), Moments.of(rows, weight, has_gaps)
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
