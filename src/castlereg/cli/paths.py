"""Check input and output files before any work: no output overwrites an input."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from castlereg.atomic_write import check_writable
from castlereg.options import did_you_mean

_TABLES = (
    ".csv",
    ".tsv",
    ".tab",
    ".parquet",
    ".pq",
    ".feather",
    ".arrow",
    ".jsonl",
    ".ndjson",
    ".json",
    ".xlsx",
    ".xls",
)
_PAGES = (".html", ".htm")


def check_paths(inputs: Mapping[str, Path], outputs: Mapping[str, Path | None]) -> None:
    """Raise for inputs that do not exist, and outputs that cannot be written or are the same as another file.

    The keys of ``inputs`` are nouns such as "table", those of ``outputs`` are options. Two paths are the same file if
    links, hard links or another spelling of the path lead to it.
    """
    inputs = {noun: _file_of(path) for noun, path in inputs.items()}
    for path in inputs.values():
        if str(path) != "-" and not path.exists():
            siblings = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
            raise FileNotFoundError(f"file {str(path)!r} does not exist{did_you_mean(path.name, siblings)}")
    given = {option: path for option, path in outputs.items() if path is not None}
    check_writable(*given.values())
    regular = {option: path for option, path in given.items() if path.is_file() or not path.exists()}
    for option, path in regular.items():
        for noun, source in inputs.items():
            if _is_input(path, source):
                raise ValueError(f"{option} {path} would overwrite the {noun}, {source}: choose another file")
    for (option, path), (other, second) in itertools.combinations(regular.items(), 2):
        if _is_same(path, second):
            raise ValueError(f"{option} and {other} are the same file, {path}: choose two different files")


def check_model_name(option: str, path: Path | None) -> None:
    """Raise if a model file has the name of a table or page, which is likely a mistake."""
    if path is not None and _suffix(path) in (*_TABLES, *_PAGES):
        raise ValueError(
            f"{option} {path} is the name of a table or page, but the output is a model: end it in .castle"
        )


def check_page_name(option: str, path: Path | None) -> None:
    """Raise if a page has the name of a table or model, which is likely a mistake."""
    if path is not None and _suffix(path) in (*_TABLES, ".castle"):
        raise ValueError(f"{option} {path} is the name of a table or model, but the output is a page: end it in .html")


def _suffix(path: Path) -> str:
    name = Path(path.name.lower())
    return Path(name.stem).suffix if name.suffix in (".gz", ".bz2", ".xz", ".zip", ".zst") else name.suffix


def _file_of(path: Path) -> Path:
    """Return the file of a sheet that is specified as ``book.xlsx#sheet``."""
    return path.with_name(path.name.partition("#")[0]) if "#" in path.name[1:] and not path.exists() else path


def _is_input(path: Path, source: Path) -> bool:
    with suppress(OSError):  # a path that does not exist, or standard input without a file
        if str(source) == "-":
            return os.path.samestat(os.stat(path), os.fstat(sys.stdin.fileno()))
        if os.path.samefile(path, source):
            return True
    return source.is_dir() and path.resolve().is_relative_to(source.resolve())


def _is_same(path: Path, other: Path) -> bool:
    """Compare files that need not exist; many file systems ignore the case of names."""
    with suppress(OSError):
        return os.path.samefile(path, other)
    path, other = path.resolve(), other.resolve()
    return path.parent == other.parent and path.name.casefold() == other.name.casefold()
