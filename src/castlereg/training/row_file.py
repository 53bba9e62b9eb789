"""Encoded rows in a temporary file: written once, then read in another order every epoch."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import BinaryIO, Self, cast

import numpy as np
from numpy.typing import NDArray

# Rows that are read together, so that reading in a random order is still reading stretches.
PIECE = 256
# Rows that are shuffled before they are written: neighbours in a sorted file must not be read together ever after.
_WINDOW = 65_536


class RowFile:
    """Rows of float32 in a temporary file that is gone when it is closed, or the process ends.

    The file is read and written, not mapped: the rows do not count as memory of the process.

    Parameters
    ----------
    width : int
        Numbers in a row.
    rng : numpy.random.Generator
        Shuffles rows on their way into the file.
    """

    def __init__(self, width: int, rng: np.random.Generator) -> None:
        self.width, self.n_rows, self._rng = width, 0, rng
        self._waiting: list[NDArray[np.float32]] = []
        self._file = cast(BinaryIO, tempfile.TemporaryFile(prefix="castlereg-", suffix=".rows"))  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, rows: NDArray[np.float32]) -> None:
        """Take rows, shape (rows, width), to be written with others that came before or come after."""
        self._waiting.append(np.asarray(rows, np.float32))
        if sum(map(len, self._waiting)) >= _WINDOW:
            together = np.concatenate(self._waiting)
            whole = len(together) // _WINDOW * _WINDOW
            for start in range(0, whole, _WINDOW):
                self._write(together[start : start + _WINDOW])
            self._waiting = [together[whole:].copy()]

    def finish(self) -> None:
        """Write the rows that still wait: no more will come."""
        if self._waiting:
            self._write(np.concatenate(self._waiting))
        self._waiting = []

    def _write(self, rows: NDArray[np.float32]) -> None:
        self._file.seek(0, 2)
        self._file.write(self._rng.permutation(rows).data)
        self.n_rows += len(rows)

    def read(self, start: int, into: NDArray[np.float32]) -> None:
        """Read neighbouring rows into an array of shape (rows, width)."""
        self._file.seek(4 * self.width * start)
        wanted = into.data.cast("B")
        if self._file.readinto(wanted) != len(wanted):  # type: ignore[attr-defined]
            raise OSError("the temporary file of encoded rows has become shorter: was the disk full?")

    def pieces(self) -> NDArray[np.int64]:
        """Return the first row of every piece."""
        return np.arange(0, self.n_rows, PIECE)

    def piece(self, start: int) -> NDArray[np.float32]:
        """Read one piece."""
        rows = np.empty((min(PIECE, self.n_rows - start), self.width), np.float32)
        self.read(start, rows)
        return rows

    def blocks(self, most: int | None = None) -> Iterator[NDArray[np.float32]]:
        """Go through the rows, or evenly through about so many of them."""
        step = 1 if most is None else max(1, -(-self.n_rows // max(most, 1)))
        for start in self.pieces()[::step]:
            yield self.piece(int(start))
