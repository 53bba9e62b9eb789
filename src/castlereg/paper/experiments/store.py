"""Where results are kept: one SQLite file per experiment, one row per unit, written as soon as the unit is done."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from castlereg.paper.experiments.description import Record, Settings

_FORMAT = 1
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS units (key TEXT PRIMARY KEY, settings TEXT NOT NULL, records TEXT NOT NULL, "
    "seconds REAL NOT NULL) STRICT"
)


class StoreError(OSError):
    """Results could not be read or kept; what was kept before is still there."""


class Store:
    """Results of one experiment.

    Every unit is a separate transaction: a process that is killed leaves all units that were done, and no half ones.

    Parameters
    ----------
    path : Path
        Made when it does not exist, with its folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{path.parent}: cannot make the folder ({error.strerror}); give another --output"
            ) from error
        with self._connection() as connection:
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, _FORMAT):
                raise StoreError(
                    f"{path} has format {found}, and this version of castlereg writes format {_FORMAT}: give another "
                    "--output, or update castlereg"
                )
            connection.execute(_SCHEMA)
            if found == 0:
                connection.execute(f"PRAGMA user_version = {_FORMAT}")

    def records(self, keys: Iterable[str]) -> dict[str, list[Record]]:
        """Return the records of those of the units that are there."""
        wanted = set(keys)
        with self._connection() as connection:
            rows = connection.execute("SELECT key, records FROM units").fetchall()
        return {key: json.loads(records) for key, records in rows if key in wanted}

    def seconds(self) -> dict[str, float]:
        """Return how long each unit took."""
        with self._connection() as connection:
            return dict(connection.execute("SELECT key, seconds FROM units").fetchall())

    def put(self, key: str, settings: Settings, records: list[Record], seconds: float) -> None:
        """Keep the records of a unit; what is there already stays."""
        row = (key, _written(dict(settings)), _written(records), float(seconds))
        with self._connection() as connection:
            connection.execute("INSERT OR IGNORE INTO units VALUES (?, ?, ?, ?)", row)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self.path, timeout=60)
            try:
                with connection:  # commits, or rolls back
                    yield connection
            finally:
                connection.close()
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.path}: {error}. {_hint(error)}") from error


def _hint(error: sqlite3.DatabaseError) -> str:
    message = str(error)
    if "full" in message:
        return "Make room and run again: what is done is kept."
    if "readonly" in message or "unable to open" in message:
        return "The folder or file cannot be written: give another --output."
    if "not a database" in message or "malformed" in message:
        return "This is not a results file, or it is damaged: move it away, or give another --output."
    return "What was kept before is still there."


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
