"""Strict JSON: every field is read by its name and its type, and anything else is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from castlereg.persistence.refusal import Unreadable


def parse(text: bytes, where: str) -> Any:
    """Parse JSON, and refuse repeated fields, NaN and infinity as words, and deep nesting.

    Parameters
    ----------
    text : bytes
    where : str
        What is parsed, for the message.

    Returns
    -------
    object
    """
    try:
        return json.loads(text.decode("ascii"), object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        raise Unreadable(f"{where} is nested too deeply") from None
    except ValueError as error:
        raise Unreadable(f"{where} is no JSON ({error})") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field stands there twice")
    return fields


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


class Content:
    """A JSON object.

    Parameters
    ----------
    fields : dict
        What was parsed; anything but a dict is refused.
    where : str
        What it is, for messages.
    """

    def __init__(self, fields: Any, where: str) -> None:
        if type(fields) is not dict:
            raise Unreadable(f"{where} is no JSON object")
        self._fields: dict[str, Any] = fields
        self._where = where

    def only(self, *names: str) -> None:
        """Refuse fields of other names, and missing ones."""
        for name in names:
            self.any(name)
        self.among(names)

    def among(self, names: Iterable[str]) -> list[str]:
        """Refuse fields of other names; return the names of those that are there."""
        for name in self._fields:
            if name not in names:
                raise Unreadable(f"{self._where} has an unknown field {name!r}")
        return list(self._fields)

    def any(self, name: str) -> Any:
        """Return a field of any type."""
        if name not in self._fields:
            raise Unreadable(f"{self._where} lacks {name!r}")
        return self._fields[name]

    def text(self, name: str, among: Iterable[str] | None = None) -> str:
        """Return a text, one of some."""
        value: str = self._of_type(name, str)
        if among is not None and value not in among:
            raise Unreadable(f"{self._where} has {name}={value!r}, which castlereg does not know")
        return value

    def integer(self, name: str) -> int:
        """Return a whole number from 0."""
        value: int = self._of_type(name, int)
        if value < 0:
            raise Unreadable(f"{self._where} has {name}={value}, which is negative")
        return value

    def number(self, name: str) -> float:
        """Return a finite number."""
        value: float = self._of_type(name, float)
        if not math.isfinite(value):
            raise Unreadable(f"{self._where} has {name}={value}, which is not finite")
        return value

    def flag(self, name: str) -> bool:
        """Return true or false."""
        value: bool = self._of_type(name, bool)
        return value

    def items(self, name: str) -> list[Any]:
        """Return a list."""
        value: list[Any] = self._of_type(name, list)
        return value

    def texts(self, name: str) -> list[str]:
        """Return a list of texts."""
        return self._all(name, lambda one: type(one) is str, "texts")

    def integers(self, name: str) -> list[int]:
        """Return a list of whole numbers from 0."""
        return self._all(name, lambda one: type(one) is int and one >= 0, "whole numbers from 0")

    def part(self, name: str) -> Content:
        """Return an object."""
        return Content(self._of_type(name, dict), f"{name} of {self._where}")

    def parts(self, name: str) -> list[Content]:
        """Return a list of objects."""
        return [Content(one, f"{name}[{i}] of {self._where}") for i, one in enumerate(self.items(name))]

    def _of_type(self, name: str, kind: type) -> Any:
        value = self.any(name)
        if type(value) is not kind:
            raise Unreadable(f"{self._where} has a {type(value).__name__} as {name!r}, which must be a {kind.__name__}")
        return value

    def _all(self, name: str, fits: Callable[[Any], bool], what: str) -> list[Any]:
        values = self.items(name)
        if not all(map(fits, values)):
            raise Unreadable(f"{self._where} has {name!r} that are not all {what}")
        return values
