"""Files that are whole or not there."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write that takes its place only when all is written.

    It is written beside its place under another name and moved there at the end. If something fails on the way, an
    older file stays as it was and nothing is left behind.

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
    ...     with whole_file(Path(folder) / "greeting") as file:
    ...         _ = file.write(b"hello")
    ...     (Path(folder) / "greeting").read_bytes()
    b'hello'
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: make the folder {path.parent} first")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder, so name a file in it")
    unfinished = path.parent / f".{secrets.token_hex(8)}.unfinished"
    try:
        with open(unfinished, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
