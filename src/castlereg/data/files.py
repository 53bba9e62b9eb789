"""Tables in files, read piece by piece: Parquet, folders of Parquet, CSV.

Reading never executes anything. pyarrow from version 15 on does not load pickled extension types, and columns of
extension types are refused by name; of what pandas wrote beside a Parquet table the names of its index alone are read,
as JSON.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

_SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv"}
_INDEX = "__index_level_"


@dataclass(frozen=True)
class TableFile:
    """A table in a file or in a folder of files.

    Parameters
    ----------
    path : Path
        As the user gave it.
    parts : tuple of Path
        The files, in the order of their names.
    format : {"parquet", "csv"}
    texts : tuple of str
        Columns of a CSV file that are text, though some pieces of them look like numbers.
    marks : mapping of str to tuple of str
        What stands for a gap in columns of a CSV file, beside what pandas knows.
    """

    path: Path
    parts: tuple[Path, ...]
    format: str
    texts: tuple[str, ...] = ()
    marks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Any) -> TableFile:
        """Find the files, and refuse what is no table.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        TableFile
        """
        path = Path(path)
        if not path.exists():
            near = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            raise FileNotFoundError(f"there is no file {str(path)!r}{_hint(path.name, near)}")
        if path.is_dir():
            parts = tuple(sorted(p for p in path.rglob("*") if _format(p) == "parquet" and not _hidden(p, path)))
            if not parts:
                raise ValueError(f"folder {str(path)!r} has no Parquet files (*.parquet): give one that has, or a file")
            return cls(path, parts, "parquet")
        kind = _format(path)
        if kind is None:
            raise ValueError(
                f"file {str(path)!r} has suffix {path.suffix!r}: give a file named {', '.join(_SUFFIXES)}, or a folder "
                "of Parquet files"
            )
        return cls(path, (path,), kind)

    def with_text(self, column: str) -> TableFile:
        """Read a column of a CSV file as text."""
        return replace(self, texts=(*self.texts, column))

    def with_marks(self, column: str, marks: Sequence[str]) -> TableFile:
        """Take texts in a column of a CSV file as gaps."""
        return replace(self, marks={**self.marks, column: (*self.marks.get(column, ()), *marks)})

    def columns(self) -> list[str]:
        """Return the names of the columns, and check that all files have them with the same kinds."""
        if self.format == "csv":
            try:
                return [str(name) for name in pd.read_csv(self.path, nrows=0).columns]
            except pd.errors.EmptyDataError:
                raise ValueError(f"file {str(self.path)!r} is empty: it has not even names of columns") from None
        kinds = [(part, _parquet_kinds(part)) for part in self.parts]
        first, known = kinds[0]
        for part, of_part in kinds[1:]:
            for name in {*known, *of_part}:
                if known.get(name) != of_part.get(name):
                    one, other = (k.get(name, "no such column") for k in (known, of_part))
                    raise ValueError(
                        f"column {name!r} is {one} in {str(first)!r} and {other} in {str(part)!r}: "
                        "write all files with the same columns and types"
                    )
        return list(known)

    def frames(self, columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
        """Read some columns, so many rows at a time.

        Parameters
        ----------
        columns : sequence of str
        rows : int
            At most; a file ends a piece.

        Yields
        ------
        DataFrame
        """
        if self.format == "csv":
            options: dict[str, Any] = {"dtype": {c: str for c in self.texts if c in columns}, "low_memory": False}
            if self.marks:
                options["na_values"] = {name: list(marks) for name, marks in self.marks.items()}
            with pd.read_csv(self.path, usecols=list(columns), chunksize=rows, **options) as reader:
                for frame in reader:
                    yield frame[list(columns)]
            return
        for part in self.parts:
            with _parquet(part) as file:
                for batch in file.iter_batches(batch_size=rows, columns=list(columns)):
                    if batch.num_rows:
                        yield batch.to_pandas(ignore_metadata=True)[list(columns)]


def check_columns(wanted: Sequence[str], known: Sequence[str], path: Path) -> None:
    """Refuse names that a file does not have; suggest the nearest."""
    for name in wanted:
        if name not in known:
            shown = ", ".join(map(repr, known[:10])) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
            raise ValueError(f"file {str(path)!r} has no column {name!r}{_hint(str(name), known)}; there are {shown}")


def _format(path: Path) -> str | None:
    return next((kind for suffix, kind in _SUFFIXES.items() if path.name.lower().endswith(suffix)), None)


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def _hint(name: str, known: Sequence[str]) -> str:
    nearest = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


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
        raise ValueError(f"file {str(path)!r} is no Parquet file: {error}") from None


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
        if column.name not in index and not column.name.startswith(_INDEX):
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
