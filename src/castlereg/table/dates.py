"""Dates: parsing of texts into days since 1970, and the seasons that become inputs of a network.

A column of text is a column of dates if one reading fits all its texts:

============  ==============================================================================
reading       texts, each with or without a time of day, and that with Z, an offset or AM, PM
============  ==============================================================================
year first    ``2024-01-31``, ``2024/01/31``, ``2024-01``, ``2024-01-31T10:20:30.5Z``
day first     ``31.01.2024``, ``31/01/2024``, ``31-01-2024``
month first   ``01/31/2024``, ``01-31-2024``
month name    ``Jan 31, 2024``, ``31 January 2024``, ``31-Jan-2024``
============  ==============================================================================

Times with an offset are converted to UTC; others are used unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Reading = Literal["", "year first", "day first", "month first", "month name"]  # "" for dates that were not text
Season = Literal["year", "week", "day"]

PERIODS: dict[Season, float] = {"year": 365.2425, "week": 7.0, "day": 1.0}
"""Length of each season in days."""

_SHORTEST: dict[Season, float] = {"year": 700.0, "week": 14.0, "day": 2.0}  # shortest spans that show a season, in days
_PLAUSIBLE = range(1800, 2201)  # years of months without a day; other numbers may be codes
_LONGEST = 60  # characters of a date
_EPOCH = date(1970, 1, 1).toordinal()
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)

_TIME = (
    r"(?:[T ]\s*(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d(?:[.,]\d+)?))?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?P<zone>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?"
)
_NUMBERED = rf"(?P<first>\d{{1,2}})(?P<mark>[./-])(?P<next>\d{{1,2}})(?P=mark)(?P<year>\d{{4}}){_TIME}"
_DAY = r"(?P<{}>\d{{1,2}})(?:st|nd|rd|th)?"
_FORMS: dict[Reading, re.Pattern[str]] = {
    "year first": re.compile(
        rf"(?P<year>\d{{4}})(?P<mark>[-/.])(?P<month>\d{{1,2}})(?:(?P=mark)(?P<day>\d{{1,2}}){_TIME})?"
    ),
    "day first": re.compile(_NUMBERED),
    "month first": re.compile(_NUMBERED.replace("[./-]", "[/-]")),  # dots occur only in day-first dates
    "month name": re.compile(
        rf"(?:{_DAY.format('day')}[ -]+)?(?P<name>[A-Za-z]{{3,9}})\.?(?:[ -]+{_DAY.format('later')})?"
        rf",?[ -]+(?P<year>\d{{4}}){_TIME}"
    ),
}


def parsed(text: str, reading: Reading) -> float | None:
    """Read a text as days since 1970; None if it is not a date of this form.

    Examples
    --------
    >>> parsed("1970-01-02 12:00", "year first")
    1.5
    >>> parsed("2/1/1970", "day first"), parsed("2/1/1970", "month first"), parsed("30.2.2024", "day first")
    (1.0, 31.0, None)
    """
    match = _FORMS[reading].fullmatch(text.strip()) if len(text) < _LONGEST else None
    if match is None:
        return None
    fields = match.groupdict()
    year = int(fields["year"])
    if reading == "month name":
        month = next((m for m, name in enumerate(_MONTHS, 1) if _names(fields["name"].lower(), name)), 0)
        if (fields["day"] is None) == (fields["later"] is None):
            return None
        day = int(fields["day"] or fields["later"])
    elif reading == "year first":
        month, day = int(fields["month"]), int(fields["day"] or 1)
        if fields["day"] is None and year not in _PLAUSIBLE:
            return None
    else:
        day, month = int(fields["first"]), int(fields["next"])
        if reading == "month first":
            day, month = month, day
    try:
        days = date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
    if fields["hour"] is None:
        return float(days)
    seconds = _seconds(fields)
    return None if seconds is None else days + seconds / 86400


def _names(text: str, month: str) -> bool:
    return text in (month, month[:3]) or (text == "sept" and month == "september")


def _seconds(fields: dict[str, str]) -> float | None:
    """Return the seconds of a time of day, in UTC; None if the time does not exist."""
    hour, minute, second = (
        int(fields["hour"]),
        int(fields["minute"]),
        float((fields["second"] or "0").replace(",", ".")),
    )
    if fields["half"] is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if fields["half"][0] in "pP" else 0)
    if hour > 23 or minute > 59 or second >= 60:
        return None
    zone = fields["zone"] or ""
    offset = 0
    if zone[:1] in ("+", "-"):
        digits = zone[1:].replace(":", "")
        offset = (60 * int(digits[:2]) + int(digits[2:] or 0)) * (-1 if zone[0] == "-" else 1)
    return 3600 * hour + 60 * (minute - offset) + second


def as_dates(
    texts: Sequence[str], missing: frozenset[str], readings: Sequence[Reading] = tuple(_FORMS)
) -> dict[Reading, NDArray[np.float64]]:
    """Read texts as days since 1970 with every reading that fits them all; ``missing`` texts are NaN.

    Examples
    --------
    >>> as_dates(["31/12/1969", "2/1/1970", "?"], frozenset("?"))
    {'day first': array([-1.,  1., nan])}
    """
    fitting: dict[Reading, NDArray[np.float64]] = {}
    for reading in readings:
        days = np.full(len(texts), np.nan)
        for i, text in enumerate(texts):
            if text.strip() in missing:
                continue
            value = parsed(text, reading)
            if value is None:
                break
            days[i] = value
        else:
            if not np.isnan(days).all():
                fitting[reading] = days
    return fitting


def is_date(text: str) -> bool:
    """Return whether a text can be read as a date."""
    return any(parsed(text, reading) is not None for reading in _FORMS)


class DateSurvey:
    """Statistics that decide the seasons of a column, collected piece by piece."""

    def __init__(self) -> None:
        self.lowest, self.highest = np.inf, -np.inf
        self._weekdays: set[float] = set()
        self._times: set[float] = set()  # of day, in seconds: two are enough
        self._are_months = True  # whether every date is the first of a month

    def add(self, days: NDArray[np.float64]) -> None:
        """Add one piece: days since 1970, without missing values."""
        if not len(days):
            return
        day_numbers = np.floor(days)
        self.lowest, self.highest = min(self.lowest, days.min()), max(self.highest, days.max())
        self._weekdays.update(np.unique(day_numbers % 7).tolist())
        if len(self._times) < 2:
            self._times.update(np.unique(np.round((days - day_numbers) * 86400) % 86400)[:2].tolist())
        if self._are_months:
            at = day_numbers.astype("datetime64[D]")
            self._are_months = bool((at == at.astype("datetime64[M]")).all())

    def seasons(self) -> tuple[Season, ...]:
        """Return the seasons that vary and that the span is long enough to show.

        Examples
        --------
        >>> survey = DateSurvey()
        >>> survey.add(np.arange(0.0, 1000.0, 0.25))
        >>> survey.seasons()
        ('year', 'week', 'day')
        """
        varies = {
            "year": True,
            "week": len(self._weekdays) > 1 and not self._are_months,
            "day": len(self._times) > 1,
        }
        span = self.highest - self.lowest
        return tuple(season for season, shortest in _SHORTEST.items() if varies[season] and span >= shortest)


def only_reading(
    dates: Mapping[Reading, NDArray[np.float64]], texts: Sequence[str], where: str
) -> tuple[Reading, NDArray[np.float64]]:
    """Return the reading of dates; raise if two readings give different dates."""
    reading, days = next(iter(dates.items()))
    for other in dates.values():
        differs = ~((other == days) | np.isnan(days))
        if differs.any():
            raise ValueError(
                f"{where} that could be day/month or month/day, such as {texts[int(np.argmax(differs))]!r}: write them "
                "as 2024-01-31, or convert them with pd.to_datetime"
            )
    return reading, days
