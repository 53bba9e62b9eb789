"""Numbers with decimal commas or thousands separators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pandas as pd

from castlereg.notices import warn_user
from castlereg.table.texts import MISSING_MARKS

_GROUPS = {".": r"[, \u00a0\u202f'’]", ",": r"[. \u00a0\u202f'’]"}  # thousands separators, by decimal mark  # noqa: RUF001
_NUMBERS = {
    mark: re.compile(
        rf"[+-]?(?:(?:\d+(?:[{mark}]\d*)?|[{mark}]\d+)(?:[eE][+-]?\d+)?"
        rf"|[1-9]\d{{0,2}}({groups})\d{{3}}(?:\1\d{{3}})*(?:[{mark}]\d*)?)"
    )
    for mark, groups in _GROUPS.items()
}
_OTHER = {".": ",", ",": "."}


def is_number(text: str, decimal: str) -> bool:
    """Return whether a text is a number, with or without thousands separators.

    Examples
    --------
    >>> [is_number(text, ".") for text in ("1,234.5", "1.234,5", "1 234", "01.02.2024", "1,5")]
    [True, False, True, False, False]
    """
    return _NUMBERS[decimal].fullmatch(text.strip()) is not None


def decimal_of(
    names: Sequence[str],
    pieces: Iterable[Sequence[tuple[int, list[str]]]],
    separator: str,
    what: str,
    given: str | None,
) -> str:
    """Return the decimal mark of the columns that contain only numbers; raise if it is ambiguous.

    ``1,5`` and ``1.234.567`` imply a comma, ``1.5`` and ``1,234,567`` a point; ``1,234`` is ambiguous. Pieces are
    rows with their line numbers. Pieces after the first are read until a mark is certain, unless commas separate cells.
    """
    certain: dict[str, str] = {}
    unclear_of: dict[int, dict[str, str]] = {j: {} for j in range(len(names))}  # columns of numbers, so far
    for rows in pieces:
        columns = list(zip(*(row for _, row in rows), strict=True)) or [()] * len(names)
        for j in list(unclear_of):
            cells = dict.fromkeys(cell.strip() for cell in dict.fromkeys(columns[j]) if not cell.isdecimal())
            numbers = [cell for cell in cells if cell not in MISSING_MARKS]
            if not all(is_number(cell, ".") or is_number(cell, ",") for cell in numbers):
                del unclear_of[j]
                continue
            for cell in numbers:
                marks = [mark for mark in ".," if is_number(cell, mark)]
                if len(marks) == 1:
                    examples, mark = certain, marks[0]
                elif "," in cell or "." in cell:
                    examples, mark = unclear_of[j], "," if "," in cell else "."
                else:
                    continue
                if mark not in examples:
                    line = next(line for line, row in rows if row[j].strip() == cell)
                    examples[mark] = f"{cell!r} in column {names[j]!r} of line {line}"
        if certain or given is not None or separator == ",":
            break
    unclear = {mark: shown for column in reversed(unclear_of.values()) for mark, shown in column.items()}
    if given is not None:
        if _OTHER[given] in certain and given not in certain:
            raise ValueError(f"decimal={given!r} is not the decimal mark of {what}, which has {certain[_OTHER[given]]}")
        return given
    if len(certain) == 2:
        raise ValueError(f"{what} has {certain['.']} and {certain[',']}: pass decimal='.' or decimal=',' (--decimal)")
    if certain:
        return next(iter(certain))
    if "," in unclear and separator == ",":
        warn_user(
            f"{what} has {unclear[',']}, read with a thousands separator: pass decimal=',' if it is a decimal comma"
        )
    elif "," in unclear or ("." in unclear and separator == ";"):
        shown = unclear["," if "," in unclear else "."]
        raise ValueError(
            f"{what} has {shown}, which may have decimals or a thousands separator: pass decimal='.' or decimal=',' "
            "(--decimal)"
        )
    return "."


def plain_numbers(column: pd.Series, decimal: str, what: str, *, is_given: bool = False) -> pd.Series:
    """Convert a column of text that contains numbers with thousands separators or decimal commas to plain numbers.

    Text that marks missing values is unchanged. A column of numbers with the other decimal mark raises, unless the user
    passed the mark (``is_given``).

    Examples
    --------
    >>> plain_numbers(pd.Series(["1.234,5", "12"]), ",", "file").tolist()
    [1234.5, 12.0]
    """
    different = column.dropna().unique()  # integers beyond 64 bits are objects, not text
    stripped = [str(cell).strip() for cell in different]
    numbers = [cell for cell in stripped if cell not in MISSING_MARKS]
    if not numbers:
        return column
    if all(is_number(cell, decimal) for cell in numbers):
        plain = {cell: _plain(text, decimal) for cell, text in zip(different, stripped, strict=True)}
        marked = column.map(plain)
        if len(numbers) < len(stripped):
            return marked
        read = pd.to_numeric(marked)
        return read if read.dtype.kind != "O" else marked.astype("float64")
    other = _OTHER[decimal]
    if not is_given and all(is_number(cell, other) for cell in numbers):
        shown = next(cell for cell in numbers if not is_number(cell, decimal))
        raise ValueError(
            f"{what} has {shown!r} in column {column.name!r}, but numbers are read with decimal={decimal!r}: "
            f"pass decimal={other!r}, or decimal={decimal!r} if it is not a number"
        )
    return column


def _plain(cell: str, decimal: str) -> str:
    if cell in MISSING_MARKS:
        return cell
    return re.sub(_GROUPS[decimal], "", cell).replace(",", ".")
