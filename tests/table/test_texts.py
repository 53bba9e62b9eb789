"""Texts of numbers in many forms, and texts that only look like them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from castlereg.table.texts import FEW, are_codes, as_numbers, what_is_wrong

NUMBERS = np.random.default_rng(0).uniform(0, 9000, 40).round(2)


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ([f"{x:.2f}".replace(".", ",") for x in NUMBERS], r"decimal commas, such as '.*': read them with decimal=','"),
        (
            [f"{x:,.2f}" for x in NUMBERS],
            "thousands separators, such as .*: remove the thousands separators, then convert with pd.to_numeric",
        ),
        ([f"{x:,.2f}".translate(str.maketrans(",.", ".,")) for x in NUMBERS], "decimal commas and thousands sep"),
        ([f"${x:,.0f}" for x in NUMBERS], r"units, such as .*: remove the thousands separators and '\$', then convert"),
        ([f"{x:.0f} %" for x in NUMBERS], "units, such as .*: remove '%'"),
        ([f"{x}%" for x in NUMBERS], "units"),
        ([f"{x} kg" for x in NUMBERS], "remove 'kg'"),
        ([f"{x}kg" for x in NUMBERS], "remove 'kg'"),
        ([f"{x} EUR" for x in NUMBERS], "remove 'EUR'"),
        ([f"-{x} €" for x in NUMBERS], "remove '€'"),
        ([*map(str, NUMBERS), "<5", "n.v."], "numbers except for '<5', 'n.v.': replace these"),
        ([*map(str, NUMBERS), "unknown", "-"], "numbers except for 'unknown': replace these"),
        ([f"2024-01-{d:02}" for d in range(1, 31)] + ["soon"], "dates except for 'soon': write them all as 2024-01-31"),
        ([f"2024-01-{d:02}" for d in range(1, 20)] + [f"{d}.2.2024" for d in range(1, 20)], "dates in several formats"),
        ([f"{d:02}.01.24" for d in range(1, 31)], "dates with two-digit years, such as '01.01.24'"),
    ],
)
def test_numbers_and_dates_that_cannot_be_read_are_found(texts: list[str], reason: str) -> None:
    assert re.search(reason, what_is_wrong(texts) or "")


@pytest.mark.parametrize(
    "texts",
    [
        [f"{i},5" for i in range(FEW)],  # few
        [f"{10 * i}-{10 * i + 9}" for i in range(30)],  # bands
        [f"{i}+" for i in range(30)],
        [f"{i:05}" for i in range(30)],  # postal codes
        [f"SKU{i}" for i in range(30)],
        [f"{i}X" for i in range(100, 130)],  # codes of products
        [f"{i}{'ABCDEFGH'[i % 8]}" for i in range(30)],
        [f"10.0.0.{i}" for i in range(30)],
        [f"{i} {'ABCDEFGH'[i % 8]}C" for i in range(1000, 1030)],
        [f"{i}{['st', 'nd', 'rd', 'th'][i % 4]}" for i in range(30)],
        [f"{i:x}" for i in range(1000, 5000, 97)],
        [f"12:{i}" for i in range(10, 50)],
        [f"word {i}" for i in range(30)],
        ["Oslo", "Rome"],
    ],
)
def test_codes_bands_and_words_are_left_alone(texts: list[str]) -> None:
    assert what_is_wrong(texts) is None


def test_plain_numbers_are_read_as_pandas_reads_a_file() -> None:
    numbers = as_numbers(["1", " 2.5 ", "-3e2", "?", "-", ".5"])
    assert numbers is not None
    np.testing.assert_array_equal(numbers, [1, 2.5, -300, np.nan, np.nan, 0.5])
    for texts in (["1_000"], ["1", "True"], ["1,5"], ["x"]):
        assert as_numbers(texts) is None
    booleans = as_numbers(["True", "false", "NA"])
    assert booleans is not None
    np.testing.assert_array_equal(booleans, [1, 0, np.nan])
    assert are_codes(["10", "007"])
    assert not are_codes(["10", "0", "0.5"])
