"""Encoded rows in a temporary file: written once, then read in another order every epoch."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import BinaryIO, Self, cast

import numpy as np
from numpy.typing import NDArray

# Rows that are read together, so that reading in a random order is still reading long stretches.
PIECE = 1024


class RowFile:
    """Rows of float32 in a temporary file that is gone when it is closed, or the process ends.

    The file is read and written, not mapped: the rows do not count as memory of the process.

    Parameters
    ----------
    width : int
        Numbers in a row.
    """

    def __init__(self, width: int) -> None:
        self.width, self.n_rows = width, 0
        self._file = cast(BinaryIO, tempfile.TemporaryFile(prefix="castlereg-", suffix=".rows"))  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, rows: NDArray[np.float32]) -> None:
        """Write rows, shape (rows, width), behind the others."""
        self._file.seek(0, 2)
        self._file.write(np.ascontiguousarray(rows, np.float32).data)
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
