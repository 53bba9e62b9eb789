"""Formatting of scores with the number of digits that their intervals justify."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_MOST_DECIMALS = 6
_LARGE, _SMALL = 1e7, 1e-3  # other numbers may be written with a power of ten


@dataclass(frozen=True)
class Interval:
    """A score and its 95 % interval, the variation that other rows of the same kind would give."""

    value: float
    low: float
    high: float


def decimals_of(scores: Sequence[Interval]) -> int:
    """Return the number of decimals to show: up to the first uncertain digit, and at least two for scores below 10.

    Negative for millions, which are shown with three digits.

    >>> decimals_of([Interval(0.47, 0.41, 0.55)]), decimals_of([Interval(0.4712, 0.4695, 0.4729)])
    (2, 3)
    >>> decimals_of([Interval(54.1, 50.2, 58.3)])
    1
    """
    half_width = max((score.high - score.low) / 2 for score in scores)
    size = max(abs(score.value) for score in scores)
    if not math.isfinite(size + half_width):
        return 2
    least = 2 if size < 10 else 1 if size < 100 else 0 if size < _LARGE else 2 - math.floor(math.log10(size))
    # An interval of width zero, such as when all of a few rows are predicted correctly, does not determine decimals.
    return max(least, math.ceil(-math.log10(half_width))) if half_width > 0 else least


def number(value: float, decimals: int) -> str:
    """Format a number with this many decimals and a real minus sign, or with a power of ten if very large or small.

    >>> number(-0.034, 2), number(0.00000123, 8), number(1234567890, -7)
    ('\N{MINUS SIGN}0.03', '1.23e\N{MINUS SIGN}6', '1.23e9')
    """
    if not math.isfinite(value):
        return str(value)
    if decimals >= 0 and abs(value) < _LARGE and (decimals <= _MOST_DECIMALS or abs(value) >= _SMALL):
        text = f"{value:,.{min(decimals, _MOST_DECIMALS)}f}"
    elif not round(value, decimals):
        text = "0"
    else:
        digits = min(max(math.floor(math.log10(abs(value))) + decimals, 0), _MOST_DECIMALS)
        mantissa, power = f"{value:.{digits}e}".split("e")
        text = f"{mantissa}e{int(power)}"
    if text.strip("-0.") == "":
        text = text.lstrip("-")  # no minus before zero
    return text.replace("-", "\N{MINUS SIGN}")
