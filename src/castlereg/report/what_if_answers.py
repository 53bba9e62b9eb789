"""Answers of the what-if panel as people read them: for each value, and for the table."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from castlereg.digits import number
from castlereg.graph.drawing.svg import printable
from castlereg.report.effect_chart import Mark, effect_chart
from castlereg.report.what_if import Curve, SetColumn, WhatIfContent

NOT_KNOWN = "not known"


class Answers(NamedTuple):
    """What the panel says of one value."""

    caused: str
    associated: str
    predicted: str
    distribution: str  # empty for probabilities


def answers_at(curve: Curve, k: int) -> Answers:
    """Write what is caused by, associated with and predicted for a value."""

    def text(value: float | None) -> str:
        return "no such rows" if value is None else number(value, curve.decimals)

    caused = f"{text(curve.caused[k])} ({text(curve.low[k])} to {text(curve.high[k])})"
    distribution = ""
    if curve.quantiles:
        lowest, low, _, high, highest = map(text, curve.quantiles[k])
        distribution = f"half of the rows from {low} to {high}, nine in ten from {lowest} to {highest}"
    if not curve.is_known:
        caused, distribution = NOT_KNOWN, distribution and NOT_KNOWN
    return Answers(caused, text(curve.associated[k]), text(curve.predicted[k]), distribution)


def table_rows(column: SetColumn, curve: Curve) -> tuple[int, ...]:
    """Choose the two values for the table: the ends of numbers, the levels with the lowest and highest outcome."""
    if column.positions:
        return 0, len(column.positions) - 1
    outcomes = curve.caused if curve.is_known else [math.inf if v is None else v for v in curve.associated]
    order = sorted(range(len(outcomes)), key=outcomes.__getitem__)
    return order[0], order[-1]


def data_for_script(content: WhatIfContent) -> dict[str, Any]:
    """Return what the page's script needs: values, texts, and coordinates to move the marks to."""
    return {
        "columns": [
            {
                "values": [printable(text) for text in column.values],
                "curves": [
                    {
                        "texts": [answers_at(curve, k) for k in range(len(column.values))],
                        "marks": [_rounded(mark) for mark in effect_chart(column, curve, outcome).marks],
                    }
                    for curve, outcome in zip(column.curves, content.outcomes, strict=True)
                ],
            }
            for column in content.columns
        ]
    }


def _rounded(mark: Mark) -> list[float | None]:
    values = [mark.at, mark.caused, mark.associated, mark.predicted, *mark.quantiles]
    return [None if value is None else round(value, 1) for value in values]
