"""Claims: which process works on which item, as files next to the results.

A claim is a file that only one process can create. Its owner touches it while it runs, so that others notice if it ends
without a result. If two processes take over the claim of a third at the same moment, an item runs twice, and both write
the same result.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

_TOUCHES = 5  # within the time after which a claim is stale


class Claims:
    """The claims of this process in a folder; a thread touches them until the ``with`` block ends.

    Parameters
    ----------
    folder : Path
    stale_after : float
        Seconds after which a claim that was not touched is taken to belong to a process that has ended.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Claims(Path(folder), 60) as ours:
    ...     with Claims(Path(folder), 60) as theirs:
    ...         print(ours.take("a"), theirs.take("a"), theirs.take("b"))
    ...     ours.release("a")
    ...     ours.take("b")  # released at the end of their block
    True False True
    True
    """

    def __init__(self, folder: Path, stale_after: float) -> None:
        self._folder, self._stale_after = folder, stale_after
        self._held: set[str] = set()
        self._seen: dict[str, tuple[int, float]] = {}  # when others touched their claims, and when we first noticed
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._touch, name="castlereg claims", daemon=True)

    def __enter__(self) -> Claims:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        for key in list(self._held):
            self.release(key)

    def take(self, key: str) -> bool:
        """Claim an item; return whether it is ours now."""
        path = self._path(key)
        try:
            if self._is_stale(key):
                path.unlink(missing_ok=True)
            with open(path, "x", encoding="utf-8") as file:
                json.dump({"host": socket.gethostname(), "process": os.getpid()}, file)
        except FileExistsError:
            return False
        except OSError:  # such as a full disk: an item may then run twice
            pass
        self._held.add(key)
        return True

    def release(self, key: str) -> None:
        """Release the claim of an item."""
        self._held.discard(key)
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.claim"

    def _is_stale(self, key: str) -> bool:
        """Return whether the owner of a claim has ended; clocks of machines may differ."""
        path = self._path(key)
        try:
            touched = path.stat().st_mtime_ns
            if _has_ended(_owner(path)):
                return True
        except FileNotFoundError:  # nobody has claimed it
            return False
        now = time.monotonic()
        last, first_seen = self._seen.get(key, (touched, now))
        self._seen[key] = (touched, now if touched != last else first_seen)
        return now - self._seen[key][1] > self._stale_after

    def _touch(self) -> None:
        while not self._ended.wait(self._stale_after / _TOUCHES):
            for key in list(self._held):
                try:
                    os.utime(self._path(key))
                except FileNotFoundError:
                    pass  # released, or taken over while this process was suspended


def _owner(path: Path) -> dict[str, Any]:
    try:
        owner = json.loads(path.read_bytes())
    except ValueError:  # just created
        return {}
    return owner if isinstance(owner, dict) else {}


def _has_ended(owner: dict[str, Any]) -> bool:
    """Return whether the process ran on this machine and has ended; False for processes of other machines."""
    process = owner.get("process")
    if os.name != "posix" or owner.get("host") != socket.gethostname() or type(process) is not int or process < 1:
        return False
    try:
        os.kill(process, 0)  # sends nothing
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False
