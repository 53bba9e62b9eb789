"""Texts of the what-if panel: the answers for each value, and the rows of its table."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from castlereg.causal.graph.drawing.svg import printable
from castlereg.digits import number
from castlereg.report.effect_chart import Mark, effect_chart
from castlereg.report.what_if import Curve, SetColumn, WhatIfContent

NOT_KNOWN = "not known"


class Answers(NamedTuple):
    """Texts that the panel shows for one value."""

    caused: str
    associated: str
    predicted: str
    distribution: str  # empty for probabilities


def answers_at(curve: Curve, k: int) -> Answers:
    """Format the caused, associated and predicted outcome for a value."""

    def text(value: float | None) -> str:
        return "no such rows" if value is None else number(value, curve.decimals)

    caused = f"{text(curve.caused[k])} ({text(curve.low[k])} to {text(curve.high[k])})"
    distribution = ""
    if curve.quantiles:
        lowest, low, _, high, highest = map(text, curve.quantiles[k])
        distribution = f"50% of the rows from {low} to {high}, 90% from {lowest} to {highest}"
    if not curve.is_known:
        caused, distribution = NOT_KNOWN, distribution and NOT_KNOWN
    return Answers(caused, text(curve.associated[k]), text(curve.predicted[k]), distribution)


def table_rows(column: SetColumn, curve: Curve) -> tuple[int, ...]:
    """Choose two values for the table: the ends of a range, or the levels with the lowest and highest outcome."""
    if column.positions:
        return 0, len(column.positions) - 1
    outcomes = curve.caused if curve.is_known else [math.inf if v is None else v for v in curve.associated]
    order = sorted(range(len(outcomes)), key=outcomes.__getitem__)
    return order[0], order[-1]


def data_for_script(content: WhatIfContent) -> dict[str, Any]:
    """Return the data of the page's script: values, texts and coordinates of the marks."""
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
