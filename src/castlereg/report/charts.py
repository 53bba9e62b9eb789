"""Coordinates of the dots, lines and ticks of the small charts; the template only writes them down."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from castlereg.report.scores import Measure
from castlereg.report.training_curves import Curves

Point = tuple[float, float]
_LOG_FROM = 5.0  # values that differ by more than this factor need a logarithmic axis


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: its coordinate and its label."""

    at: float
    label: str


@dataclass(frozen=True)
class Frame:
    """Size of a chart, and the box of its data, from the top left corner."""

    width: float
    height: float
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class ScatterChart:
    """Predicted against true values; a perfect prediction lies on the diagonal."""

    frame: Frame
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    dots: tuple[Point, ...]


@dataclass(frozen=True)
class CurveChart:
    """Curves over epochs: light lines, a strong one, and dots; lines are the points of SVG polylines."""

    frame: Frame
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    members: tuple[str, ...]
    mean: str
    best: tuple[Point, ...]
    is_log: bool


@dataclass(frozen=True)
class WhiskerChart:
    """A dot with its interval for each method, on one axis."""

    width: float
    rows: tuple[tuple[float, float, float], ...]
    ticks: tuple[Tick, ...]


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Choose about ``count`` round numbers between two bounds.

    Examples
    --------
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

    Examples
    --------
    >>> log_ticks(30, 250)
    [50.0, 100.0, 200.0]
    >>> log_ticks(0.5, 2e9)
    [1.0, 100.0, 10000.0, 1000000.0, 100000000.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [float(f"{factor}e{k}") for k in powers for factor in (1, 2, 5) if low <= float(f"{factor}e{k}") <= high]
    if len(marks) <= count:
        return marks
    tens = [10.0**k for k in powers if low <= 10.0**k <= high]
    return tens[:: math.ceil(len(tens) / count)] or marks[::2]


def scatter_chart(points: Sequence[Point]) -> ScatterChart:
    """Draw points (true, predicted) on two equal axes."""
    frame = Frame(360, 330, left=52, top=10, right=350, bottom=286)
    low, high = _widened(min(map(min, points)), max(map(max, points)))
    x = _scale(low, high, frame.left, frame.right)
    y = _scale(low, high, frame.bottom, frame.top)
    marks = ticks(low, high)
    return ScatterChart(
        frame, _marks(marks, x), _marks(marks, y), tuple((x(true), y(predicted)) for true, predicted in points)
    )


def curve_chart(curves: Curves) -> CurveChart:
    """Draw the curves of training, on a logarithmic axis if values differ much."""
    frame = Frame(420, 240, left=52, top=10, right=410, bottom=200)
    values = [value for line in curves.members for _, value in line]
    epochs = [epoch for line in curves.members for epoch, _ in line]
    lowest, highest = min(values), max(values)
    is_log = lowest > 0 and highest / lowest > _LOG_FROM
    if is_log:
        low, high = _widened(math.log10(lowest), math.log10(highest))
        linear = _scale(low, high, frame.bottom, frame.top)
        y: Callable[[float], float] = lambda value: linear(math.log10(value))  # noqa: E731
        marks = log_ticks(10**low, 10**high)
    else:
        low, high = _widened(lowest, highest)
        y = _scale(low, high, frame.bottom, frame.top)
        marks = ticks(low, high, 4)
    first, last = min(epochs), max(epochs)
    x = _scale(first, max(last, first + 1), frame.left, frame.right)
    whole_epochs = [epoch for epoch in ticks(first, last) if epoch == int(epoch)]
    return CurveChart(
        frame,
        _marks(whole_epochs, x),
        _marks(marks, y),
        tuple(_polyline(line, x, y) for line in curves.members),
        _polyline(curves.mean, x, y),
        tuple((x(epoch), y(value)) for epoch, value in curves.best),
        is_log,
    )


def whisker_chart(measure: Measure) -> WhiskerChart:
    """Draw the scores of all methods on one axis."""
    low, high = _widened(min(s.low for s in measure.scores), max(s.high for s in measure.scores))
    width = 240.0
    x = _scale(low, high, 12, width - 12)
    rows = tuple((x(s.low), x(s.value), x(s.high)) for s in measure.scores)
    return WhiskerChart(width, rows, _marks(ticks(low, high, 6), x))


def _widened(low: float, high: float) -> Point:
    """Add a margin on both sides."""
    margin = 0.04 * (high - low) or 0.5 * abs(low) or 1.0
    return low - margin, high + margin


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _marks(values: Sequence[float], scale: Callable[[float], float]) -> tuple[Tick, ...]:
    return tuple(Tick(scale(value), f"{value:,.6g}".replace("-", "\N{MINUS SIGN}")) for value in values)


def _polyline(points: Sequence[Point], x: Callable[[float], float], y: Callable[[float], float]) -> str:
    return " ".join(f"{x(epoch):.1f},{y(value):.1f}" for epoch, value in points)
