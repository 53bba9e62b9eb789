"""Coordinates of the dots, lines and ticks of the small charts; the template only formats them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from castlereg.report.scores import Measure
from castlereg.report.training_curves import Curves

Point = tuple[float, float]
Scale = Callable[[float], float]
_LOG_FROM = 5.0  # values that differ by more than this factor need a logarithmic axis


class Tick(NamedTuple):
    """A mark on an axis: its coordinate and its label."""

    at: float
    label: str


class Frame(NamedTuple):
    """Size of a chart and the box of its data, relative to the top left corner."""

    width: float
    height: float
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class Chart:
    """Dots and, for curves, a light line per network and a strong mean line; lines are points of SVG polylines."""

    frame: Frame
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    dots: tuple[Point, ...]
    members: tuple[str, ...] = ()
    mean: str = ""
    is_log: bool = False


class WhiskerChart(NamedTuple):
    """A dot with its interval for each method, on one axis."""

    width: float
    rows: tuple[tuple[float, float, float], ...]
    ticks: tuple[Tick, ...]


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Choose about ``count`` round numbers between two bounds.

    >>> ticks(0.13, 0.92)
    [0.2, 0.4, 0.6, 0.8]
    >>> ticks(25, 346)
    [100.0, 200.0, 300.0]
    """
    if not high > low:
        return [low]
    raw = (high - low) / count
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def log_ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Choose 1, 2 and 5 times powers of ten between two positive bounds, or only powers if these exceed ``count``.

    >>> log_ticks(30, 250)
    [50.0, 100.0, 200.0]
    >>> log_ticks(0.5, 2e9)
    [1.0, 100.0, 10000.0, 1000000.0, 100000000.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [mark for k in powers for factor in (1, 2, 5) if low <= (mark := float(f"{factor}e{k}")) <= high]
    if len(marks) <= count:
        return marks
    tens = [10.0**k for k in powers if low <= 10.0**k <= high]
    return tens[:: math.ceil(len(tens) / count)] or marks[::2]


def scatter_chart(points: Sequence[Point]) -> Chart:
    """Draw points (true, predicted) on two equal axes; perfect predictions lie on the diagonal."""
    frame = Frame(360, 330, left=52, top=10, right=350, bottom=286)
    low, high = widened(min(map(min, points)), max(map(max, points)))
    x = scale_between(low, high, frame.left, frame.right)
    y = scale_between(low, high, frame.bottom, frame.top)
    marks, dots = ticks(low, high), tuple((x(true), y(predicted)) for true, predicted in points)
    return Chart(frame, marks_at(marks, x), marks_at(marks, y), dots)


def curve_chart(curves: Curves) -> Chart:
    """Draw the training curves, on a logarithmic axis if the values span a large range."""
    frame = Frame(420, 240, left=52, top=10, right=410, bottom=200)
    epochs, values = zip(*(point for line in curves.members for point in line), strict=True)
    is_log = min(values) > 0 and max(values) / min(values) > _LOG_FROM
    if is_log:
        low, high = widened(math.log10(min(values)), math.log10(max(values)))
        marks = log_ticks(10**low, 10**high)
    else:
        low, high = widened(min(values), max(values))
        marks = ticks(low, high, 4)
    linear = scale_between(low, high, frame.bottom, frame.top)
    first, last = min(epochs), max(epochs)
    x = scale_between(first, max(last, first + 1), frame.left, frame.right)

    def y(value: float) -> float:
        return linear(math.log10(value) if is_log else value)

    def polyline(points: Sequence[Point]) -> str:
        return " ".join(f"{x(epoch):.1f},{y(value):.1f}" for epoch, value in points)

    return Chart(
        frame,
        marks_at([epoch for epoch in ticks(first, last) if epoch == int(epoch)], x),
        marks_at(marks, y),
        tuple((x(epoch), y(value)) for epoch, value in curves.best),
        tuple(map(polyline, curves.members)),
        polyline(curves.mean),
        is_log,
    )


def whisker_chart(measure: Measure) -> WhiskerChart:
    """Draw the scores of all methods on one axis."""
    low, high = widened(min(s.low for s in measure.scores), max(s.high for s in measure.scores))
    width = 240.0
    x = scale_between(low, high, 12, width - 12)
    rows = tuple((x(s.low), x(s.value), x(s.high)) for s in measure.scores)
    return WhiskerChart(width, rows, marks_at(ticks(low, high, 6), x))


def widened(low: float, high: float) -> Point:
    """Add a margin on both sides."""
    margin = 0.04 * (high - low) or 0.5 * abs(low) or 1.0
    return low - margin, high + margin


def scale_between(low: float, high: float, start: float, end: float) -> Scale:
    """Return the linear function that maps low to start and high to end."""
    return lambda value: start + (value - low) / (high - low) * (end - start)


def marks_at(values: Sequence[float], scale: Scale) -> tuple[Tick, ...]:
    """Label numbers at their coordinates."""
    return tuple(Tick(scale(value), f"{value:,.6g}".replace("-", "\N{MINUS SIGN}")) for value in values)
