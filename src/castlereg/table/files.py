"""Tables in files, read whole or in pieces: delimited text and JSON, compressed or not, Parquet, Feather and Excel.

Reading never executes anything and never unpacks anything to disk.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from castlereg.notices import warn_user
from castlereg.options import did_you_mean
from castlereg.table import arrow_files, excel, json_lines
from castlereg.table.byte_streams import COMPRESSIONS, ByteSource, kind_of, table_in_zip
from castlereg.table.number_marks import plain_numbers
from castlereg.table.text_format import SEPARATORS, WHITESPACE, TextFormat, detect
from castlereg.table.texts import ALWAYS_MISSING
from castlereg.table.writing import check_table_suffix, write_table

__all__ = ["TableFile", "check_columns", "check_table_suffix", "note_unnamed", "write_table"]

# Separators of a text file by its suffix; if several fit equally well, the first is used.
_TABS = ("\t", ",", ";", "|")
_TEXT = {
    ".csv": SEPARATORS,
    ".tsv": _TABS,
    ".tab": _TABS,
    **dict.fromkeys((".txt", ".dat", ".data"), (*SEPARATORS, WHITESPACE)),
}
_COMPRESSIBLE = (*_TEXT, *json_lines.SUFFIXES)
_SUFFIXES = (*_COMPRESSIBLE, *arrow_files.PARQUET, *arrow_files.FEATHER, *excel.SUFFIXES)


@dataclass(frozen=True)
class TableFile:
    """A table in a file, in a folder of Parquet files, or on standard input."""

    path: Path  # as passed by the user
    parts: tuple[Path, ...]  # the files, in the order of their names
    format: Literal["csv", "json", "parquet", "feather", "excel"]  # "csv" with any separator
    names: tuple[str, ...]  # of the columns
    source: ByteSource
    text: TextFormat | None = None  # how a text file is read
    frame: pd.DataFrame | None = field(default=None, repr=False, compare=False)  # of a workbook, which is read whole
    texts: tuple[str, ...] = ()  # columns to read as text, even where pieces look like numbers
    marks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # additional missing-value texts of each column

    @classmethod
    def open(
        cls, path: Any, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None
    ) -> TableFile:
        """Find the files, their format and their columns.

        Parameters
        ----------
        path : str or path
            File, or folder of Parquet files. ``-`` reads a text table from standard input, and ``book.xlsx#Prices``
            reads the sheet Prices of a workbook.
        separator, decimal, encoding : str, optional
            Format of a text file; detected by default. The separator is a single character; a space means any run of
            spaces and tabs.
        """
        return cls._opened(Path(path), {"separator": separator, "decimal": decimal, "encoding": encoding})

    @classmethod
    def _opened(cls, path: Path, given: Mapping[str, str | None]) -> TableFile:
        if str(path) == "-":
            source = ByteSource(path, content=_standard_input())
            _check_kind(source, ".csv")
            return cls._of_text(source, SEPARATORS, given)
        path, sheet = _without_sheet(path)
        if not path.exists():
            siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            raise FileNotFoundError(f"file {str(path)!r} does not exist{did_you_mean(path.name, siblings)}")
        if path.is_dir():
            _check_not_given(given, path)
            parts = _parquet_parts(path)
            return cls(path, parts, "parquet", tuple(arrow_files.columns_of(parts)), ByteSource(path))
        source, suffix = _source(path)
        _check_kind(source, suffix)
        if suffix in _TEXT:
            return cls._of_text(source, _TEXT[suffix], given)
        _check_not_given(given, path)
        if suffix in json_lines.SUFFIXES:
            return cls(path, (path,), "json", tuple(json_lines.columns_of(source)), source)
        if suffix in excel.SUFFIXES:
            frame = excel.read(path, sheet)
            return cls(path, (path,), "excel", tuple(frame.columns), source, frame=frame)
        format_: Literal["parquet", "feather"] = "parquet" if suffix in arrow_files.PARQUET else "feather"
        return cls(path, (path,), format_, tuple(arrow_files.columns_of([path])), source)

    @classmethod
    def _of_text(cls, source: ByteSource, separators: Sequence[str], given: Mapping[str, str | None]) -> TableFile:
        text = detect(source, separators, **given)
        return cls(source.path, (source.path,), "csv", text.names, source, text)

    def with_text(self, column: str) -> TableFile:
        """Return this file with a column of text, to be read as text."""
        return replace(self, texts=(*self.texts, column))

    def with_marks(self, column: str, marks: Sequence[str]) -> TableFile:
        """Return this file with additional texts that are missing values in a column."""
        return replace(self, marks={**self.marks, column: (*self.marks.get(column, ()), *marks)})

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.names)

    def read(self) -> pd.DataFrame:
        """Read the whole table; raise if it has no rows."""
        if self.format == "csv":
            (frame,) = self._of_lines(self.names, None)
        elif self.format == "json":
            (frame,) = json_lines.frames(self.source, self.names, None)
        elif self.frame is not None:
            frame = self.frame.copy()
        else:
            frame = arrow_files.read(self.parts, self.names)
        if not len(frame):
            raise ValueError(f"{self} has no rows")
        return frame

    def frames(self, columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
        """Read some columns, at most ``rows`` rows at a time; no piece spans two files."""
        if self.format == "csv":
            return self._of_lines(columns, rows)
        if self.format == "json":
            return json_lines.frames(self.source, columns, rows)
        if self.frame is not None:
            chosen = self.frame[list(columns)]
            return (chosen[start : start + rows] for start in range(0, len(chosen), rows))
        return arrow_files.frames(self.parts, columns, rows)

    def __str__(self) -> str:
        return str(self.source)

    def _of_lines(self, columns: Sequence[str], rows: int | None) -> Iterator[pd.DataFrame]:
        """Read some columns of a text file, in pieces or, if ``rows`` is None, in one."""
        assert self.text is not None
        columns = list(columns)
        options = {
            "sep": self.text.separator,
            "decimal": self.text.decimal,
            "encoding": self.text.encoding,
            "names": list(self.names),
            "header": 0,
            "index_col": False,
            "usecols": columns,
            "dtype": {name: str for name in self.texts if name in columns},
            "keep_default_na": False,
            "na_values": {name: [*ALWAYS_MISSING, *self.marks.get(name, ())] for name in columns},
            "low_memory": False,
            "iterator": True,
        }
        with self._errors(), self.source.open() as stream, pd.read_csv(stream, **options) as reader:
            while True:
                try:
                    frame = reader.read(rows)
                except StopIteration:
                    return
                for name in columns:
                    if name not in self.texts and frame[name].dtype.kind == "O":
                        frame[name] = plain_numbers(
                            frame[name], self.text.decimal, str(self), is_given=self.text.is_given
                        )
                yield frame[columns]
                if rows is None:
                    return

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except pd.errors.EmptyDataError:
            raise ValueError(f"{self} cannot be read as a table: it is empty") from None
        except (pd.errors.ParserError, UnicodeError) as error:
            raise ValueError(
                f"{self} cannot be read as a table ({str(error).strip()}): check for an unclosed quote"
            ) from error


def check_columns(wanted: Sequence[str], known: Sequence[str], file: TableFile) -> None:
    """Raise for column names that a file does not have, and suggest the closest."""
    for name in wanted:
        if name not in known:
            shown = ", ".join(map(repr, known[:10])) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
            hint = did_you_mean(str(name), known, cutoff=0.5) or f"; its columns are {shown}"
            raise ValueError(f"{file} has no column {name!r}{hint}")


def note_unnamed(features: Sequence[str], file: TableFile) -> None:
    """Warn about features without names; an unnamed first column is usually an index that pandas saved."""
    unnamed = [name for name in features if name.startswith("Unnamed: ")]
    if unnamed and unnamed[0] == file.names[0]:
        warn_user(
            f"{file} has a first column without a name ({unnamed[0]!r}), which looks like a saved index: drop it "
            f"(--drop {unnamed[0]!r}), or save the table with index=False"
        )
    elif unnamed:
        warn_user(f"{file} has columns without names, read as {', '.join(map(repr, unnamed))}: name or drop them")


def _standard_input() -> bytes:
    stream = getattr(sys.stdin, "buffer", sys.stdin)
    content = stream.read()
    return content.encode() if isinstance(content, str) else bytes(content)


def _without_sheet(path: Path) -> tuple[Path, str | None]:
    """Split ``book.xlsx#sheet``."""
    name, mark, sheet = path.name.partition("#")
    if mark and not path.exists() and Path(name.lower()).suffix in excel.SUFFIXES:
        return path.with_name(name), sheet
    return path, None


def _parquet_parts(folder: Path) -> tuple[Path, ...]:
    files = [part for part in sorted(folder.rglob("*")) if part.suffix.lower() in arrow_files.PARQUET]
    parts = tuple(p for p in files if not any(name[0] in "._" for name in p.relative_to(folder).parts))
    if not parts:
        raise ValueError(f"folder {str(folder)!r} has no Parquet files (*.parquet): pass another folder, or a file")
    return parts


def _source(path: Path) -> tuple[ByteSource, str]:
    """Return the bytes of a file and the suffix of its table."""
    if not path.is_file():
        raise ValueError(
            f"{str(path)!r} is not a regular file: pipe the table to standard input, and pass - as the path"
        )
    name = Path(path.name.lower())
    compression, suffix, member = "", name.suffix, ""
    if suffix in COMPRESSIONS:
        compression, suffix = suffix, Path(name.stem).suffix
    if compression == ".zip":
        member = table_in_zip(path, _COMPRESSIBLE)
        suffix = Path(member.lower()).suffix or suffix
    source = ByteSource(path, compression, member)
    if compression and suffix not in _COMPRESSIBLE:
        advice = "unpack it first" if suffix in _SUFFIXES else "rename it to show its format, such as table.csv.gz"
        raise ValueError(f"{source} is a compressed file of format {suffix!r}, which cannot be read: {advice}")
    if suffix not in _SUFFIXES:
        kind, right = kind_of(source.start())
        if kind and right not in _SUFFIXES:
            raise ValueError(f"{source} is {kind}: {_AS_TABLE}")
        raise ValueError(
            f"file {str(path)!r} has the suffix {path.suffix!r}, which is not supported: pass a file that ends in "
            f"{', '.join(_SUFFIXES)} (text and JSON also with {', '.join(COMPRESSIONS)}), or a folder of Parquet files"
        )
    return source, suffix


_AS_TABLE = "save the table as .csv, .parquet or .xlsx"


def _check_kind(source: ByteSource, suffix: str) -> None:
    """Raise if the content of a file does not match its name."""
    kind, right = kind_of(source.start())
    family = next(f for f in (arrow_files.PARQUET, arrow_files.FEATHER, excel.SUFFIXES, _COMPRESSIBLE) if suffix in f)
    if not kind or right in family or (right == ".zip" and suffix in excel.SUFFIXES):
        return
    if source.content is not None or (right in COMPRESSIONS and suffix not in _COMPRESSIBLE):
        raise ValueError(f"{source} is {kind}: " + ("unpack it first" if right in COMPRESSIONS else _AS_TABLE))
    ending = suffix + right if right in COMPRESSIONS else right
    advice = f"rename it to end in {ending}" if right else _AS_TABLE
    raise ValueError(f"{source} is {kind}, not {suffix}: {advice}")


def _check_not_given(given: Mapping[str, str | None], path: Path) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} applies only to text files such as CSV, and {str(path)!r} is not one: "
                "drop this argument"
            )
