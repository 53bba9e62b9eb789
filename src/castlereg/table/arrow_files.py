"""Parquet and Feather (Arrow IPC) files, read whole or in pieces.

Reading never executes anything. pyarrow 15 and later do not load pickled extension types, and columns with extension
types are rejected by name. Of the metadata that pandas adds, only the names of the index are read, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

PARQUET = (".parquet", ".pq")
FEATHER = (".feather", ".arrow", ".ipc")


def columns_of(parts: Sequence[Path]) -> list[str]:
    """Return the column names, and check that all files have the same columns of the same kinds."""
    kinds = [(part, _kinds(part)) for part in parts]
    first, known = kinds[0]
    for part, of_part in kinds[1:]:
        for name in {*known, *of_part}:
            kind, other = (k.get(name, "missing") for k in (known, of_part))
            if kind != other:
                raise ValueError(
                    f"column {name!r} differs between files, {kind} in {str(first)!r} and {other} in {str(part)!r}: "
                    "write all files with the same columns and types"
                )
    return list(known)


def read(parts: Sequence[Path], columns: Sequence[str]) -> pd.DataFrame:
    """Read some columns of all files."""
    import pyarrow as pa

    tables = []
    for part in parts:
        with _opened(part) as file:
            tables.append(pa.Table.from_batches(_batches(file, columns, 1 << 20), _selected(file, columns)))
    return pa.concat_tables(tables, promote_options="permissive").to_pandas(ignore_metadata=True)[list(columns)]


def frames(parts: Sequence[Path], columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
    """Read some columns, at most ``rows`` rows at a time; no piece spans two files."""
    for part in parts:
        with _opened(part) as file:
            for batch in _batches(file, columns, rows):
                if batch.num_rows:
                    yield batch.to_pandas(ignore_metadata=True)[list(columns)]


class _Feather:
    """An Arrow IPC file or stream, with the part of the interface of pyarrow's ParquetFile that is used here."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self._file = pa.OSFile(str(path))
        is_stream = self._file.read(6) != b"ARROW1"
        self._file.seek(0)
        self._reader = pa.ipc.open_stream(self._file) if is_stream else pa.ipc.open_file(self._file)
        self._is_stream = is_stream
        self.schema_arrow = self._reader.schema

    def iter_batches(self, batch_size: int, columns: list[str]) -> Iterator[Any]:
        """Yield validated batches: the file may come from an untrusted source."""
        read = self._reader if self._is_stream else map(self._reader.get_batch, range(self._reader.num_record_batches))
        for batch in read:
            batch.validate(full=True)
            chosen = batch.select(columns)
            for start in range(0, chosen.num_rows, batch_size):
                yield chosen.slice(start, batch_size)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    kind = "a Parquet file" if path.suffix.lower() in PARQUET else "a Feather (Arrow) file"
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError(f"reading {kind} needs the package pyarrow: pip install 'castlereg[arrow]'") from None
    file: Any = None
    try:
        if path.suffix.lower() in PARQUET:
            # Without buffers of whole row groups, which may be as large as the table.
            file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        else:
            file = _Feather(path)
        yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        state = f"is not {kind}" if file is None else "is damaged"
        reason = " ".join(str(error).split())
        raise ValueError(f"file {str(path)!r} {state} ({reason}): get a new copy of the file") from None
    finally:
        if file is not None:
            file.close()


def _batches(file: Any, columns: Sequence[str], rows: int) -> Iterator[Any]:
    return iter(file.iter_batches(batch_size=rows, columns=list(columns)))


def _selected(file: Any, columns: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.schema([field for field in file.schema_arrow if field.name in columns])


def _kinds(path: Path) -> dict[str, str]:
    """Return the kind of every column of a file, except the index that pandas wrote."""
    with _opened(path) as file:
        index = _index_columns(file.schema_arrow)
        kinds: dict[str, str] = {}
        for column in file.schema_arrow:
            _check_extension(column, path)
            if column.name in kinds:
                raise ValueError(f"file {str(path)!r} has several columns named {column.name!r}: rename them")
            if column.name not in index and not column.name.startswith("__index_level_"):
                kinds[column.name] = _kind(column.type)
    return kinds


def _check_extension(column: Any, path: Path) -> None:
    extension = (column.metadata or {}).get(b"ARROW:extension:name")
    if extension is not None or hasattr(column.type, "extension_name"):
        name = column.type.extension_name if extension is None else extension.decode(errors="replace")
        raise ValueError(
            f"column {column.name!r} of {str(path)!r} has the extension type {name!r}, which is not supported: "
            "convert it to numbers, text or dates"
        )


def _index_columns(schema: Any) -> list[Any]:
    """Return the names of the columns that pandas wrote as the index of its frame."""
    written = schema.pandas_metadata
    index = written.get("index_columns") if isinstance(written, dict) else None
    return index if isinstance(index, list) else []


def _kind(dtype: Any) -> str:
    import pyarrow.types as types

    if types.is_boolean(dtype) or types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "numbers"
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return "text"
    if types.is_dictionary(dtype):
        return f"categories of {_kind(dtype.value_type)}"
    return "dates" if types.is_temporal(dtype) else str(dtype)
