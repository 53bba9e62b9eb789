"""Texts that stand for a missing value."""

from __future__ import annotations

# Missing in every column of a file: what pandas takes for missing, and the UCI repository's "?".
ALWAYS_MISSING = (
    *("", "?", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "<NA>", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
# The others may be a class or a level, such as the "-" of "+" and "-": they are missing only among numbers.
MISSING_MARKS = frozenset([*ALWAYS_MISSING, "-", "--", ".", "na", "Null", "none", "missing"])
