"""Axes and coordinates of the charts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from castlereg.evaluation import Interval
from castlereg.report.page import (
    _Axis,
    _Chart,
    _curve_chart,
    _effect_chart,
    _lines,
    _scatter_chart,
    _score_axis,
    _value_ticks,
)
from castlereg.report.what_if import SetColumn

from .handmade import handmade_what_if

PANEL = handmade_what_if(tuple("abcdef"))
NUMBERS, LEVELS, UNKNOWN = PANEL.columns


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.2, 8.1), (1e-7, 4e-7), (1e6, 1.1e6), (5, 5.001)])
def test_ticks_are_evenly_spaced_within_the_bounds(low: float, high: float) -> None:
    axis = _Axis(low, high, 0.0, 1000.0)
    at = [tick.at for tick in axis.ticks()]
    assert 2 <= len(at) <= 7 and 0 <= at[0] < at[-1] <= 1000  # type: ignore[operator]
    steps = np.diff(np.array(at, float))
    assert steps == pytest.approx(steps[0], abs=0.2)


def test_coordinates_are_proportional_or_logarithmic_and_gaps_interrupt_a_line() -> None:
    assert (_Axis(0.0, 10.0, 100.0, 300.0)(2.5), _Axis(1.0, 100.0, 0.0, 50.0, is_log=True)(10.0)) == (150.0, 25.0)
    chart = _Chart(1, 1, _Axis(0, 1, 0, 10), _Axis(0, 1, 10, 0))
    assert _lines(chart, [0, 0.5, 1], [0.5, None, 1]) == ["0.0,5.0", "10.0,0.0"]


def test_labels_are_round() -> None:
    assert [tick.label for tick in _Axis(0.13, 0.92, 0.0, 1.0).ticks()] == ["0.2", "0.4", "0.6", "0.8"]
    assert [tick.label for tick in _Axis(30.0, 250.0, 0.0, 1.0, is_log=True).ticks()] == ["50", "100", "200"]


def test_many_powers_of_ten_have_a_few_labels() -> None:
    labels = [tick.label for tick in _Axis(0.5, 2e9, 0.0, 1.0, is_log=True).ticks()]
    assert labels == ["1", "100", "10,000", "1e+06", "1e+08"]


def test_equal_values_lie_on_the_diagonal_of_the_scatter() -> None:
    chart = _scatter_chart([(1.0, 1.0), (4.0, 4.0), (2.0, 3.0)])
    x, y = chart.x, chart.y
    for value in (1.0, 4.0):
        across, up = x(value), y(value)
        assert across is not None and up is not None
        assert (across - x.start) / (x.end - x.start) == pytest.approx((up - y.start) / (y.end - y.start), abs=1e-3)


def test_values_that_differ_much_have_a_logarithmic_axis() -> None:
    line = ((1.0, 2.0, 3.0), (1000.0, 100.0, 10.0))
    chart = _curve_chart([line])
    assert chart.y.is_log
    heights = [float(point.split(",")[1]) for point in _lines(chart, *line)[0].split()]
    assert heights[1] - heights[0] == pytest.approx(heights[2] - heights[1], abs=0.2)
    assert not _curve_chart([((1.0, 2.0), (0.5, 0.4))]).y.is_log


def test_scores_are_in_order_on_their_axis() -> None:
    axis = _score_axis([Interval(0.5, 0.4, 0.6), Interval(1.0, 0.9, 1.2)])
    at = [axis(value) for value in (0.4, 0.5, 0.6, 0.9, 1.0, 1.2)]
    assert at == sorted(at) and at[0] > 12 and at[-1] < 228  # type: ignore[type-var,operator]


@pytest.mark.parametrize("column", PANEL.columns)
@pytest.mark.parametrize("outcome", [0, 1])
def test_everything_lies_within_the_frame(column: SetColumn, outcome: int) -> None:
    curve = column.curves[outcome]
    chart, effect = _effect_chart(column, curve, PANEL.outcomes[outcome]), curve.effect
    axis = chart.x if column.is_levels else chart.y
    shown = [*effect.answer.low, *effect.answer.high, *effect.associated, *curve.predicted, PANEL.outcomes[outcome].now]
    for value in [*shown, *(effect.quantiles.ravel() if curve.effect.direction.is_known else ())]:
        at = axis(float(value))
        assert at is None or min(axis.start, axis.end) <= at <= max(axis.start, axis.end)


def test_numbers_go_right_and_their_outcomes_up() -> None:
    curve = NUMBERS.curves[0]
    chart = _effect_chart(NUMBERS, curve, PANEL.outcomes[0])
    (caused,) = _lines(chart, NUMBERS.positions, curve.effect.estimate.tolist())
    points = [tuple(map(float, point.split(","))) for point in caused.split()]
    assert points == sorted(points) and points[0][1] > points[-1][1]
    (associated,) = _lines(chart, NUMBERS.positions, curve.effect.associated.tolist())
    assert associated.count(",") == len(NUMBERS.values) - 1  # no row has the first value


def test_levels_are_rows_with_short_names() -> None:
    column = replace(LEVELS, values=("x" * 50, *LEVELS.values[1:]))
    ticks = _value_ticks(column, _effect_chart(column, column.curves[0], PANEL.outcomes[0]))
    assert len(ticks) == len(column.values) and ticks[0].label == "xxxxxxxx…xxxxxxxx"
    assert np.diff([tick.at for tick in ticks]).tolist() == [40.0] * 5  # type: ignore[arg-type]
