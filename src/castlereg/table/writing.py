"""Writing of tables to files, in the format given by the suffix."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, cast

import pandas as pd

from castlereg.atomic_write import atomic_write

_Writer = Callable[[pd.DataFrame, IO[bytes]], None]


def check_table_suffix(path: Path) -> None:
    """Raise if :func:`write_table` does not support the suffix, or if a required package is not installed.

    Examples
    --------
    >>> check_table_suffix(Path("prices.csv.gz"))
    >>> check_table_suffix(Path("prices.doc"))
    Traceback (most recent call last):
    ...
    ValueError: cannot write a table to 'prices.doc': use a name that ends in .csv, .tsv, .tab, .jsonl, .ndjson (each
    also with .gz), .parquet, .pq, .feather, .arrow or .xlsx
    """
    suffix, _ = _suffix(path)
    package, extra = _PACKAGES.get(suffix, ("", ""))
    if package and find_spec(package) is None:
        raise ImportError(f"writing {suffix} needs the package {package}: pip install 'castlereg[{extra}]'")


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table without its index; the file appears only once it is complete.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(pd.DataFrame({"a": [1.5, None], "b": ["x", "y"]}), Path(folder) / "t.jsonl")
    ...     print((Path(folder) / "t.jsonl").read_text())
    {"a": 1.5, "b": "x"}
    {"a": null, "b": "y"}
    """
    check_table_suffix(path)
    suffix, compressed = _suffix(path)
    with atomic_write(path) as file:
        if not compressed:
            _WRITERS[suffix](frame, file)
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:  # same table, same bytes
            _WRITERS[suffix](frame, cast(IO[bytes], packed))


def _separated(separator: str) -> _Writer:
    def write(frame: pd.DataFrame, file: IO[bytes]) -> None:
        frame.to_csv(file, index=False, sep=separator, encoding="utf-8")

    return write


def write_json_lines(frame: pd.DataFrame, file: IO[bytes]) -> None:
    """Write one JSON object per row: dates as ISO text, numbers in full precision, null for NaN and infinity."""
    names = [str(name) for name in frame.columns]
    for row in zip(*(frame.iloc[:, j] for j in range(len(names))), strict=True):
        record = {
            name: None if pd.isna(value) or value in _INFINITE else value
            for name, value in zip(names, row, strict=True)
        }
        file.write(json.dumps(record, ensure_ascii=False, allow_nan=False, default=_as_json).encode() + b"\n")


def _as_json(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def _parquet(frame: pd.DataFrame, file: IO[bytes]) -> None:
    frame.to_parquet(file, index=False)


def _feather(frame: pd.DataFrame, file: IO[bytes]) -> None:
    frame.reset_index(drop=True).to_feather(file)


def _excel(frame: pd.DataFrame, file: IO[bytes]) -> None:
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.utils.exceptions import IllegalCharacterError

    if len(frame) >= _EXCEL_ROWS:
        raise ValueError(
            f"an Excel sheet holds {_EXCEL_ROWS - 1:,} rows, but the table has {len(frame):,}: write a CSV"
        )
    book = Workbook(write_only=True)
    sheet = book.create_sheet("table")

    def cell(value: Any) -> Any:
        if isinstance(value, str):
            written = WriteOnlyCell(sheet, value)
            written.data_type = "s"  # text that starts with = is not a formula
            return written
        return _in_excel(value)

    try:
        sheet.append([cell(str(name)) for name in frame.columns])
        for row in zip(*(frame.iloc[:, j] for j in range(frame.shape[1])), strict=True):
            sheet.append([cell(value) for value in row])
    except IllegalCharacterError as error:
        raise ValueError(f"Excel cannot hold the control character in {str(error)!r}: write a CSV") from None
    finally:
        sheet.close()
    content = io.BytesIO()
    book.save(content)
    file.write(content.getvalue())


def _in_excel(value: Any) -> Any:
    """Return the value for a cell; times with a zone, which Excel does not support, become text."""
    if pd.isna(value):
        return None
    return str(value) if getattr(value, "tzinfo", None) is not None else value


_INFINITE = (float("inf"), float("-inf"))  # not available in JSON either
_EXCEL_ROWS = 1_048_576
_TEXT: dict[str, _Writer] = {
    ".csv": _separated(","),
    ".tsv": _separated("\t"),
    ".tab": _separated("\t"),
    ".jsonl": write_json_lines,
    ".ndjson": write_json_lines,
}
_WRITERS: dict[str, _Writer] = _TEXT | {
    ".parquet": _parquet,
    ".pq": _parquet,
    ".feather": _feather,
    ".arrow": _feather,
    ".xlsx": _excel,
}
_ARROW = ("pyarrow", "arrow")
_PACKAGES = {suffix: _ARROW for suffix in (".parquet", ".pq", ".feather", ".arrow")} | {".xlsx": ("openpyxl", "excel")}


def _suffix(path: Path) -> tuple[str, bool]:
    """Return the suffix of the format, and whether the file is compressed."""
    name = Path(path.name.lower())
    compressed = name.suffix == ".gz"
    suffix = Path(name.stem).suffix if compressed else name.suffix
    if suffix not in (_TEXT if compressed else _WRITERS):
        *others, last = (suffix for suffix in _WRITERS if suffix not in _TEXT)
        raise ValueError(
            f"cannot write a table to {str(path)!r}: use a name that ends in {', '.join(_TEXT)} (each also with .gz), "
            f"{', '.join(others)} or {last}"
        )
    return suffix, compressed
