"""Damaged table files of every format through ``TableFile``: whole and in pieces.

A case is a chain: a file that reaches lines of the reader which none of the chain has reached is damaged further.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from castlereg.table.files import TableFile
from fuzz.byte_mutations import mutated
from fuzz.coverage import Lines, lines_of
from fuzz.verdict import Counts, check_clear, expect, strict_warnings

FILES_OF_CASE = 10
_READER = ("castlereg/table",)


def _frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.normal(size=12),
            "b": rng.integers(0, 5, 12),
            "c": rng.choice(["x", "y, z", 'q"q', "é"], 12),
            "d": pd.date_range("2020-01-30", periods=12).astype(str),
            "e": np.where(rng.random(12) < 0.3, np.nan, 1.5),
        }
    )


def _zipped(content: bytes) -> bytes:
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("table.csv", content)
    return stored.getvalue()


_PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zip": _zipped,
}


@cache
def originals() -> tuple[tuple[str, bytes], ...]:
    """Return a table in every format, by suffix; formats whose library is not installed are left out."""
    frame = _frame()
    text = frame.to_csv(index=False)
    european = frame.to_csv(index=False, sep=";", decimal=",")
    found = {
        ".csv": text.encode(),
        ".tsv": frame.to_csv(index=False, sep="\t").encode(),
        ".txt": frame.to_csv(index=False, sep="|").encode(),
        ".CSV": european.encode("latin-1"),
        ".tab": european.replace(";", "\t").encode("utf-16"),
        ".jsonl": frame.to_json(orient="records", lines=True).encode(),
        ".json": frame.to_json(orient="records").encode(),
        **{f".csv{suffix}": packed(text.encode()) for suffix, packed in _PACKED.items()},
    }
    for suffix, write in ((".parquet", frame.to_parquet), (".feather", frame.to_feather), (".xlsx", frame.to_excel)):
        stored = io.BytesIO()
        try:
            write(stored)
        except ImportError:
            continue
        found[suffix] = stored.getvalue()
    return tuple(found.items())


def check(seed: int, folder: Path) -> Counts:
    """Read a chain of damaged files."""
    rng = np.random.default_rng([5, seed])
    known = originals()
    counts = {"files": 0, "rejected": 0, "read": 0}
    suffix, original = known[int(rng.integers(len(known)))]
    content, reached = original, Lines()
    for _ in range(FILES_OF_CASE):
        changed = _damaged(content, suffix, rng)
        if rng.random() < 0.05:
            suffix = known[int(rng.integers(len(known)))][0]  # another format than its name says
        path = folder / f"table{suffix}"
        path.write_bytes(changed)
        answers: list[bool] = []
        lines = lines_of(lambda: answers.append(_is_read(path)), _READER)  # noqa: B023
        counts["files"] += 1
        counts["read" if answers[0] else "rejected"] += 1
        if not lines <= reached and len(changed) < 100_000:
            reached |= lines
            content = changed
        path.unlink()
        expect(not list(folder.iterdir()), "reading a file left another")
    return counts


def _damaged(content: bytes, suffix: str, rng: np.random.Generator) -> bytes:
    """Damage the bytes of a file, or those of the text inside a compressed one."""
    pack = _PACKED.get(Path(suffix).suffix)
    if pack is None or rng.random() < 0.5:
        return mutated(content, rng)
    return pack(mutated(_frame().to_csv(index=False).encode(), rng))


def _is_read(path: Path) -> bool:
    """Read a file whole and in pieces; return whether there was a table in it."""
    with strict_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            file = TableFile.open(path)
            columns, frame = file.columns(), file.read()
        except Exception as error:
            check_clear(error, (ValueError, OSError, TypeError))
            return False
        expect(list(frame.columns) == columns, "columns differ from those that were announced")
        expect(len(set(columns)) == len(columns), "two columns have the same name")
        expect(len(frame), "a table without rows was read")
        try:
            n_rows = sum(map(len, file.frames(columns, 5)))
        except Exception as error:
            check_clear(error, (ValueError, OSError))
            return True
        expect(n_rows == len(frame), f"{n_rows} rows in pieces, {len(frame)} at once")
    return True
