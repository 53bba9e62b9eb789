"""Recognition of texts: plain numbers, numbers with marks and units, dates, codes and words."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from castlereg.table.dates import is_date

# Missing values in every column of text: those that pandas recognizes in files, and "?" of the UCI repository.
ALWAYS_MISSING = (
    *("", "?", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "<NA>", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
_ALWAYS = frozenset(ALWAYS_MISSING)
# The others may be classes or levels, such as "+" and "-", so they are missing values only among numbers and dates.
MISSING_MARKS = frozenset([*ALWAYS_MISSING, "-", "--", ".", "na", "Null", "none", "missing", "NaT"])

FEW = 20  # up to this many different texts may always be levels
_MOSTLY = 0.8  # from this share of numbers, or of dates, other texts are exceptions
_LONGEST = 60  # characters of a number with marks
_BOOLEANS = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}
_CODE = re.compile(r"[+-]?0\d+")  # only codes have leading zeros

_THOUSANDS = r"\d{1,3}(?:[., '\u00a0\u202f\u2019]\d{3})+"
_UNITS = (
    r"%|‰|[$€£¥₹]|°[CF]?|(?:mg|kg|g|lbs?|oz|km|cm|mm|m|mi|ft|ml|l|kWh?|Wh?|V|Hz|bar|ms|min|h|s|yrs?|years?|days?)"
    r"(?:/[a-z]{1,3})?[²³]?|(?<=\s)[^\W\d_]{1,8}(?:/[^\W\d_]{1,4})?[²³]?"
)
_WITH_MARKS = re.compile(
    rf"[-+\u2212]?\s*(?P<currency>[$€£¥₹]|(?:USD|EUR|GBP|CHF|JPY)\s)?\s*[-+\u2212]?"
    rf"(?P<core>(?:{_THOUSANDS}(?:[.,]\d+)?|\d+(?:[.,]\d+)?|[.,]\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>{_UNITS})?"
)

_SHORT_YEAR = re.compile(r"\d{1,2}([./-])\d{1,2}\1\d{2}(?: \d{1,2}:\d\d.*)?")


def stands_for_missing(text: str) -> bool:
    """Return whether a text is a missing value in every column."""
    return text.strip() in _ALWAYS


def as_numbers(texts: Sequence[str]) -> NDArray[np.float64] | None:
    """Read texts as plain numbers, or all as booleans, and missing-value marks as NaN; None if this fails.

    Examples
    --------
    >>> as_numbers(["1.5", " -2", "?"])
    array([ 1.5, -2. ,  nan])
    >>> as_numbers(["1,5"]) is None
    True
    """
    stripped = [text.strip() for text in texts]
    for read in (_number, _BOOLEANS.__getitem__):
        try:
            return np.array([np.nan if text in MISSING_MARKS else read(text) for text in stripped], np.float64)
        except (ValueError, KeyError):
            continue
    return None


def _number(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


def are_codes(texts: Sequence[str]) -> bool:
    """Return whether digits are codes, such as postal codes: numbers do not start with 0."""
    return any(_CODE.fullmatch(text.strip()) for text in texts)


def shown(texts: Sequence[str], most: int = 3) -> str:
    """Format some texts with quotes, and shorten long ones."""
    return ", ".join(repr(text if len(text) <= 40 else text[:37] + "...") for text in texts[:most])


def what_is_wrong(texts: Sequence[str]) -> str | None:
    """Return why texts that look like numbers or dates cannot be read as such; None if they do not look like them.

    Examples
    --------
    >>> what_is_wrong([f"{i},5" for i in range(30)])
    "numbers with decimal commas, such as '0,5', '1,5', '2,5': read them with decimal=',' (--decimal ,)"
    >>> what_is_wrong([*map(str, range(30)), "<5"])
    "numbers except for '<5': replace these with numbers or missing values"
    """
    if len(texts) <= FEW or are_codes(texts):
        return None
    texts = [text for text in texts if text.strip() not in MISSING_MARKS]
    plain = {text for text in texts if as_numbers([text]) is not None}
    matches = {t: _WITH_MARKS.fullmatch(t.strip()) if len(t) < _LONGEST else None for t in texts if t not in plain}
    marked = {text: match for text, match in matches.items() if match is not None}
    units = {match["unit"] or match["currency"] for match in marked.values()}
    if len(units) <= 3 and FEW < len(plain) + len(marked) >= _MOSTLY * len(texts):
        if marked and len(marked) >= len(matches) - len(marked):
            return _of_marks([match.group() for match in marked.values()], list(marked.values()))
        odd = [text for text in texts if text not in plain]
        return f"numbers except for {shown(odd)}: replace these with numbers or missing values" if odd else None
    if sum(_SHORT_YEAR.fullmatch(text.strip()) is not None for text in texts) >= _MOSTLY * len(texts):
        return f"dates with two-digit years, such as {shown(texts)}: write them all as 2024-01-31"
    if sum(map(is_date, texts[:FEW])) < _MOSTLY * FEW / 2:  # most texts are not dates
        return None
    odd = [text for text in texts if not is_date(text)]
    if FEW < len(texts) - len(odd) >= _MOSTLY * len(texts):
        reason = f"dates except for {shown(odd)}" if odd else f"dates in several formats, such as {shown(texts)}"
        return f"{reason}: write them all as 2024-01-31"
    return None


def _of_marks(texts: Sequence[str], matches: Sequence[re.Match[str]]) -> str:
    """Return a message that names the marks in numbers, and what to do about them."""
    cores = [match["core"] for match in matches]
    has_decimals = any(re.search(r",(?!\d{3}(?!\d))", core) for core in cores)
    has_thousands = any(re.fullmatch(rf"{_THOUSANDS}(?:[.,]\d+)?", core) for core in cores)
    units = sorted({(match["unit"] or match["currency"] or "").strip() for match in matches} - {""})
    marks = ["decimal commas"] * has_decimals + ["thousands separators"] * has_thousands + ["units"] * bool(units)
    removed = ["the thousands separators"] * has_thousands + [shown(units)] * bool(units)
    advice = f"remove {' and '.join(removed)}, then convert with pd.to_numeric" if removed else ""
    if has_decimals:
        advice = "read them with decimal=',' (--decimal ,)" + (f"; {advice}" if advice else "")
    return f"numbers with {' and '.join(marks)}, such as {shown(texts)}: {advice}"


def is_prose(texts: Sequence[str]) -> bool:
    """Return whether texts are free text rather than names and codes, judged by their number of words."""
    some = texts[:100]
    return sum(len(text.split()) for text in some) > 3 * len(some)
