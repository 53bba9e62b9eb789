"""Columns of every kind with unusual values, drawn from a random generator."""

from __future__ import annotations

import datetime
import decimal
import fractions
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

Rng = np.random.Generator
Draw = Callable[[Rng, int], Any]

TEXTS = (
    *("a", "b", "c", "d", "e", "yes", "no", "low", "high", "Oslo", "", " ", "  x ", "?", "-", ".", "NA", "nan", "None"),
    *("1", "2", "2.5", "1e5", "1,5", "inf", "-inf", "NaN", "True", "False", "0x10", "1_000", "12 kg", "(other)"),
    *(
        "2020-01-01",
        "31.12.2024",
        "2024-02-30",
        "12:30",
        "naïve",
        "e\u0301",
        "\u00e9",
        "日本語",
        "שלום",
        "\u202eabc",
        "😀",
        "\u200b",
    ),
    *(
        "<script>alert(1)</script>",
        "'",
        '"',
        '""',
        ",",
        ";",
        "\t",
        "a\nb",
        "a\r\nb",
        "\\",
        "\x00",
        "\x07",
        "\ufeff",
        "x" * 3000,
    ),
    *("=1+1", "@a", "#", "%s", "{0}", "(missing)", "(not known)", "\ud800", "\U0010ffff"),
)
NAMES = (
    *(
        "a",
        "b",
        "c",
        "price",
        "two words",
        "",
        " ",
        "y",
        "x0",
        "x1",
        "target",
        "prediction",
        "n" * 2000,
        "naïve",
        "日本語",
    ),
    *(
        "\u202eevil",
        "e\u0301",
        "\u00e9",
        "<script>alert(1)</script>",
        "</td><b>",
        "&amp;",
        "'",
        '"',
        "a,b",
        "a;b",
        "a\tb",
        "a\nb",
    ),
    *(
        "\x00",
        "\x1b[31m",
        "1",
        "1.0",
        "nan",
        "None",
        "True",
        "__class__",
        "../../x",
        "/etc/passwd",
        "%s",
        "{0}",
        "$x$",
        "\\",
    ),
    *(
        "Unnamed: 0",
        "id",
        "index",
        "(other)",
        "constant_0",
        "Concat_1",
        "prediction_y",
        "\ud800",
        "😀",
        "a (2)",
        "\ufeffa",
    ),
)


def numbers(rng: Rng, n: int) -> Any:
    """Numbers of any scale and shape."""
    values = rng.normal(size=n)
    draw = rng.integers(19)
    if draw < 8:
        return values * 10.0 ** rng.integers(-3, 4) + rng.integers(-2, 3) * 100
    scales = {8: 1e-300, 9: 1e-40, 10: 1e-20, 11: 1e20, 12: 1e37, 13: 5e-324}
    if draw in scales:
        return values * scales[int(draw)]
    if draw == 14:
        return 1.0 + values * 1e-14
    if draw == 15:
        return rng.standard_cauchy(n) ** 3
    if draw == 16:
        return values.astype(rng.choice(np.array(["f4", "f2", ">f8", ">f4"])))
    if draw == 17:
        return rng.permutation(n) + int(rng.choice([0, 1, 10**9]))
    return np.exp(rng.uniform(-700, 80, n))


def few_numbers(rng: Rng, n: int) -> Any:
    """Numbers with few distinct values, some far apart and some next to each other."""
    pools: list[list[float]] = [
        [3.4e38, -3.4e38, 0.0],
        [-0.0, 0.0],
        [0.0, 5e-324],
        [1e15, 1e15 + 1, 1e15 + 2],
        [0.0, 1e6],
    ]
    return rng.choice(pools[int(rng.integers(len(pools)))], n)


def extreme_numbers(rng: Rng, n: int) -> Any:
    """Numbers, some too large for a network."""
    values = rng.normal(size=n)
    if n:
        values[rng.integers(n, size=1 + rng.integers(3))] = rng.choice([np.inf, -np.inf, 1e300, -1e300, 1e39, 3.5e38])
    return values


def whole_numbers(rng: Rng, n: int) -> Any:
    """Whole numbers: codes, counts, row numbers, the ends of integer types."""
    draw = rng.integers(8)
    if draw < 3:
        return rng.integers(0, 2 + rng.integers(12), n)
    if draw == 3:
        return np.sort(rng.integers(0, 10**6, n))
    if draw == 4:
        return rng.choice(np.array([2**63 - 1, -(2**63), 0, 1, 2**53 + 1]), n)
    if draw == 5:
        return rng.choice(np.array([2**64 - 1, 0, 2**63], np.uint64), n)
    dtype = rng.choice(np.array(["i1", "u1", "i2", "u2", "i4", "u4", ">i4"]))
    return rng.integers(0, 100, n).astype(dtype)


def booleans(rng: Rng, n: int) -> Any:
    """Booleans, also as objects."""
    values = rng.random(n) < rng.choice([0.5, 0.05])
    return values if rng.random() < 0.7 else values.astype(object)


def texts(rng: Rng, n: int) -> Any:
    """Text of three plain levels, as far as there are rows."""
    levels = rng.choice(np.array(TEXTS[:10], object), 3, replace=False)
    return rng.permutation(np.resize(levels, n)).astype(object)


def odd_texts(rng: Rng, n: int) -> Any:
    """Text of a few levels, some odd."""
    levels = rng.choice(np.array(TEXTS, object), 1 + rng.integers(6))
    drawn = rng.choice(levels, n).astype(object)
    return drawn if rng.random() < 0.5 else pd.Series(drawn, dtype=object)


def written_numbers(rng: Rng, n: int) -> Any:
    """Numbers, dates or codes written as text, some with marks among them."""
    values = rng.normal(size=n) * 100
    draw = rng.integers(8)
    if draw == 0:
        written = [f"{value:.2f}" for value in values]
    elif draw == 1:
        written = [f"{value:.2f}".replace(".", ",") for value in values]
    elif draw == 2:
        written = [f"{value * 1000:,.1f}" for value in values]
    elif draw == 3:
        written = [f" {int(value)} " for value in values]
    elif draw == 4:
        written = [str(uuid.UUID(int=int(rng.integers(2**62)))) for _ in values]
    elif draw == 5:
        written = [str(np.datetime64("2020-01-01") + int(day)) for day in rng.integers(0, 900, n)]
    elif draw == 6:
        form = str(
            rng.choice(["%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%b %d, %Y", "%Y-%m", "%Y%m%d", "%Y-%m-%dT%H:%M:%SZ"])
        )
        written = [
            (pd.Timestamp("2020-01-01") + pd.Timedelta(hours=int(h))).strftime(form) for h in rng.integers(0, 30_000, n)
        ]
    else:
        written = [str(int(value) % 7) for value in values]
    marks = np.array(["?", "", "NA", "n.v.", "<5", "-", None, "NaN", " "], object)
    is_mark = rng.random(n) < rng.choice([0.0, 0.1])
    return np.where(
        is_mark, rng.choice(marks, n) if rng.random() < 0.5 else rng.choice(marks), np.array(written, object)
    )


def free_texts(rng: Rng, n: int) -> Any:
    """Text with almost no duplicates."""
    words = np.array(["alpha", "beta", "gamma", "δ", "id", "42", "@", "x.org"], object)
    return np.array([" ".join(rng.choice(words, 3)) + str(rng.integers(10**6)) for _ in range(n)], object)


def categories(rng: Rng, n: int) -> Any:
    """Pandas categories of text, numbers, booleans, dates or intervals, ordered or not, some of them unused."""
    draw = rng.integers(8)
    pools: list[Any] = [
        ["low", "mid", "top"],
        [1, 2, 3],
        [0.5, 1.5, -2.0],
        [True, False],
        ["", "?", "1"],
        ["x"],
        list("abcdefghij"),
    ]
    if draw == 7:
        return pd.cut(pd.Series(rng.normal(size=n)), [-10.0, -1, 0, 1, 10]) if n else pd.Categorical([])
    pool = pools[int(draw)]
    codes = rng.integers(0, 1 + rng.integers(len(pool)), n)
    return pd.Categorical.from_codes(codes, pd.Index(pool), ordered=bool(rng.random() < 0.4))


def dates(rng: Rng, n: int) -> Any:
    """Dates, times and durations in all types of pandas and Python."""
    days = rng.integers(0, int(rng.choice([3, 30, 1000, 20_000])), n)
    hours = np.datetime64("2020-01-01T00") + (days * 24 + rng.integers(0, 24, n)).astype("m8[h]")
    draw = rng.integers(14)
    if draw < 4:
        return pd.Series(hours.astype(f"M8[{rng.choice(['s', 'ms', 'us', 'ns'])}]"))
    if draw == 4:
        return pd.Series(pd.DatetimeIndex(hours.astype("M8[ns]"), tz="UTC").tz_convert("America/New_York"))
    if draw == 5:
        return [datetime.date(2020, 1, 1) + datetime.timedelta(int(day)) for day in days]
    if draw == 6:
        return [
            datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=int(day) % 3)))
            for day in days
        ]
    if draw == 7:
        return pd.Series(days.astype("m8[D]").astype("m8[ns]"))
    if draw == 8:
        return [datetime.timedelta(int(day), 3) for day in days]
    if draw == 9:
        return pd.Series(rng.choice(np.array(["0001-01-01", "9999-12-31", "1970-01-01"], "M8[s]"), n))
    if draw == 10:
        return pd.Series(rng.choice(np.array(["1677-09-22", "2262-04-11", "1970-01-01"], "M8[ns]"), n))
    if draw == 11:
        return (
            pd.PeriodIndex(hours.astype("M8[ns]"), freq="M").to_series(index=range(n))
            if n
            else pd.Series([], dtype="M8[ns]")
        )
    if draw == 12:
        return [datetime.time(int(day) % 24) for day in days]
    return [datetime.date(1, 1, 1), *[datetime.date(9999, 12, 31)] * (n - 1)] if n else []


def nullable(rng: Rng, n: int) -> Any:
    """Columns of pandas' extension types and of Arrow's."""
    whole: list[Any] = rng.integers(0, 5, n).tolist()
    real: list[Any] = rng.normal(size=n).tolist()
    text: list[Any] = rng.choice(np.array(["a", "b", "c"], object), n).tolist()
    drawn: list[tuple[list[Any], str]] = [
        (whole, "Int64"),
        (whole, "UInt8"),
        (real, "Float32"),
        (real, "Float64"),
        ([v > 2 for v in whole], "boolean"),
        (text, "string"),
        (text, "str"),
        (whole, "int64[pyarrow]"),
        (real, "double[pyarrow]"),
        (text, "string[pyarrow]"),
        ([v > 2 for v in whole], "bool[pyarrow]"),
        (real, "float[pyarrow]"),
    ]
    draw = int(rng.integers(len(drawn) + 4))
    if draw < len(drawn):
        return pd.Series(drawn[draw][0], dtype=drawn[draw][1])
    import pyarrow as pa

    if draw == len(drawn):
        return pd.Series([decimal.Decimal(v) / 10 for v in whole], dtype=pd.ArrowDtype(pa.decimal128(6, 2)))
    if draw == len(drawn) + 1:
        return pd.Series([datetime.date(2020, 1, 1 + v) for v in whole], dtype=pd.ArrowDtype(pa.date32()))
    if draw == len(drawn) + 2:
        return pd.Series([[v] for v in whole], dtype=pd.ArrowDtype(pa.list_(pa.int64())))
    return pd.Series(text, dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))


class _Odd:
    pass


def objects(rng: Rng, n: int) -> Any:
    """Objects that mostly do not belong in a table."""
    pool: list[Any] = [
        *(1, 2.5, "x", True, None, np.nan, pd.NA, pd.NaT),
        *(decimal.Decimal("1.5"), decimal.Decimal("NaN"), fractions.Fraction(1, 3), np.float32(2), np.int8(1)),
        *(b"bytes", [1], {"k": 1}, (1, 2), 1j, 10**400, -(10**400), datetime.date(2020, 1, 1), set(), range(2)),
        *(pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-01", tz="UTC"), pd.Timedelta(1, "D"), uuid.UUID(int=5)),
        *(_Odd(), object, np.array([1, 2]), np.datetime64("2020-01-01"), float("inf"), "1", "?", np.str_("s")),
        np.bool_(True),
    ]
    chosen = [pool[i] for i in rng.integers(0, len(pool), 1 + rng.integers(3))]
    values = np.empty(n, object)
    for i in range(n):
        values[i] = chosen[int(rng.integers(len(chosen)))]
    return pd.Series(values, dtype=object)


def odd_types(rng: Rng, n: int) -> Any:
    """Columns of rare dtypes."""
    draw = rng.integers(4)
    if draw == 0:
        return pd.Series(rng.normal(size=n) + 1j)
    if draw == 1:
        return pd.Series(pd.arrays.SparseArray(np.where(rng.random(n) < 0.8, 0.0, 1.5)))
    if draw == 2:
        return pd.arrays.IntervalArray.from_breaks(np.arange(n + 1.0))
    return pd.Series([b"a"] * n)


def constants(rng: Rng, n: int) -> Any:
    """One value in all rows, or none."""
    pool: list[Any] = [0, 1.5, 1e-300, 1e38, "x", "", None, np.nan, True, pd.Timestamp("2020-01-01"), -0.0, "?", pd.NA]
    return [pool[int(rng.integers(len(pool)))]] * n


def many_levels(rng: Rng, n: int) -> Any:
    """Text with many levels, each appearing several times in a long table."""
    return np.array([f"level {k}" for k in rng.integers(0, max(n // 3, 1), n)], object)


TAME: dict[str, Draw] = {"numbers": numbers, "bool": booleans, "text": texts}
ODD: dict[str, Draw] = {
    **{"whole": whole_numbers, "few": few_numbers, "category": categories, "odd text": odd_texts},
    **{"dates": dates, "nullable": nullable, "constant": constants, "written": written_numbers, "levels": many_levels},
    **{"objects": objects, "types": odd_types, "extreme": extreme_numbers, "free": free_texts},
}


def with_missing(rng: Rng, column: pd.Series, is_tame: bool) -> pd.Series:
    """Remove values: some, a block, all, or all but one."""
    n = len(column)
    draw = rng.integers(6) if not is_tame else 0
    where = rng.random(n) < 0.3
    where[:1] |= is_tame
    if draw == 3:
        where = np.arange(n) < n // 2
    elif draw == 4:
        where = np.ones(n, bool)
    elif draw == 5:
        where = np.arange(n) != int(rng.integers(max(n, 1)))
    return column.mask(pd.Series(where, index=column.index))
