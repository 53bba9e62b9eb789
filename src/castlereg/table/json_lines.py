"""Tables in JSON: one record per line, or an array of records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

import pandas as pd

from castlereg.table.byte_streams import ByteSource

SUFFIXES = (".jsonl", ".ndjson", ".json")


def columns_of(source: ByteSource) -> list[str]:
    """Return the names of all fields in the order of their first appearance, and check every value."""
    names: dict[str, None] = {}
    for where, record in _records(source):
        for name, value in record.items():
            names.setdefault(name)
            if isinstance(value, dict | list):
                raise ValueError(
                    f"{where} of {source} has {_shown(value)} in {name!r}: a cell must be text, a number, true, false "
                    "or null; write its parts as separate columns"
                )
    if not names:
        raise ValueError(f"{source} has no rows")
    return list(names)


def frames(source: ByteSource, columns: Sequence[str], rows: int | None) -> Iterator[pd.DataFrame]:
    """Read some columns, at most ``rows`` rows at a time or all in one piece; absent fields are missing values."""
    records = (record for _, record in _records(source))
    while piece := list(islice(records, rows)):
        yield pd.DataFrame({name: pd.Series([record.get(name) for record in piece]) for name in columns})


def _records(source: ByteSource) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the position of each record, such as ``"line 3"``, and the record."""
    with source.lines("utf-8-sig") as lines:
        try:
            numbered = ((k, line) for k, line in enumerate(lines, 1) if not line.isspace())
            first = next(numbered, None)
            if first is None:
                raise ValueError(f"{source} cannot be read as a table: it is empty")
            if first[1].lstrip().startswith("["):
                yield from _of_array(first[1] + lines.read(), source)
            else:
                for number, line in chain([first], numbered):
                    where = f"line {number}"
                    yield where, _record(_parsed(line, where, source), where, source)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{source} is not valid UTF-8 ({error}), which JSON requires: save it again as UTF-8"
            ) from None


def _of_array(text: str, source: ByteSource) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, record in enumerate(_parsed(text, "the array", source), 1):
        where = f"record {number}"
        yield where, _record(record, where, source)


def _parsed(text: str, where: str, source: ByteSource) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{where} of {source} cannot be read as JSON ({error}): write one record per line, or an array of records"
        ) from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is duplicated")
    return record


def _record(value: Any, where: str, source: ByteSource) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f'{where} of {source} is {_shown(value)}, not a record such as {{"name": value, ...}}')
    return value


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."
