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
    that, an older file stays as it was, nothing is left behind, and the error names the path. A new file has the
    permissions of the one that it replaces. Devices and pipes are written directly.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "greeting") as file:
    ...         _ = file.write(b"hello")
    ...     (Path(folder) / "greeting").read_bytes()
    b'hello'
    """
    check_writable(path)
    target = path.resolve()  # a link stays a link
    unfinished = target.parent / f".{secrets.token_hex(8)}.unfinished"
    try:
        if path.exists() and not path.is_file():
            with open(path, "wb") as file:
                yield file
            return
        with open(unfinished, "xb") as file:
            if target.exists():
                shutil.copymode(target, unfinished)  # nobody else may read it meanwhile
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(unfinished)):
            error.filename = str(path)  # of a full disk, or a folder that cannot be written
        raise
    finally:
        unfinished.unlink(missing_ok=True)


def check_writable(*paths: Path | None) -> None:
    """Raise if a path is a folder or in a folder that does not exist: better before hours of training than after."""
    for path in paths:
        if path is not None and path.is_dir():
            raise IsADirectoryError(f"cannot write {path}: it is a folder; name a file in it")
        if path is not None and not path.parent.is_dir():
            raise FileNotFoundError(f"cannot write {path}: make the folder {path.parent} first")
