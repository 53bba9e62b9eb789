"""Axes and coordinates of the small charts."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.digits import Interval
from castlereg.report.charts import curve_chart, scatter_chart, ticks, whisker_chart
from castlereg.report.scores import Measure
from castlereg.report.training_curves import Curves


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.2, 8.1), (1e-7, 4e-7), (1e6, 1.1e6), (5, 5.001)])
def test_ticks_are_evenly_spaced_within_the_bounds(low: float, high: float) -> None:
    marks = ticks(low, high)
    assert 2 <= len(marks) <= 7
    assert low - 1e-9 * abs(low) <= marks[0] and marks[-1] <= high * (1 + 1e-9)
    assert np.diff(marks) == pytest.approx(marks[1] - marks[0], rel=1e-6)


def test_equal_values_lie_on_the_diagonal_of_the_scatter() -> None:
    chart = scatter_chart([(1.0, 1.0), (4.0, 4.0), (2.0, 3.0)])
    frame = chart.frame
    for x, y in chart.dots[:2]:
        across = (x - frame.left) / (frame.right - frame.left)
        assert (frame.bottom - y) / (frame.bottom - frame.top) == pytest.approx(across)
    x, y = chart.dots[2]
    assert (frame.bottom - y) / (frame.bottom - frame.top) > (x - frame.left) / (frame.right - frame.left)


def test_values_that_differ_much_have_a_logarithmic_axis() -> None:
    points = ((1.0, 1000.0), (2.0, 100.0), (3.0, 10.0))
    chart = curve_chart(Curves("objective", "", (points,), points, points[2:]))
    assert chart.is_log
    heights = [float(point.split(",")[1]) for point in chart.mean.split()]
    assert heights[1] - heights[0] == pytest.approx(heights[2] - heights[1], abs=0.2)
    assert not curve_chart(Curves("loss", "", (((1.0, 0.5), (2.0, 0.4)),), (), ())).is_log


def test_whiskers_are_in_order_and_in_the_chart() -> None:
    scores = (Interval(0.5, 0.4, 0.6), Interval(1.0, 0.9, 1.2))
    chart = whisker_chart(Measure("Error", "", True, 2, scores))
    for low, value, high in chart.rows:
        assert 0 < low < value < high < chart.width
    assert chart.rows[0][1] < chart.rows[1][1]
