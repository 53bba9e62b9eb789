"""Parse columns and values from the command line: ``column=value``, ``column=low:high``, ``a,b,c``."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from castlereg.options import did_you_mean

if TYPE_CHECKING:
    from castlereg.causal.structural.variables import Variable


def split_assignment(option: str, text: str, names: Sequence[str]) -> tuple[str, str]:
    """Split ``column=value`` after the longest known column name; names and levels may contain ``=``.

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
        raise ValueError(f"{option} {text} must have the form column=value")
    raise ValueError(unknown_column(option, name, names))


def assignments(option: str, texts: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Parse several assignments; each column may appear only once."""
    values: dict[str, str] = {}
    for text in texts:
        name, value = split_assignment(option, text, names)
        if name in values:
            raise ValueError(f"{option} {name} is duplicated: pass each column only once")
        values[name] = value
    return values


def unknown_column(option: str, name: str, names: Sequence[str]) -> str:
    """Return the message for a column that the model does not have, with a suggestion."""
    hint = did_you_mean(name, names) or f"; its columns are {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}"
    return f"{option} {name}: the model has no such column{hint}"


def typed(variable: Variable, text: str) -> Any:
    """Convert a text to a value of a column; other code rejects a text that is neither a number nor a level.

    >>> from castlereg.causal.structural.variables import Variable
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
    """Parse a level of a column, or a range ``low:high`` of its numbers; times have the same colons at both ends.

    >>> from castlereg.causal.structural.variables import Variable
    >>> given_value(Variable("age"), "20:40"), given_value(Variable("ratio", ("1:2", "2:1")), "1:2")
    ((20.0, 40.0), '1:2')
    """
    if variable.levels is not None:
        return typed(variable, text)
    parts = text.split(":")
    half, odd = divmod(len(parts), 2)
    if odd or not half:
        raise ValueError(f"--given {variable.name}={text}: the column is numeric, so pass a range low:high")
    return tuple(typed(variable, ":".join(end)) for end in (parts[:half], parts[half:]))


def listed_values(variable: Variable, text: str) -> list[Any]:
    """Split values at commas; a level that contains a comma is quoted.

    >>> from castlereg.causal.structural.variables import Variable
    >>> listed_values(Variable("city", ("Oslo, east", "Bergen")), '"Oslo, east",Bergen')
    ['Oslo, east', 'Bergen']
    """
    return [typed(variable, part) for part in next(csv.reader([text], skipinitialspace=True), [])]
