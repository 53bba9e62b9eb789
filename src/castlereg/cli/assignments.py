"""Columns and values as they are written on the command line: ``column=value``, ``column=low:high``, ``a,b,c``."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from castlereg.options import did_you_mean

if TYPE_CHECKING:
    from castlereg.structural.variables import Variable


def split_assignment(option: str, text: str, names: Sequence[str]) -> tuple[str, str]:
    """Split ``column=value`` after the longest known column; levels and columns may contain ``=``.

    >>> split_assignment("--do", "size=a=b", ["size", "size=a"])
    ('size=a', 'b')
    >>> split_assignment("--do", "city=x=y", ["city"])
    ('city', 'x=y')
    """
    known = [name for name in names if text.startswith(f"{name}=")]
    if known:
        name = max(known, key=len)
        return name, text[len(name) + 1 :]
    name, equals, _ = text.partition("=")
    if not equals:
        raise ValueError(f"{option} {text} must be column=value")
    raise ValueError(unknown_column(option, name, names))


def assignments(option: str, texts: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Read several; a column may be named once."""
    values: dict[str, str] = {}
    for text in texts:
        name, value = split_assignment(option, text, names)
        if name in values:
            raise ValueError(f"{option} {name} is given twice: name each column once")
        values[name] = value
    return values


def unknown_column(option: str, name: str, names: Sequence[str]) -> str:
    """Say that the model has no such column, and which one may be meant."""
    hint = did_you_mean(name, names) or f"; its columns are {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}"
    return f"{option} {name}: the model has no such column{hint}"


def typed(variable: Variable, text: str) -> Any:
    """Turn a text into a value of a column; what is neither a number nor a level is left for the column to reject.

    >>> from castlereg.structural.variables import Variable
    >>> typed(Variable("age"), "40"), typed(Variable("sex", (1.0, 2.0)), "2"), typed(Variable("code", ("1", "2")), "2")
    (40.0, 2.0, '2')
    """
    has_texts = variable.levels is not None and any(isinstance(level, str) for level in variable.levels)
    is_known = variable.levels is not None and text in map(str, variable.levels)
    if not has_texts and not is_known and variable.holds != "dates":
        with suppress(ValueError):
            return float(text)
    return text


def given_value(variable: Variable, text: str) -> Any:
    """Read the level of a column, or a range ``low:high`` of its numbers; times have as many colons at both ends.

    >>> from castlereg.structural.variables import Variable
    >>> given_value(Variable("age"), "20:40"), given_value(Variable("ratio", ("1:2", "2:1")), "1:2")
    ((20.0, 40.0), '1:2')
    """
    if variable.levels is not None:
        return typed(variable, text)
    parts = text.split(":")
    half, rest = divmod(len(parts), 2)
    if rest or not half:
        raise ValueError(f"--given {variable.name}={text}: it holds numbers, so give a range low:high")
    return tuple(typed(variable, ":".join(end)) for end in (parts[:half], parts[half:]))


def listed_values(variable: Variable, text: str) -> list[Any]:
    """Read values between commas; quotes hold a level that contains one.

    >>> from castlereg.structural.variables import Variable
    >>> listed_values(Variable("city", ("Oslo, east", "Bergen")), '"Oslo, east",Bergen')
    ['Oslo, east', 'Bergen']
    """
    return [typed(variable, part) for part in next(csv.reader([text], skipinitialspace=True), [])]
