"""Coordinates of the what-if charts: caused, associated and predicted outcomes over the values of a column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from castlereg.report.charts import Frame, Point, Scale, Tick, marks_at, scale_between, ticks, widened
from castlereg.report.what_if import Curve, Outcome, SetColumn

_ROW = 40.0  # height of a level
_LABEL_LENGTH = 17  # characters of a level next to its row


class Mark(NamedTuple):
    """Marks at one value: its coordinate and the coordinates of the outcome; None if nothing is drawn."""

    at: float
    caused: float | None
    associated: float | None
    predicted: float
    low: float
    high: float
    quantiles: tuple[float, ...]


@dataclass(frozen=True)
class EffectChart:
    """Marks for every value; lines and areas only for numeric columns, as points of polylines and polygons.

    Values of numeric columns increase to the right, outcomes upwards. Levels are listed downwards, and outcomes
    increase to the right.
    """

    frame: Frame
    is_levels: bool
    value_ticks: tuple[Tick, ...]
    outcome_ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    now: float
    caused: str = ""
    band: str = ""
    associated: tuple[str, ...] = ()  # interrupted where there are no rows
    predicted: str = ""
    outer: str = ""  # area between the outermost quantiles
    inner: str = ""  # area between the quartiles


def effect_chart(column: SetColumn, curve: Curve, outcome: Outcome) -> EffectChart:
    """Draw an outcome over the values of a column; the caused outcome has no line if the direction is not known."""
    low, high = _bounds(curve, outcome)
    if not column.positions:
        frame = Frame(440, _ROW * len(column.values) + 36, 128, 8, 430, _ROW * len(column.values) + 8)
        across = scale_between(low, high, frame.left, frame.right)
        rows = [frame.top + _ROW * (k + 0.5) for k in range(len(column.values))]
        labels = tuple(Tick(at, shortened(text, _LABEL_LENGTH)) for at, text in zip(rows, column.values, strict=True))
        marks = _marks(curve, rows, across)
        return EffectChart(frame, True, labels, marks_at(ticks(low, high, 4), across), marks, across(outcome.now))
    frame = Frame(440, 274, left=56, top=10, right=428, bottom=246)
    along = scale_between(column.positions[0], column.positions[-1], frame.left + 6, frame.right - 6)
    up = scale_between(low, high, frame.bottom, frame.top)
    at = [along(position) for position in column.positions]
    marks = _marks(curve, at, up)
    spread = [mark.quantiles for mark in marks if mark.quantiles]
    return EffectChart(
        frame,
        False,
        _value_ticks(column, at, along),
        marks_at(ticks(low, high), up),
        marks,
        up(outcome.now),
        caused=_points(at, [mark.caused for mark in marks])[0] if curve.is_known else "",
        band=_area(at, [mark.low for mark in marks], [mark.high for mark in marks]),
        associated=_points(at, [mark.associated for mark in marks]),
        predicted=_points(at, [mark.predicted for mark in marks])[0],
        outer=_area(at, [q[0] for q in spread], [q[-1] for q in spread]) if spread else "",
        inner=_area(at, [q[1] for q in spread], [q[-2] for q in spread]) if spread else "",
    )


def shortened(text: str, most: int) -> str:
    """Shorten a text that is longer than ``most`` characters.

    >>> shortened("a rather long level", 10)
    'a rather …'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def _bounds(curve: Curve, outcome: Outcome) -> Point:
    values = [*curve.low, *curve.high, *curve.predicted, outcome.now]
    values += [value for value in curve.associated if value is not None]
    if curve.is_known:
        values += [*curve.caused, *(value for quantiles in curve.quantiles for value in quantiles)]
    low, high = widened(min(values), max(values))
    return (max(low, -0.01), min(high, 1.01)) if outcome.is_probability else (low, high)


def _marks(curve: Curve, at: Sequence[float], scale: Scale) -> tuple[Mark, ...]:
    return tuple(
        Mark(
            at[k],
            scale(curve.caused[k]) if curve.is_known else None,
            None if (associated := curve.associated[k]) is None else scale(associated),
            scale(curve.predicted[k]),
            scale(curve.low[k]),
            scale(curve.high[k]),
            tuple(map(scale, curve.quantiles[k])) if curve.is_known and curve.quantiles else (),
        )
        for k in range(len(at))
    )


def _value_ticks(column: SetColumn, at: Sequence[float], along: Scale) -> tuple[Tick, ...]:
    """Label round numbers; label dates and a few distinct numbers at their values."""
    round_numbers = ticks(column.positions[0], column.positions[-1])
    is_plain = all(any(c.isdigit() for c in text) and " " not in text and "-" not in text for text in column.values)
    if is_plain and len(at) > 6:
        return marks_at(round_numbers, along)
    chosen = range(0, len(at), max(1, (len(at) - 1) // 3 if not is_plain else 1))
    return tuple(Tick(at[k], column.values[k]) for k in chosen)


def _points(at: Iterable[float], values: Iterable[float | None]) -> tuple[str, ...]:
    """Return the points of a line, interrupted at missing values."""
    lines: list[list[str]] = [[]]
    for x, y in zip(at, values, strict=True):
        if y is None:
            lines.append([])
        else:
            lines[-1].append(f"{x:.1f},{y:.1f}")
    return tuple(" ".join(line) for line in lines if line)


def _area(at: Sequence[float], low: Sequence[float], high: Sequence[float]) -> str:
    return " ".join(_points([*at, *reversed(at)], [*low, *reversed(high)]))
