"""Tables in files, read whole or in pieces: separated text, compressed or not, Parquet and folders of Parquet.

Reading never executes anything. pyarrow from version 15 on does not load pickled extension types, and columns of
extension types are rejected by name; of what pandas wrote beside a Parquet table only the names of its index are read,
as JSON.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from castlereg.data.reading import ALWAYS_MISSING
from castlereg.data.writing import check_table_suffix, write_table
from castlereg.options import did_you_mean

__all__ = ["TableFile", "check_columns", "check_table_suffix", "write_table"]

# Separators of a text file by its suffix; of several, the one that finds most columns.
_SEPARATORS = {".csv": (",", ";"), ".tsv": ("\t",), ".tab": ("\t",), ".txt": (",", ";", "\t", "|", r"\s+")}
_PARQUET = (".parquet", ".pq")
_COMPRESSED = (".gz", ".bz2", ".xz", ".zip", ".zst")


@dataclass(frozen=True)
class TableFile:
    """A table in a file, in a folder of Parquet files, or on standard input."""

    path: Path  # as the user gave it
    parts: tuple[Path, ...]  # the files, in the order of their names
    format: Literal["parquet", "csv"]  # "csv" with any separator
    separator: str = ","
    content: str | None = field(default=None, repr=False)  # of standard input
    texts: tuple[str, ...] = ()  # columns of a text file that are text, though some pieces look like numbers
    marks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # texts that are missing values in a column too

    @classmethod
    def open(
        cls, path: Any, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None
    ) -> TableFile:
        """Find the files and the separator; ``-`` reads standard input."""
        path = Path(path)
        if str(path) == "-":
            return cls(path, (), "csv", content=sys.stdin.read())._separated((",", ";", "\t"))
        if not path.exists():
            siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            raise FileNotFoundError(f"there is no file {str(path)!r}{did_you_mean(path.name, siblings)}")
        if path.is_dir():
            files = [part for part in sorted(path.rglob("*")) if _suffix(part) in _PARQUET]
            parts = tuple(p for p in files if not any(name[0] in "._" for name in p.relative_to(path).parts))
            if not parts:
                raise ValueError(f"folder {str(path)!r} has no Parquet files (*.parquet): give one that has, or a file")
            return cls(path, parts, "parquet")
        suffix = _suffix(path)
        if suffix in _PARQUET:
            return cls(path, (path,), "parquet")
        if suffix not in _SEPARATORS:
            raise ValueError(
                f"file {str(path)!r} has suffix {path.suffix!r}: tables end in {', '.join([*_SEPARATORS, *_PARQUET])} "
                "or are folders of Parquet files"
            )
        return cls(path, (path,), "csv")._separated(_SEPARATORS[suffix])

    def with_text(self, column: str) -> TableFile:
        """Read a column of a text file as text."""
        return replace(self, texts=(*self.texts, column))

    def with_marks(self, column: str, marks: Sequence[str]) -> TableFile:
        """Take texts in a column of a text file for missing values."""
        return replace(self, marks={**self.marks, column: (*self.marks.get(column, ()), *marks)})

    def columns(self) -> list[str]:
        """Return the names of the columns, and check that all files have them with the same kinds."""
        if self.format == "csv":
            return self._header(self.separator)
        kinds = [(part, _parquet_kinds(part)) for part in self.parts]
        first, known = kinds[0]
        for part, of_part in kinds[1:]:
            for name in {*known, *of_part}:
                kind, other = (k.get(name, "no such column") for k in (known, of_part))
                if kind != other:
                    raise ValueError(
                        f"column {name!r} is {kind} in {str(first)!r} and {other} in {str(part)!r}: "
                        "write all files with the same columns and types"
                    )
        return list(known)

    def read(self) -> pd.DataFrame:
        """Read the whole table; one without rows is rejected."""
        names = self.columns()
        if self.format == "csv":
            with self._errors():
                frame = pd.read_csv(self._source(), **self._options(names))
        else:
            import pyarrow as pa

            tables = []
            for part in self.parts:
                with _parquet(part) as file:
                    tables.append(file.read(columns=names))
            frame = pa.concat_tables(tables, promote_options="permissive").to_pandas(ignore_metadata=True)[names]
        if not len(frame):
            raise ValueError(f"{self} has no rows")
        return frame

    def frames(self, columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
        """Read some columns, at most ``rows`` rows at a time; a file ends a piece."""
        if self.format == "csv":
            options = self._options(columns) | {"usecols": list(columns), "chunksize": rows}
            with self._errors(), pd.read_csv(self._source(), **options) as reader:
                for frame in reader:
                    yield frame[list(columns)]
            return
        for part in self.parts:
            with _parquet(part) as file:
                for batch in file.iter_batches(batch_size=rows, columns=list(columns)):
                    if batch.num_rows:
                        yield batch.to_pandas(ignore_metadata=True)[list(columns)]

    def __str__(self) -> str:
        return "standard input" if self.content is not None else f"file {str(self.path)!r}"

    def _separated(self, separators: Sequence[str]) -> TableFile:
        return replace(self, separator=max(separators, key=lambda separator: len(self._header(separator))))

    def _header(self, separator: str) -> list[str]:
        with self._errors():
            return [str(name) for name in pd.read_csv(self._source(), sep=separator, nrows=0).columns]

    def _source(self) -> Path | io.StringIO:
        return self.path if self.content is None else io.StringIO(self.content)

    def _options(self, columns: Sequence[str]) -> dict[str, Any]:
        return {
            "sep": self.separator,
            "dtype": {name: str for name in self.texts if name in columns},
            "keep_default_na": False,
            "na_values": {name: [*ALWAYS_MISSING, *self.marks.get(name, ())] for name in columns},
            "low_memory": False,
        }

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except pd.errors.EmptyDataError:
            raise ValueError(f"{self} cannot be read as a table: it is empty") from None
        except (pd.errors.ParserError, UnicodeDecodeError) as error:
            raise ValueError(
                f"{self} cannot be read as a table ({str(error).strip()}); is it text with a header line, in UTF-8?"
            ) from error


def check_columns(wanted: Sequence[str], known: Sequence[str], file: TableFile) -> None:
    """Reject names that a file does not have; suggest the nearest."""
    for name in wanted:
        if name not in known:
            shown = ", ".join(map(repr, known[:10])) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
            hint = did_you_mean(str(name), known, cutoff=0.5) or f"; there are {shown}"
            raise ValueError(f"{file} has no column {name!r}{hint}")


def _suffix(path: Path) -> str:
    """Return the suffix, that of the table if it is compressed."""
    path = Path(path.name.lower())
    return Path(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix


def _parquet(path: Path) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError("reading Parquet needs the package pyarrow: pip install 'castlereg[arrow]'") from None
    try:
        # Without buffers of whole row groups, which may be as large as the table.
        return pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    except pa.ArrowInvalid as error:
        raise ValueError(f"file {str(path)!r} is not a Parquet file: {error}") from None


def _parquet_kinds(path: Path) -> dict[str, str]:
    """Return the kind of every column of a Parquet file but the index that pandas wrote."""
    with _parquet(path) as file:
        schema = file.schema_arrow
    index = {name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)}
    kinds = {}
    for column in schema:
        extension = (column.metadata or {}).get(b"ARROW:extension:name")
        if extension is not None or hasattr(column.type, "extension_name"):
            name = column.type.extension_name if extension is None else extension.decode(errors="replace")
            raise ValueError(
                f"column {column.name!r} of {str(path)!r} has the extension type {name!r}, which is not read: "
                "write it as numbers, text or dates"
            )
        if column.name not in index and not column.name.startswith("__index_level_"):
            kinds[column.name] = _kind(column.type)
    return kinds


def _kind(dtype: Any) -> str:
    import pyarrow.types as types

    if types.is_boolean(dtype) or types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "numbers"
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return "text"
    if types.is_dictionary(dtype):
        return f"categories of {_kind(dtype.value_type)}"
    return "dates" if types.is_temporal(dtype) else str(dtype)
