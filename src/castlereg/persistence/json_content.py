"""Strict JSON: the names and types of all fields are known in advance; anything else is rejected."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace, UnionType
from typing import Any, Literal, NoReturn, get_args, get_origin

# Errors of Python, NumPy and constructors for content of the right type with impossible values.
DOES_NOT_FIT = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError)


class ModelFileError(ValueError):
    """A file that is not a complete model; the message names the path, the reason and what to do."""


class Unreadable(Exception):
    """The reason why content is rejected and what to do, raised where the path is not known."""

    def __init__(self, reason: str, advice: str = "get the file again or save the model again"):
        super().__init__(reason)
        self.reason, self.advice = reason, advice


def parse(text: str | bytes, where: str) -> Any:
    """Parse JSON; reject duplicate fields, NaN, infinity and deep nesting."""
    try:
        text = text.decode() if isinstance(text, bytes) else text
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        raise Unreadable(f"{where} is nested too deeply") from None
    except ValueError as error:
        raise Unreadable(f"{where} is not JSON ({error})") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field appears twice")
    return fields


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a valid JSON number")


def fields(content: Any, where: str, /, **kinds: Any) -> Any:
    """Return the fields of a JSON object as attributes: exactly these names, each of a type for :func:`checked`."""
    checked(content, dict, where)
    for name in kinds.keys() - content.keys():
        raise Unreadable(f"{where} has no field {name!r}")
    for name in content.keys() - kinds.keys():
        raise Unreadable(f"{where} has an unknown field {name!r}")
    return SimpleNamespace(**{name: checked(content[name], kind, f"{name} of {where}") for name, kind in kinds.items()})


def checked(value: Any, kind: Any, where: str) -> Any:
    """Check the type of a value: bool, non-negative int, finite float, str, list, dict, object, or a combination."""
    if not _fits(value, kind):
        raise Unreadable(f"{where} is {_shown(value)}, which is not a valid {getattr(kind, '__name__', kind)}")
    return value


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a value has exactly this type; subtypes do not count, so True is not an int."""
    if get_origin(kind) in (list, tuple):  # tuple[str, ...] is a list in JSON
        return type(value) is list and all(_fits(item, get_args(kind)[0]) for item in value)
    if get_origin(kind) is Literal:
        return type(value) is str and value in get_args(kind)
    if isinstance(kind, UnionType):
        return any(_fits(value, option) for option in get_args(kind))
    if kind is object:
        return True
    if type(value) is not kind:
        return False
    return math.isfinite(value) if kind is float else value >= 0 if kind is int else True


def _shown(value: Any) -> str:
    return f"a {type(value).__name__}" if isinstance(value, list | dict) else repr(value)
