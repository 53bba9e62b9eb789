"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file for writing that appears under its name only when it is complete.

    The content goes into a temporary file in the same folder, which is renamed at the end. If something fails before
    that, an older file stays as it was and nothing is left behind. A new file has the permissions of the one that it
    replaces. Devices and pipes are written directly.

    Parameters
    ----------
    path : Path
        In a folder that exists.

    Yields
    ------
    binary file

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "greeting") as file:
    ...         _ = file.write(b"hello")
    ...     (Path(folder) / "greeting").read_bytes()
    b'hello'
    """
    check_path(path)
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
        return
    path = path.resolve()  # a link stays a link
    unfinished = path.parent / f".{secrets.token_hex(8)}.unfinished"
    try:
        with open(unfinished, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def check_path(path: Path) -> None:
    """Raise if a path is a folder or in a folder that does not exist: better before hours of training than after."""
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; name a file in it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: make the folder {path.parent} first")
