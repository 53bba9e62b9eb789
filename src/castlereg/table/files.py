"""Tables in files: delimited text and JSON, compressed or not, Parquet, Feather and Excel.

The format of text is detected unless passed, and an ambiguous file raises an error that names the option to pass.
Reading never executes anything and never unpacks anything to disk. Formulas of workbooks are never evaluated.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import errno
import gzip
import io
import json
import lzma
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, TextIO, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm.auto import tqdm

from castlereg.atomic_write import atomic_write
from castlereg.notices import warn_user
from castlereg.options import did_you_mean
from castlereg.table.reading import (
    ALWAYS_MISSING,
    GROUPS,
    MISSING_MARKS,
    Columns,
    ColumnType,
    Level,
    are_codes,
    as_dates,
    as_numbers,
    check_range,
    is_number,
    on_disk,
    read_columns,
    values_at,
)
from castlereg.table.schema import MOST_TEXTS, OTHER

_SEPARATORS = (",", ";", "\t", "|")
_WHITESPACE = r"\s+"
_FIRST_LINES = 500  # in which the separator is detected
_FIRST_ROWS = 10_000  # in which the decimal mark is detected
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", _WHITESPACE: "spaces"}
_ENCODING_NAMES = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}
# UTF-32 first: its mark starts with that of UTF-16.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    *((mark, "utf-32") for mark in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)),
    *((mark, "utf-16") for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)),
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")

# Separators of a text file by its suffix; if several fit equally well, the first is used.
_TEXT = {
    ".csv": _SEPARATORS,
    **dict.fromkeys((".tsv", ".tab"), ("\t", ",", ";", "|")),
    **dict.fromkeys((".txt", ".dat", ".data"), (*_SEPARATORS, _WHITESPACE)),
}
_JSON, _EXCEL = (".jsonl", ".ndjson", ".json"), (".xlsx", ".xlsm")
_ARROW = {**dict.fromkeys((".parquet", ".pq"), "Parquet"), **dict.fromkeys((".feather", ".arrow", ".ipc"), "Feather")}
_COMPRESSIBLE = (*_TEXT, *_JSON)
_SUFFIXES = (*_COMPRESSIBLE, *_ARROW, *_EXCEL)
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst", ".zip")
_LARGEST_UNPACKED, _LARGEST_RATIO = 1 << 30, 200  # a zip that exceeds both raises
# Exceptions from damaged files. zipfile raises EINVAL; an OSError with any other number comes from the disk.
_DAMAGES = (EOFError, OSError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
_READ_ROWS = 65_536  # rows of a file that are decoded at a time


@dataclass(frozen=True)
class _TextFormat:
    """How to read a text file."""

    names: tuple[str, ...]
    n_rows: int
    separator: str = ","  # a character, or _WHITESPACE
    decimal: str = "."
    encoding: str = "utf-8"
    is_given: bool = False  # whether the user passed the decimal mark


@dataclass(frozen=True)
class TableFile:
    r"""A table in a file, in a folder of Parquet files, or on standard input.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "t.csv").write_text("size;price\n1,5;20\n2,5;30\n")
    ...     TableFile.open(Path(folder) / "t.csv").read()
       size  price
    0   1.5     20
    1   2.5     30
    """

    names: tuple[str, ...]  # of the columns
    what: str  # the file, in messages
    text: _TextFormat | None = None  # of delimited text
    source: _Source | None = field(default=None, repr=False)  # bytes of a text file
    dataset: Any = field(default=None, repr=False)  # of Parquet and Feather files
    frame: pd.DataFrame | None = field(default=None, repr=False)  # of JSON and workbooks, which are read whole
    texts: tuple[str, ...] = ()  # columns to read as text, even where pieces look like numbers

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
        path, given = Path(path), {"separator": separator, "decimal": decimal, "encoding": encoding}
        if str(path) == "-":
            content = getattr(sys.stdin, "buffer", sys.stdin).read()
            source = _Source(path, content=content.encode() if isinstance(content, str) else bytes(content))
            text = _detect_format(source, _SEPARATORS, **given)
            return cls(text.names, str(source), text, source)
        name, mark, sheet = path.name.partition("#")
        if mark and not path.exists() and Path(name.lower()).suffix in _EXCEL:
            path = path.with_name(name)
        what = f"file {str(path)!r}"
        if not path.exists():
            siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            raise FileNotFoundError(f"{what} does not exist{did_you_mean(path.name, siblings)}")
        source, suffix = (_Source(path), ".parquet") if path.is_dir() else _source(path)
        if suffix in _TEXT:
            text = _detect_format(source, _TEXT[suffix], **given)
            return cls(text.names, what, text, source)
        for option, value in given.items():
            if value is not None:
                raise ValueError(
                    f"{option}={value!r} applies only to text files such as CSV, and {str(path)!r} is not one: "
                    "drop this argument"
                )
        if suffix in _ARROW:
            dataset, names = _arrow_dataset(path, what, _ARROW[suffix])
            return cls(names, what, dataset=dataset)
        frame = _read_json(source) if suffix in _JSON else _read_sheet(path, sheet, what)
        return cls(tuple(frame.columns), what, frame=frame)

    def __str__(self) -> str:
        return self.what

    def with_text(self, column: str) -> TableFile:
        """Return this file with a column of text, to be read as text."""
        return replace(self, texts=(*self.texts, column))

    def read(self) -> pd.DataFrame:
        """Read the whole table; raise if it has no rows."""
        if self.dataset is not None:
            with _arrow_errors(self.what):
                table = self.dataset.to_table(columns=list(self.names))
                table.validate(full=True)  # the file may come from an untrusted source
                frame = table.to_pandas(ignore_metadata=True)
        else:
            frame = next(self.frames(self.names, sys.maxsize), pd.DataFrame())
        if not len(frame):
            raise ValueError(f"{self} has no rows")
        return frame

    def frames(self, columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
        """Read some columns, at most ``rows`` rows at a time."""
        if self.text is not None:
            yield from self._text_frames(self.text, list(columns), rows)
        elif self.dataset is not None:
            options = {"batch_size": rows, "batch_readahead": 1, "fragment_readahead": 1}  # row groups may be large
            with _arrow_errors(self.what):
                for batch in self.dataset.to_batches(columns=list(columns), **options):
                    batch.validate(full=True)
                    if batch.num_rows:
                        yield batch.to_pandas(ignore_metadata=True)
        elif self.frame is not None:
            for start in range(0, len(self.frame), rows):
                yield self.frame[list(columns)].iloc[start : start + rows]

    def _text_frames(self, text: _TextFormat, columns: list[str], rows: int) -> Iterator[pd.DataFrame]:
        assert self.source is not None
        options = {
            "sep": text.separator,
            "decimal": text.decimal,
            "encoding": text.encoding,
            "names": list(self.names),
            "header": 0,
            "index_col": False,
            "usecols": columns,
            "dtype": {name: str for name in self.texts if name in columns},
            "keep_default_na": False,
            "na_values": list(ALWAYS_MISSING),
            "low_memory": False,
            "iterator": True,
        }
        try:
            with self.source.open() as stream, pd.read_csv(stream, **options) as reader:
                while len(frame := reader.read(None if rows == sys.maxsize else rows)):
                    for name in columns:
                        if name not in self.texts and frame[name].dtype.kind == "O":
                            frame[name] = _plain_numbers(frame[name], text, str(self))
                    yield frame[columns]
        except StopIteration:
            return
        except (pd.errors.ParserError, UnicodeError) as error:
            raise ValueError(
                f"{self} cannot be read as a table ({str(error).strip()}): check for an unclosed quote"
            ) from error

    def columns_on_disk(
        self, names: Sequence[str], target: str, *, rows: int = _READ_ROWS, progress: bool = False
    ) -> tuple[Columns, pd.Series]:
        """Read a table that may be larger than memory; the target stays in memory.

        At most ``rows`` rows are decoded at a time. If some pieces of a column look like numbers and others do not, the
        column of a text file is read again as text.
        """
        in_memory = 0 if self.frame is None else len(self.frame)
        n_rows = in_memory if self.dataset is None else self.dataset.count_rows()
        n_rows = n_rows if self.text is None else self.text.n_rows
        if not n_rows:
            raise ValueError(f"{self} has no rows")
        values = on_disk((n_rows, len(names)), np.float64, by_column=True)
        types: dict[str, ColumnType] = {}
        y = pd.Series()
        file, again = self, [*names, target]
        while again:
            merged = {name: _MergedColumn(name, values[:, j]) for j, name in enumerate(names) if name in again}
            parts: list[pd.Series] = []
            first = 0
            with tqdm(total=n_rows, desc="reading", unit="row", unit_scale=True, disable=not progress) as bar:
                for frame in file.frames(again, rows):
                    what = f"{self} (rows counted from row {first})" if first else str(self)
                    piece = read_columns(frame[list(merged)], what) if merged else None
                    for j, column in enumerate(merged.values()):
                        assert piece is not None
                        may_read = self.text is not None and column.name not in file.texts
                        column.add(piece.types[j], piece.column(j), first, what, may_read=may_read)
                    if target in again:
                        parts.append(frame[target])
                    first += len(frame)
                    bar.update(len(frame))
            changed = [name for name, column in merged.items() if column.has_changed]
            types |= {name: column.finished() for name, column in merged.items() if name not in changed}
            if target in again:
                y = pd.concat(parts, ignore_index=True)
                if len({part.dtype.kind == "O" for part in parts if part.notna().any()}) > 1:
                    changed.append(target)
            for name in changed:
                if self.text is None or name in file.texts:
                    raise ValueError(f"column {name!r} of {self} has different types in different rows: write one type")
                file = file.with_text(name)
            again = changed
        return Columns(values[: len(y)], tuple(types[name] for name in names)), y


class _MergedColumn:
    """One column that is read piece by piece into an array; its levels are those of all pieces."""

    def __init__(self, name: str, cells: NDArray[np.float64]) -> None:
        self.name, self.cells = name, cells
        self.type = ColumnType(name, "nothing")
        self.has_changed = False  # whether pieces have different types
        self._marks: set[str] = set()
        self._levels: dict[Level, int] = {}

    def add(self, kind: ColumnType, cells: NDArray[np.float64], first: int, what: str, *, may_read: bool) -> None:
        """Add a piece; ``may_read`` is whether texts may be numbers or dates of a file without types."""
        if kind.holds == "text" and may_read:
            kind, cells = self._read(kind, cells, what)
        self._marks.update(kind.marks)
        kind = replace(kind, marks=())
        part = self.cells[first : first + len(cells)]
        part[:] = cells
        if kind.levels is None and np.isnan(cells).all():
            return
        if self.type.holds == "nothing":
            self.type = kind
        may_differ = kind.levels is not None and self.type.levels is not None and not kind.ordered
        if kind != (replace(self.type, levels=kind.levels) if may_differ else self.type):
            self.has_changed = True
        elif kind.levels is not None:
            if len(self._levels) > MOST_TEXTS:
                self._levels.setdefault(OTHER, len(self._levels))
                codes = [self._levels.get(level, self._levels[OTHER]) for level in kind.levels]
            else:
                codes = [self._levels.setdefault(level, len(self._levels)) for level in kind.levels]
            part[:] = values_at(cells, codes)

    def _read(self, kind: ColumnType, cells: NDArray[np.float64], what: str) -> tuple[ColumnType, NDArray[np.float64]]:
        """Read the texts of a piece as numbers or dates, if they are; timestamps are often too many for levels."""
        texts = [str(level) for level in kind.levels or ()]
        numbers = None if are_codes(texts) else as_numbers(texts)
        dates = as_dates(texts) if numbers is None else {}
        if numbers is not None and not np.isnan(numbers).all():
            read, values = ColumnType(self.name), numbers
        elif len(dates) == 1:
            ((reading, values),) = dates.items()
            read = ColumnType(self.name, "dates", reading=reading)
        else:
            return kind, cells
        marks = [text for text, value in zip(texts, values, strict=True) if np.isnan(value)]
        cells = values_at(cells, values)
        check_range(cells[:, None], [self.name], what)
        return replace(read, marks=(*kind.marks, *marks)), cells

    def finished(self) -> ColumnType:
        """Sort the levels, unless they have an order, and return the type of the whole column."""
        kind, levels = replace(self.type, marks=tuple(sorted(self._marks))), list(self._levels)
        if not levels:
            return kind
        order = range(len(levels)) if kind.ordered else sorted(range(len(levels)), key=lambda i: levels[i])
        self.cells[:] = values_at(self.cells, np.argsort(order))
        return replace(kind, levels=tuple(levels[i] for i in order))


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


# --- the format of delimited text ----------------------------------------------------------------------


def _detect_format(
    source: _Source, separators: Sequence[str], separator: str | None, decimal: str | None, encoding: str | None
) -> _TextFormat:
    """Detect the format of a text file, and check all its lines; options that the user passed take precedence."""
    separator = {" ": _WHITESPACE, r"\t": "\t"}.get(separator or "", separator)
    if separator not in (None, _WHITESPACE) and not re.fullmatch(r'[^\w"\r\n.+-]', separator):
        raise ValueError(f"separator={separator!r} must be one character, such as ',', ';', '|', ' ' or '\\t'")
    if decimal not in (None, ".", ",") or decimal == separator == ",":
        raise ValueError(f"decimal={decimal!r} must be '.' or ',', and not the separator")
    for name in (encodings := _encodings(source, encoding)):
        try:
            detected = _detect(source, separators if separator is None else [separator], decimal, name)
        except UnicodeError as error:
            if name == encodings[-1]:
                advice = "save it again in a single encoding" if encoding is None else "pass another encoding"
                raise ValueError(f"{source} is not valid {encoding or name} ({error}): {advice}") from None
        except csv.Error as error:
            raise ValueError(f"{source} cannot be read as a table ({error}): check for an unclosed quote") from None
        else:
            break
    if encoding is None and (title := _ENCODING_NAMES.get(name)):
        warn_user(f"{source} is not UTF-8 and was read as {title}: pass its encoding if characters look wrong")
    return detected


def _encodings(source: _Source, encoding: str | None) -> Sequence[str]:
    """Return the encodings to try: only one if the file starts with a byte order mark or an encoding is passed."""
    known = encoding or "utf-8"
    try:
        null = "\0".encode(known)
    except LookupError:
        raise ValueError(f"encoding={encoding!r} is unknown: try 'utf-8', 'cp1252' or 'utf-16'") from None
    with source.open() as stream:
        start = bytes(stream.read(4096))
    mark = next((name for mark, name in _BYTE_ORDER_MARKS if start.startswith(mark)), None)
    if mark is not None:
        return (mark,)
    control = _CONTROL.search(start)
    if control is not None and null == b"\0":  # not UTF-16 or UTF-32
        raise ValueError(
            f"{source} is not text: byte {control.start()} is 0x{control[0].hex()}; pass a CSV, Parquet, Feather, JSON "
            "lines or Excel file with the right suffix, or encoding='utf-16-le'"
        )
    return (known,) if encoding is not None else ("utf-8", *_ENCODING_NAMES)


def _detect(source: _Source, separators: Sequence[str], decimal: str | None, encoding: str) -> _TextFormat:
    what = str(source)
    with source.lines(encoding) as text:
        sample = list(islice(text, _FIRST_LINES))
    separator = _separator_of(sample, separators)
    with source.lines(encoding) as text:
        rows = list(islice(_rows(text, separator), _FIRST_ROWS))
    if not rows:
        raise ValueError(f"{source} cannot be read as a table: it is empty")
    first, header = rows[0]
    names = _column_names(header, what, f"line {first}")
    with source.lines(encoding) as text:
        n_rows = _checked_rows(text, separator, first, len(names), what)
    cells = pd.DataFrame([row for _, row in rows[1:]], columns=pd.Index(names, dtype=object), dtype=object)
    mark = decimal or _decimal_mark(cells, separator, what)
    return _TextFormat(names, n_rows, separator, mark, encoding, decimal is not None)


def _rows(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Split lines into cells; yield the number of each row's first line and its cells, without blank lines."""
    spaces = separator == _WHITESPACE
    if spaces:
        lines = (line.strip().replace("\t", " ") + "\n" for line in lines)
    reader, first = csv.reader(lines, delimiter=" " if spaces else separator, skipinitialspace=spaces), 1
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield first, cells
        first = reader.line_num + 1


def _separator_of(lines: Sequence[str], separators: Sequence[str]) -> str:
    """Return the separator that gives most rows the same length, that of the header if possible."""
    best, best_score, lone = "", (False, 0.0, 1, 0.0), ""
    for separator in separators:
        try:
            width, *lengths = [len(cells) for _, cells in _rows(lines, separator)] or [1]
            some = [cell for _, cells in islice(_rows(lines, separator), 1, 50) for cell in cells]
        except csv.Error:  # cells too long for the parser
            continue
        usual = Counter(lengths).most_common(1)[0][0] if lengths else width
        usual = width if 2 * lengths.count(width) >= len(lengths) else usual
        share = lengths.count(usual) / len(lengths) if lengths else 1.0
        numeric = sum(is_number(cell, ".") or is_number(cell, ",") for cell in some) / max(len(some), 1)
        is_decimals = separator == "," and width == 1 and usual == 2 and numeric == 1  # one column of decimal commas
        is_words = separator == _WHITESPACE and (width == 1 or best_score[0])  # in cells
        score = (usual == width, share, usual, numeric)
        if usual > 1 and share >= 0.5 and score > best_score and not (is_decimals or is_words):
            best, best_score = separator, score
        if width == usual == 1 == share and separator != _WHITESPACE:
            lone = lone or separator
    return best or lone or separators[0]


def _column_names(header: Sequence[str], what: str, where: str) -> tuple[str, ...]:
    """Return the names of the columns; raise for duplicate names and for a first row of numbers."""
    is_numbers = all(is_number(name, ".") or is_number(name, ",") for name in header)
    if is_numbers and list(header) != [str(j) for j in range(len(header))]:
        shown = ", ".join(header[:3]) + (", ..." if len(header) > 3 else "")
        raise ValueError(f"{where} of {what} has only numbers ({shown}): add a first line with the column names")
    n_named = sum(bool(name.strip()) for name in header)
    if n_named < len(header) - 1 and 2 * n_named < len(header):
        raise ValueError(
            f"{where} of {what} names {n_named} of {len(header)} columns: the first line must name every column; "
            "delete titles and comments"
        )
    names = tuple(name if name.strip() else f"Unnamed: {j}" for j, name in enumerate(header))
    for name, count in Counter(names).items():
        if count > 1:
            columns = " and ".join(str(j + 1) for j, other in enumerate(names) if other == name)
            raise ValueError(f"{what} has {count} columns named {name!r} ({columns}): rename them in {where}")
    return names


def _checked_rows(lines: TextIO, separator: str, first: int, n_columns: int, what: str) -> int:
    """Return the number of rows; raise for the first with more or fewer values than the header."""
    n_rows = -1  # without the header
    for line, length in _lengths(lines, separator):
        if length != n_columns:
            marks = _NAMES.get(separator, repr(separator))
            advice = "the first line must name every column; delete titles and comments"
            if n_rows > 0:
                advice = f"correct the line, or put quotes around text that contains {marks}"
            counts = [f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in ((length, "value"), (n_columns, "name"))]
            raise ValueError(
                f"line {line} of {what} has {counts[0]} between {marks}, but line {first} has {counts[1]}: {advice}"
            )
        n_rows += 1
    return n_rows


def _lengths(lines: TextIO, separator: str) -> Iterator[tuple[int, int]]:
    """Yield line numbers and the number of values of each line, with a fast path before the first quote."""
    blank = " \t\r\n".replace(separator, "")
    for number, line in enumerate(lines, 1):
        if '"' in line:
            for first, cells in _rows(chain([line], lines), separator):
                yield number + first - 1, len(cells)
            return
        if line.strip(blank):
            yield number, len(line.split()) if separator == _WHITESPACE else line.count(separator) + 1


def _decimal_mark(cells: pd.DataFrame, separator: str, what: str) -> str:
    """Return the decimal mark of the columns that contain only numbers; raise if it is ambiguous."""
    certain: dict[str, str] = {}  # such as 1,5 and 1.234.567 for a comma
    unclear: dict[str, str] = {}  # such as 1,234
    for name, column in cells.items():
        texts = [text for text in map(str.strip, column.unique()) if text not in MISSING_MARKS and not text.isdecimal()]
        marks = [[mark for mark in ".," if is_number(text, mark)] for text in texts]
        for text, possible in zip(texts, marks if all(marks) else (), strict=False):
            if len(possible) == 1:
                certain.setdefault(possible[0], f"{text!r} in column {name!r}")
            elif "," in text or "." in text:
                unclear.setdefault("," if "," in text else ".", f"{text!r} in column {name!r}")
    advice = "pass decimal='.' or decimal=',' (--decimal)"
    if len(certain) == 2:
        raise ValueError(f"{what} has {certain['.']} and {certain[',']}: {advice}")
    if not certain and "," in unclear and separator == ",":
        warn_user(
            f"{what} has {unclear[',']}, read with a thousands separator: pass decimal=',' if it is a decimal comma"
        )
    elif not certain and ("," in unclear or ("." in unclear and separator == ";")):
        example = unclear.get(",", unclear.get("."))
        raise ValueError(f"{what} has {example}, which may have decimals or a thousands separator: {advice}")
    return next(iter(certain), ".")


def _plain_numbers(column: pd.Series, text: _TextFormat, what: str) -> pd.Series:
    """Convert a column of numbers with thousands separators or decimal commas, as text, to plain numbers.

    Text that marks missing values is unchanged. Numbers with a decimal mark other than the detected one raise.
    """
    decimal = text.decimal
    different: list[Any] = list(column.dropna().unique())  # integers beyond 64 bits are objects, not text
    stripped = [str(cell).strip() for cell in different]
    numbers = [cell for cell in stripped if cell not in MISSING_MARKS]
    if numbers and all(is_number(cell, decimal) for cell in numbers):
        plain = [c if c in MISSING_MARKS else re.sub(GROUPS[decimal], "", c).replace(",", ".") for c in stripped]
        marked = column.map(dict(zip(different, plain, strict=True)))
        return marked if len(numbers) < len(stripped) else marked.astype("float64")
    other = "." if decimal == "," else ","
    if numbers and not text.is_given and all(is_number(cell, other) for cell in numbers):
        example = next(cell for cell in numbers if not is_number(cell, decimal))
        raise ValueError(
            f"{what} has {example!r} in column {column.name!r}, but numbers are read with decimal={decimal!r}: "
            f"pass decimal={other!r}, or decimal={decimal!r} if it is not a number"
        )
    return column


# --- bytes, JSON, workbooks, Parquet and Feather -------------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """The bytes of a file, compressed or not, or of standard input; it can be opened as often as needed."""

    path: Path
    compression: str = ""
    member: str = ""  # of a zip
    content: bytes | None = field(default=None, repr=False)  # of standard input

    def __str__(self) -> str:
        return "standard input" if self.content is not None else f"file {str(self.path)!r}"

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the bytes for reading; damaged compressed files raise a ValueError."""
        try:
            with self._stream() as stream:
                yield stream
        except _DAMAGES as error:
            if not self.compression or getattr(error, "errno", None) not in (None, errno.EINVAL):
                raise
            reason = " ".join(str(error).split()) or "it is truncated"
            raise ValueError(
                f"{self} cannot be decompressed as {self.compression} ({reason}): get a new copy of the file"
            ) from None

    def _stream(self) -> Any:
        if self.content is not None:
            return io.BytesIO(self.content)
        if self.compression == ".zip":
            return zipfile.ZipFile(self.path).open(self.member)
        if self.compression == ".zst":
            pa = _imported("pyarrow", "arrow", "reading .zst")
            return pa.CompressedInputStream(pa.OSFile(str(self.path)), "zstd")
        openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
        return openers.get(self.compression, open)(self.path, "rb")

    @contextmanager
    def lines(self, encoding: str) -> Iterator[io.TextIOWrapper]:
        """Open the file as text, with line ends unchanged."""
        with self.open() as stream, io.TextIOWrapper(stream, encoding=encoding, newline="") as text:
            yield text


def _imported(package: str, extra: str, use: str) -> Any:
    try:
        return __import__(package)
    except ImportError:
        raise ImportError(f"{use} needs the package {package}: pip install 'castlereg[{extra}]'") from None


def _source(path: Path) -> tuple[_Source, str]:
    """Return the bytes of a file and the suffix of its table."""
    what = f"file {str(path)!r}"
    if not path.is_file():
        raise ValueError(f"{what} is not a regular file: pipe the table to standard input, and pass - as the path")
    name = Path(path.name.lower())
    compression, suffix, member = "", name.suffix, ""
    if suffix in _COMPRESSIONS:
        compression, suffix = suffix, Path(name.stem).suffix
    if compression == ".zip":
        member = _table_in_zip(path, what)
        suffix = Path(member.lower()).suffix or suffix
    if compression and suffix not in _COMPRESSIBLE:
        advice = "unpack it first" if suffix in _SUFFIXES else "rename it to show its format, such as table.csv.gz"
        raise ValueError(f"{what} is a compressed file of format {suffix!r}, which cannot be read: {advice}")
    if suffix not in _SUFFIXES:
        raise ValueError(
            f"{what} has the suffix {path.suffix!r}, which is not supported: pass a file that ends in "
            f"{', '.join(_SUFFIXES)} (text and JSON also with {', '.join(_COMPRESSIONS)}), or a folder of Parquet files"
        )
    return _Source(path, compression, member), suffix


def _table_in_zip(path: Path, what: str) -> str:
    """Return the name of the only table in a zip; raise if it would expand to an absurd size."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if not info.is_dir()]
    except (*_DAMAGES, ValueError, IndexError) as error:
        raise ValueError(f"{what} is not a valid zip archive ({error}): get a new copy of the file") from None
    packed, unpacked = sum(info.compress_size for info in members), sum(info.file_size for info in members)
    if unpacked > _LARGEST_UNPACKED and unpacked > _LARGEST_RATIO * packed:
        raise ValueError(
            f"{what} would expand from {packed:,} to {unpacked:,} bytes: if this is right, unpack it first"
        )
    names = [PurePosixPath(info.filename) for info in members if info.filename.strip("./")]
    names = [name for name in names if "__MACOSX" not in name.parts and not name.name.startswith(".")]
    tables = [str(name) for name in names if name.suffix.lower() in _COMPRESSIBLE] or list(map(str, names))
    if len(tables) != 1:
        contents = (
            f"{len(tables)} tables ({', '.join(map(repr, tables[:10]))}): unpack it and" if tables else "no table:"
        )
        raise ValueError(f"{what} contains {contents} pass a file that ends in {', '.join(_COMPRESSIBLE)}")
    return tables[0]


def _read_json(source: _Source) -> pd.DataFrame:
    """Read one record per line, or an array of records; absent fields are missing values."""
    where = ""
    try:
        with source.lines("utf-8-sig") as lines:
            text = lines.read()
        if text.lstrip().startswith("["):
            records = json.loads(text)
        else:
            records = []
            for number, line in enumerate(text.splitlines(), 1):
                where = f"line {number} of "
                if line.strip():
                    records.append(json.loads(line))
        names = list(dict.fromkeys(name for record in records for name, _ in record.items()))
    except (ValueError, RecursionError, AttributeError) as error:
        raise ValueError(
            f"{where}{source} cannot be read as JSON ({' '.join(str(error).split())}): write one record per line, or "
            "an array of records, in UTF-8"
        ) from None
    if not names:
        raise ValueError(f"{source} has no rows")
    return pd.DataFrame({name: pd.Series([record.get(name) for record in records]) for name in names})


def _read_sheet(path: Path, sheet: str, what: str) -> pd.DataFrame:
    """Read one sheet, by default the first, with a warning if there are others; its first row has the column names."""
    _imported("openpyxl", "excel", "reading Excel")
    try:
        with pd.ExcelFile(path, engine="openpyxl") as book:
            sheets = [str(name) for name in book.sheet_names]
            name = sheet or sheets[0]
            options = {"header": None, "dtype": object, "keep_default_na": False, "na_values": list(ALWAYS_MISSING)}
            cells = pd.read_excel(book, sheet_name=name, **options) if name in sheets else None
    except Exception as error:  # openpyxl does not validate files and may raise anything
        reason = " ".join(str(error).split())
        raise ValueError(f"{what} cannot be read as an Excel workbook ({reason})") from None
    if cells is None:
        hint = did_you_mean(name, sheets) or f"; its sheets are {', '.join(map(repr, sheets))}"
        raise ValueError(f"{what} has no sheet {name!r}{hint}")
    if not sheet and len(sheets) > 1:
        warn_user(
            f"{what} has {len(sheets)} sheets, and only the first, {name!r}, is read: to read another, append its "
            f"name, such as '...xlsx#{sheets[1]}'"
        )
    cells = cells.dropna(how="all").dropna(how="all", axis=1)
    if cells.empty:
        raise ValueError(f"sheet {name!r} of {what} cannot be read as a table: it is empty")
    header = ["" if pd.isna(cell) else str(cell) for cell in cells.iloc[0]]
    names = _column_names(header, what, f"row {int(cells.index[0]) + 1} of sheet {name!r}")
    columns = [pd.Series(cells.iloc[1:, j].tolist()) for j in range(len(names))]
    return pd.DataFrame(dict(zip(names, columns, strict=True)))


def _arrow_dataset(path: Path, what: str, kind: str) -> tuple[Any, tuple[str, ...]]:
    """Open a Parquet or Feather file, or a folder of Parquet files; return the dataset and its column names."""
    pa = _imported("pyarrow", "arrow", f"reading {kind}")
    import pyarrow.dataset as ds

    files = [path]
    if path.is_dir():
        hidden = [part for part in path.rglob("*") if any(n[0] in "._" for n in part.relative_to(path).parts)]
        files = sorted(p for p in path.rglob("*") if _ARROW.get(p.suffix.lower()) == kind and p not in hidden)
        if not files:
            raise ValueError(f"{what} is a folder without Parquet files (*.parquet): pass another folder, or a file")
    with _arrow_errors(what, f"is not a {kind} file, or its files have different columns"):
        schemas = [ds.dataset(str(file), format=kind.lower()).schema for file in files]
        if any(set(schema.names) != set(schemas[0].names) for schema in schemas):
            raise pa.ArrowInvalid("columns differ between files")
        schema = pa.unify_schemas(schemas, promote_options="permissive")
        dataset = ds.dataset([str(file) for file in files], schema=schema, format=kind.lower())
        index = (schema.pandas_metadata or {}).get("index_columns", [])  # which pandas wrote
    return dataset, tuple(n for n in schema.names if n not in index and not n.startswith("__index_level_"))


@contextmanager
def _arrow_errors(what: str, state: str = "is damaged") -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise ValueError(f"{what} {state} ({' '.join(str(error).split())}): get a new copy") from None


# --- writing -------------------------------------------------------------------------------------------


def check_table_suffix(path: Path) -> None:
    """Raise if :func:`write_table` does not support the suffix, or if a required package is not installed."""
    name = Path(path.name.lower())
    if name.suffix not in _WRITERS and (name.suffix, Path(name.stem).suffix) not in [(".gz", s) for s in _TEXT_WRITERS]:
        *others, last = (suffix for suffix in _WRITERS if suffix not in _TEXT_WRITERS)
        raise ValueError(
            f"cannot write a table to {str(path)!r}: use a name that ends in {', '.join(_TEXT_WRITERS)} (each also "
            f"with .gz), {', '.join(others)} or {last}"
        )
    package, extra = ("openpyxl", "excel") if name.suffix == ".xlsx" else ("pyarrow", "arrow")
    if name.suffix not in (*_TEXT_WRITERS, ".gz") and find_spec(package) is None:
        raise ImportError(f"writing {name.suffix} needs the package {package}: pip install 'castlereg[{extra}]'")


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table without its index; the file appears only once it is complete."""
    check_table_suffix(path)
    name = Path(path.name.lower())
    with atomic_write(path) as file:
        if name.suffix != ".gz":
            _WRITERS[name.suffix](frame, file)
        else:
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:  # same table, same bytes
                _WRITERS[Path(name.stem).suffix](frame, cast(IO[bytes], packed))


def _write_json_lines(frame: pd.DataFrame, file: IO[bytes]) -> None:
    """Write one JSON object per row: dates as ISO text, numbers in full precision, null for NaN and infinity."""
    names, infinite = [str(name) for name in frame.columns], (float("inf"), float("-inf"))
    for row in zip(*(frame.iloc[:, j] for j in range(len(names))), strict=True):
        cells = [None if pd.isna(value) or value in infinite else value for value in row]
        record = dict(zip(names, cells, strict=True))
        file.write(json.dumps(record, ensure_ascii=False, allow_nan=False, default=_as_json).encode() + b"\n")


def _as_json(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def _write_excel(frame: pd.DataFrame, file: IO[bytes]) -> None:
    from openpyxl.utils.exceptions import IllegalCharacterError

    zoned = {name: str for name, dtype in frame.dtypes.items() if isinstance(dtype, pd.DatetimeTZDtype)}
    content = io.BytesIO()
    try:
        with pd.ExcelWriter(content, engine="openpyxl") as book:
            # Excel does not support time zones.
            frame.astype(zoned).mask(frame.isna()).to_excel(book, sheet_name="table", index=False)
            for row in book.sheets["table"].iter_rows():
                for cell in row:
                    if cell.data_type == "f":  # text that starts with =
                        cell.data_type = "s"
    except IllegalCharacterError as error:
        raise ValueError(f"Excel cannot hold the control character in {str(error)!r}: write a CSV") from None
    file.write(content.getvalue())


_Writer = Callable[[pd.DataFrame, IO[bytes]], None]
_TEXT_WRITERS: dict[str, _Writer] = {
    ".csv": lambda frame, file: frame.to_csv(file, index=False, encoding="utf-8"),
    **dict.fromkeys((".tsv", ".tab"), lambda frame, file: frame.to_csv(file, index=False, sep="\t", encoding="utf-8")),
    **dict.fromkeys((".jsonl", ".ndjson"), _write_json_lines),
}
_WRITERS: dict[str, _Writer] = _TEXT_WRITERS | {
    **dict.fromkeys((".parquet", ".pq"), lambda frame, file: frame.to_parquet(file, index=False)),
    **dict.fromkeys((".feather", ".arrow"), lambda frame, file: frame.reset_index(drop=True).to_feather(file)),
    ".xlsx": _write_excel,
}
