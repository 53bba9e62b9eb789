r"""The format of a table in a text file: encoding, separator, names and decimal mark, detected unless passed.

Nothing is guessed silently: an ambiguous file raises an error that names the option to pass.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from castlereg.notices import warn_user
from castlereg.table.byte_streams import ByteSource
from castlereg.table.number_marks import decimal_of, is_number

SEPARATORS = (",", ";", "\t", "|")
WHITESPACE = r"\s+"
_SAMPLE = 1 << 16  # characters in which the format is detected
_PIECE = 10_000  # rows searched for a decimal mark at a time
_FIRST_ROWS = 500  # in which the separator is detected
_BLANK = " \t\r\n"
_WORD = re.compile(f"[^{_BLANK}]+")
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", WHITESPACE: "spaces"}
# UTF-32 first: its mark starts with that of UTF-16.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")


@dataclass(frozen=True)
class TextFormat:
    """How to read a text file."""

    names: tuple[str, ...]
    separator: str = ","  # a character, or WHITESPACE
    decimal: str = "."
    encoding: str = "utf-8"
    is_given: bool = False  # whether the user passed the decimal mark


def detect(
    source: ByteSource,
    separators: Sequence[str],
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> TextFormat:
    r"""Detect the format of a text file, and check all its lines; options that are passed take precedence.

    Examples
    --------
    >>> from pathlib import Path
    >>> detect(ByteSource(Path("-"), content=b"size;price\n1,5;20\n"), SEPARATORS)
    TextFormat(names=('size', 'price'), separator=';', decimal=',', encoding='utf-8', is_given=False)
    """
    separator = _checked_separator(separator)
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal={decimal!r} must be '.' or ','")
    if decimal == separator == ",":
        raise ValueError("separator and decimal cannot both be ',': pass those that the file uses")
    encodings = _encodings(source, encoding)
    for name in encodings:
        try:
            detected = _detect(source, separators, separator, decimal, name)
        except UnicodeError as error:
            if name != encodings[-1]:
                continue
            advice = "save it again in a single encoding" if encoding is None else "pass another encoding"
            raise ValueError(f"{source} is not valid {encoding or name} ({error}): {advice}") from None
        except csv.Error as error:
            raise ValueError(f"{source} cannot be read as a table ({error}): check for an unclosed quote") from None
        if encoding is None and name in ("cp1252", "latin-1"):
            shown = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}[name]
            warn_user(f"{source} is not UTF-8 and was read as {shown}: pass its encoding if characters look wrong")
        break
    return detected


def _detect(
    source: ByteSource, separators: Sequence[str], separator: str | None, decimal: str | None, encoding: str
) -> TextFormat:
    with source.lines(encoding) as text:
        sample = _whole_lines(text, _SAMPLE)
    if not any(line.strip() for line in sample):
        raise ValueError(f"{source} cannot be read as a table: it is empty")
    detected = separator_of(sample, separators, str(source)) if separator is None else separator
    (first, header), *rows = rows_of(sample, detected)
    if separator is not None and len(header) == 1:
        better = separator_of(sample, separators, str(source))
        if len(next(rows_of(sample, better))[1]) > 1:
            raise ValueError(f"separator={separator!r} is not in line {first} of {source}, which has {_NAMES[better]}")
    with source.lines(encoding) as text:
        _check_lines(text, detected, len(header), str(source))
    names = column_names(header, str(source), f"line {first}")
    rows = [
        (line, cells) for line, cells in rows if len(cells) == len(names)
    ]  # the sample may end within a quoted cell
    mark = decimal_of(names, chain([rows], _pieces(source, encoding, detected)), detected, str(source), decimal)
    return TextFormat(names, detected, mark, encoding, decimal is not None)


def _checked_separator(separator: str | None) -> str | None:
    if separator in (None, WHITESPACE):
        return separator
    if separator in (" ", r"\t"):
        return {" ": WHITESPACE, r"\t": "\t"}[separator]
    if not isinstance(separator, str) or len(separator) != 1 or separator.isalnum() or separator in '"\r\n.+-_':
        raise ValueError(f"separator={separator!r} must be one character, such as ',', ';', '|', ' ' or '\\t'")
    return separator


def _encodings(source: ByteSource, encoding: str | None) -> Sequence[str]:
    """Return the encodings to try: only one if the file starts with a byte order mark or an encoding is passed."""
    start = source.start()
    mark = next((name for mark, name in _BYTE_ORDER_MARKS if start.startswith(mark)), None)
    if encoding is not None:
        try:
            known = codecs.lookup(encoding).name
            "".encode(known)
        except LookupError:
            raise ValueError(f"encoding={encoding!r} is unknown: try 'utf-8', 'cp1252' or 'utf-16'") from None
        if mark is not None and not known.startswith(mark.removesuffix("-sig")):
            raise ValueError(f"encoding={encoding!r} does not match {source}, which has the byte order mark of {mark}")
    if mark is not None:
        return (mark,)
    control = _CONTROL.search(start)
    if encoding is not None and "\0".encode(known) != b"\0":
        control = None  # UTF-16 and UTF-32
    if control is not None:
        hint = "; if it is UTF-16, pass encoding='utf-16-le' or 'utf-16-be'" if control[0] == b"\0" else ""
        raise ValueError(
            f"{source} is not text: byte {control.start()} is 0x{control[0].hex()}; "
            f"pass a CSV, Parquet, Feather, JSON lines or Excel file{hint}"
        )
    return ("utf-8", "cp1252", "latin-1") if encoding is None else (known,)


def _whole_lines(text: io.TextIOWrapper, most: int) -> list[str]:
    """Return the first lines, complete, including further lines of a quoted cell at the end."""
    sample = text.read(most) + text.readline()
    lines = io.StringIO(sample, newline="").readlines()
    is_open, more = sample.count('"') % 2, csv.field_size_limit()
    while is_open and more > 0 and (line := text.readline()):
        lines.append(line)
        is_open, more = is_open ^ line.count('"') % 2, more - len(line)
    return lines


def _pieces(source: ByteSource, encoding: str, separator: str) -> Iterator[list[tuple[int, list[str]]]]:
    """Yield the rows after the header, some at a time; nothing if the file has no decimal mark to find."""
    with source.lines(encoding) as text:
        text.readline()
        if not any("," in block or "." in block for block in iter(lambda: text.read(1 << 20), "")):
            return
    with source.lines(encoding) as text:
        rows = islice(rows_of(text, separator), 1, None)
        while piece := list(islice(rows, _PIECE)):
            yield piece


def rows_of(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Split lines into cells; yield the line number at which each row starts, from 1, and its cells."""
    if separator == WHITESPACE:
        lines = (line.strip(_BLANK).replace("\t", " ") + "\n" for line in lines)
    reader = csv.reader(
        lines, delimiter=" " if separator == WHITESPACE else separator, skipinitialspace=separator == WHITESPACE
    )
    first = 1
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield first, cells
        first = reader.line_num + 1


def separator_of(lines: Sequence[str], separators: Sequence[str], what: str) -> str:
    r"""Return the separator that makes most rows as long as the header, with most columns; any for a single column.

    Examples
    --------
    >>> separator_of(["size;price, EUR\n", "1,5;20\n"], [",", ";"], "file")
    ';'
    """
    best, best_score = "", (0.0, 1, 0.0)
    lone = ""
    tables = _tables(lines, separators)
    if not tables:
        raise ValueError(f"{what} cannot be read as a table: it has blank lines only")
    for separator, ((_, header), *rows) in tables.items():
        fitting = sum(len(cells) == len(header) for _, cells in rows) / len(rows) if rows else 1.0
        cells = [cell for _, row in rows[:50] for cell in row]
        numeric = sum(is_number(cell, ".") or is_number(cell, ",") for cell in cells) / max(len(cells), 1)
        score = (fitting, len(header), numeric)
        if len(header) > 1 and fitting >= 0.5 and score > best_score and not (best and separator == WHITESPACE):
            best, best_score = separator, score
        if len(header) == 1 and fitting == 1 and not lone and separator != WHITESPACE:
            lone = separator
    if best:
        return best
    for separator, ((first, header), *rows) in tables.items():
        lengths = Counter(len(cells) for _, cells in rows)
        length, count = lengths.most_common(1)[0] if rows else (1, 0)
        if separator == "," and len(header) == 1 and all(is_number(",".join(cells), ",") for _, cells in rows):
            continue  # one column of numbers with decimal commas
        if length > 1 and 2 * count >= len(rows) and (len(header) > 1 or separator != WHITESPACE):
            line = next(number for number, cells in rows if len(cells) == length)
            raise ValueError(
                f"line {first} of {what} has {_counted(len(header), 'name')}, but line {line} has {length} values "
                f"between {_NAMES[separator]}: the first line must name every column; delete titles and comments"
            )
    return lone or next(iter(tables))


def _tables(lines: Sequence[str], separators: Sequence[str]) -> dict[str, list[tuple[int, list[str]]]]:
    """Split the first rows by each separator; omit separators that leave cells too long for the parser."""
    tables, wrong = {}, None
    for separator in separators:
        try:
            tables[separator] = list(islice(rows_of(lines, separator), _FIRST_ROWS))
        except csv.Error as error:
            wrong = error
    if wrong is not None and not tables:
        raise wrong
    return {separator: rows for separator, rows in tables.items() if rows}


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


def column_names(header: Sequence[str], what: str, where: str) -> tuple[str, ...]:
    """Return the names of the columns; raise for duplicate names and for a first row of numbers.

    Examples
    --------
    >>> column_names(["a", "a.1", "b"], "file 't.csv'", "line 1")
    ('a', 'a.1', 'b')
    >>> column_names(["a", "b", "a"], "file 't.csv'", "line 1")
    Traceback (most recent call last):
    ...
    ValueError: file 't.csv' has 2 columns named 'a' (1 and 3): rename them in line 1
    """
    if header[0].lower().startswith("sep=") and len(header) <= 2:
        raise ValueError(f"{where} of {what} is a 'sep=' line, which has no column names: delete it")
    if all(is_number(name, ".") or is_number(name, ",") for name in header) and list(header) != [
        str(j) for j in range(len(header))
    ]:
        raise ValueError(
            f"{where} of {what} has only numbers ({', '.join(header[:3])}{', ...' if len(header) > 3 else ''}): "
            "add a first line with the column names"
        )
    names = tuple(name if name.strip() else f"Unnamed: {j}" for j, name in enumerate(header))
    unnamed = [name for name, given in zip(names, header, strict=True) if not given.strip()]
    if len(unnamed) > 1 and 2 * len(unnamed) > len(names):
        raise ValueError(
            f"{where} of {what} names {len(names) - len(unnamed)} of {len(names)} columns: the first line must name "
            "every column; delete titles and comments"
        )
    for name, count in Counter(names).items():
        if count > 1:
            columns = " and ".join(str(j + 1) for j, other in enumerate(names) if other == name)
            raise ValueError(f"{what} has {count} columns named {name!r} ({columns}): rename them in {where}")
    return names


def _check_lines(lines: io.TextIOWrapper, separator: str, n_columns: int, what: str) -> None:
    """Raise for the first line with more or fewer values than columns."""
    for line, length in _lengths(lines, separator):
        if length != n_columns:
            raise ValueError(
                f"line {line} of {what} has {_counted(length, 'value')}, but the header has "
                f"{_counted(n_columns, 'name')}: correct the line, or put quotes around text that contains "
                f"{_NAMES.get(separator, repr(separator))}"
            )


def _lengths(lines: io.TextIOWrapper, separator: str) -> Iterator[tuple[int, int]]:
    """Yield line numbers and the number of values of each line, with a fast path before the first quote."""
    blank = _BLANK.replace(separator, "")
    for number, line in enumerate(lines, 1):
        if '"' in line:
            for first, cells in rows_of(chain([line], lines), separator):
                yield number + first - 1, len(cells)
            return
        if line.strip(blank):
            yield number, len(_WORD.findall(line)) if separator == WHITESPACE else line.count(separator) + 1
