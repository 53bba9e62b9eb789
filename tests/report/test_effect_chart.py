"""Coordinates of the what-if pictures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from castlereg.report.effect_chart import effect_chart
from castlereg.report.what_if_answers import NOT_KNOWN, answers_at, data_for_script, table_rows

from .handmade import handmade_what_if

PANEL = handmade_what_if(tuple("abcdef"))
NUMBERS, LEVELS, UNKNOWN = PANEL.columns


@pytest.mark.parametrize("column", PANEL.columns)
@pytest.mark.parametrize("outcome", [0, 1])
def test_everything_lies_within_the_frame(column: object, outcome: int) -> None:
    chart = effect_chart(column, column.curves[outcome], PANEL.outcomes[outcome])  # type: ignore[attr-defined,arg-type]
    frame = chart.frame
    bounds = (frame.left, frame.right) if chart.is_levels else (frame.top, frame.bottom)
    for mark in chart.marks:
        for at in (mark.caused, mark.associated, mark.predicted, mark.low, mark.high, *mark.quantiles):
            assert at is None or bounds[0] <= at <= bounds[1]
    assert bounds[0] <= chart.now <= bounds[1]


def test_numbers_go_right_and_their_outcomes_up() -> None:
    chart = effect_chart(NUMBERS, NUMBERS.curves[0], PANEL.outcomes[0])
    first, *_, last = chart.marks
    assert first.at < last.at and first.caused is not None and last.caused is not None and first.caused > last.caused
    assert chart.band and chart.outer and chart.inner and chart.caused and len(chart.associated) == 1
    assert chart.associated[0].count(",") == len(NUMBERS.values) - 1  # no row has the first value


def test_levels_are_rows_with_short_names() -> None:
    column = replace(LEVELS, values=("x" * 50, *LEVELS.values[1:]))
    chart = effect_chart(column, column.curves[0], PANEL.outcomes[0])
    assert chart.is_levels and len(chart.value_ticks) == len(column.values)
    assert chart.value_ticks[0].label == "x" * 16 + "…"


def test_an_unknown_direction_has_no_line_and_no_number() -> None:
    curve = UNKNOWN.curves[0]
    chart = effect_chart(UNKNOWN, curve, PANEL.outcomes[0])
    assert not chart.caused and not chart.outer and all(mark.caused is None for mark in chart.marks)
    answers = answers_at(curve, 1)
    assert answers.caused == answers.distribution == NOT_KNOWN
    assert (answers.associated, answers.predicted) == ("4.00", "3.00")


def test_answers_are_written_with_their_band() -> None:
    answers = answers_at(NUMBERS.curves[0], 0)
    assert answers == (
        "1.00 (0.50 to 1.50)",
        "no such rows",
        "1.50",
        "50% of the rows from 0.00 to 2.00, 90% from \N{MINUS SIGN}2.00 to 4.00",
    )
    assert answers_at(NUMBERS.curves[1], 0).distribution == ""


def test_the_table_has_the_ends_and_the_extreme_levels() -> None:
    assert table_rows(NUMBERS, NUMBERS.curves[0]) == (0, 9)
    curve = replace(LEVELS.curves[0], caused=(3.0, 1.0, 9.0, 4.0, 5.0, 6.0))
    assert table_rows(LEVELS, curve) == (1, 2)


def test_the_script_has_a_text_and_marks_for_every_value() -> None:
    for column, data in zip(PANEL.columns, data_for_script(PANEL)["columns"], strict=True):
        assert data["values"] == list(column.values)
        for curve in data["curves"]:
            assert len(curve["texts"]) == len(curve["marks"]) == len(column.values)
