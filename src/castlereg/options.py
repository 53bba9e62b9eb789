"""Checks of options. Every error names the option, its value and the allowed values."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return a hint with the known name closest to a misspelt one, ignoring case; empty if none is close.

    Examples
    --------
    >>> did_you_mean("PIRCE", ["price", "area"])
    "; did you mean 'price'?"
    >>> did_you_mean("colour", ["price", "area"])
    ''
    """
    by_lower = {name.lower(): name for name in reversed(list(known))}
    nearest = difflib.get_close_matches(name.strip().lower(), by_lower, n=1, cutoff=cutoff)
    return f"; did you mean {by_lower[nearest[0]]!r}?" if nearest else ""


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise for a value that is not one of the choices, and suggest the closest."""
    choices = list(choices)
    if isinstance(value, str) and value in choices:
        return
    raise ValueError(
        f"{name}={value!r} is not one of {', '.join(map(repr, choices))}{did_you_mean(str(value), choices)}"
    )


def check_number(
    name: str, value: Any, *, above: float | None = None, least: float | None = None, most: float | None = None
) -> None:
    """Raise unless the value is a finite number within bounds."""
    if not _is_number(value) or not math.isfinite(value):
        raise ValueError(f"{name}={value!r} must be a finite number")
    if above is not None and not value > above:
        raise ValueError(f"{name}={value!r} must be greater than {above:g}")
    if least is not None and not value >= least:
        raise ValueError(f"{name}={value!r} must be at least {least:g}")
    if most is not None and not value <= most:
        raise ValueError(f"{name}={value!r} must be at most {most:g}")


def check_integer(name: str, value: Any, *, least: int = 1) -> None:
    """Raise unless the value is an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")


def check_flag(name: str, value: Any) -> None:
    """Raise unless the value is True or False."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise ValueError(f"{name}={value!r} must be True or False")


def check_fraction(name: str, value: Any) -> None:
    """Raise unless the value is strictly between 0 and 1."""
    if not _is_number(value) or not 0 < value < 1:
        raise ValueError(f"{name}={value!r} must be a fraction between 0 and 1, such as 0.1")


def check_share(name: str, value: Any) -> None:
    """Raise unless the value is at least 0 and below 1."""
    if not _is_number(value) or not 0 <= value < 1:
        raise ValueError(f"{name}={value!r} must be at least 0 and below 1, such as 0.2")


def check_sizes(name: str, value: Any) -> None:
    """Raise unless the value is "auto" or a sequence of layer widths."""
    if isinstance(value, str):
        check_choice(name, value, ["auto"])
        return
    if not isinstance(value, Iterable):
        raise ValueError(
            f"{name}={value!r} must be 'auto' or a sequence of widths such as (32, 32); () is the linear form"
        )
    for width in value:
        check_integer(f"each width in {name}", width)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
