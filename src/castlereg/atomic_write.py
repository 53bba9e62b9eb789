"""Writing of files completely or not at all."""

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
    """Open a binary file for writing that appears under its name only once it is complete.

    The content is written to a temporary file in the same folder, which is renamed at the end. If an error occurs, an
    existing file is unchanged, the temporary file is removed, and the error names the path. A new file has the
    permissions of the file that it replaces. Devices and pipes are written directly.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "greeting") as file:
    ...         _ = file.write(b"hello")
    ...     (Path(folder) / "greeting").read_bytes()
    b'hello'
    """
    check_writable(path)
    target = path.resolve()  # links are preserved
    unfinished = target.parent / f".{secrets.token_hex(8)}.unfinished"
    try:
        if path.exists() and not path.is_file():
            with open(path, "wb") as file:
                yield file
            return
        with open(unfinished, "xb") as file:
            if target.exists():
                shutil.copymode(target, unfinished)  # also restricts access while writing
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(unfinished)):
            error.filename = str(path)  # a full disk, or a read-only folder
        raise
    finally:
        unfinished.unlink(missing_ok=True)


def check_writable(*paths: Path | None) -> None:
    """Raise if a path is a folder or in a missing folder, before a long training rather than after it."""
    for path in paths:
        if path is not None and path.is_dir():
            raise IsADirectoryError(f"cannot write {path}: it is a folder; name a file in it")
        if path is not None and not path.parent.is_dir():
            raise FileNotFoundError(f"cannot write {path}: create the folder {path.parent} first")
