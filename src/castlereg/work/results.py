"""Results of work items in a folder: one JSON file per item, which appears only when it is complete."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from castlereg.atomic_write import atomic_write

_SUFFIX = ".json"


class Done(NamedTuple):
    """An item that has run, with its result or an error."""

    item: Any
    result: Any
    seconds: float
    error: str = ""


def item_key(item: Any) -> str:
    """Return the name of an item's files: a digest of the item as JSON.

    Examples
    --------
    >>> item_key({"beta": 0.1, "seed": 3}) == item_key({"seed": 3, "beta": 0.1})
    True
    """
    try:
        written = json.dumps(item, sort_keys=True, default=_of_numpy)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"the item {item!r} cannot be written as JSON ({error}); use numbers, strings, lists and dicts"
        ) from None
    return hashlib.sha256(written.encode()).hexdigest()


class ResultFolder:
    """A folder of results, which several processes and machines may share.

    Parameters
    ----------
    path : Path
        Created when the first result is written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as path:
    ...     folder = ResultFolder(Path(path))
    ...     folder.write({"n": 3}, 9, seconds=0.5)
    ...     folder.read([item_key({"n": n}) for n in (2, 3)])[item_key({"n": 3})]
    Done(item={'n': 3}, result=9, seconds=0.5, error='')
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def keys(self) -> set[str]:
        """Return the keys of all items that are done."""
        return {file.stem for file in self.path.glob(f"*{_SUFFIX}")}

    def has(self, key: str) -> bool:
        """Return whether an item is done."""
        return (self.path / f"{key}{_SUFFIX}").exists()

    def read(self, keys: Iterable[str]) -> dict[str, Done]:
        """Return the items that are done, by key."""
        stored = self.keys()
        return {key: self._read(key) for key in dict.fromkeys(keys) if key in stored}

    def write(self, item: Any, result: Any, seconds: float) -> None:
        """Write the result of an item."""
        try:
            content = json.dumps({"item": item, "result": result, "seconds": float(seconds)}, default=_of_numpy)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"its result cannot be written as JSON ({error}); return numbers, strings, lists and dicts"
            ) from None
        self.path.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path / f"{item_key(item)}{_SUFFIX}") as file:
            file.write(content.encode())

    def _read(self, key: str) -> Done:
        path = self.path / f"{key}{_SUFFIX}"
        try:
            content = json.loads(path.read_bytes())
            return Done(content["item"], content["result"], content["seconds"])
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"{path} is not the result of an item ({error}); delete it and run again") from None


def _of_numpy(value: Any) -> Any:
    """Convert numbers and arrays of NumPy for JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"objects of type {type(value).__name__} have no JSON form")
