"""Run the items that are not done yet, together with all other processes that share the folder."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from castlereg.notices import shows_progress
from castlereg.options import check_number
from castlereg.work.claims import Claims
from castlereg.work.results import Done, ResultFolder, item_key
from castlereg.work.workers import run_in_workers

STALE_AFTER = 300.0  # seconds: file systems of clusters show a change within about one minute
_LONGEST_PAUSE = 5.0  # seconds between two checks for results of other processes


class ItemsFailed(RuntimeError):
    """Some items raised an error, see ``failed``; the results of all others are kept."""

    def __init__(self, failed: list[Done], n_items: int, folder: Path) -> None:
        reasons = "; ".join(f"{n} of them: {error}" for error, n in Counter(done.error for done in failed).items())
        super().__init__(
            f"{len(failed)} of {n_items} items failed ({reasons}). The other results are kept in {folder}; run again "
            "for the failed items"
        )
        self.failed = failed


def run_items(
    function: Callable[[Any], Any],
    items: Iterable[Any],
    folder: str | os.PathLike[str],
    *,
    n_jobs: int | None = None,
    stale_after: float = STALE_AFTER,
    verbose: bool | None = None,
) -> list[Any]:
    """Call a function on every item, and keep each result as a file: a ``map`` that can be interrupted and shared.

    Items that have a file are not run again. Several processes, also on several machines that share the folder, may
    make the same call at the same time: each takes the items that no other has claimed, and all return when all items
    are done. Items of a process that has ended are taken over.

    Parameters
    ----------
    function : callable
        Takes an item and returns numbers, strings, lists and dicts of these, or numbers and arrays of NumPy. It must
        always return the same result for the same item; use another folder for another function.
    items : iterable
        Items that JSON can represent: numbers, strings, lists and dicts of these. An item must contain everything that
        its result depends on.
    folder : str or path
        Folder of the results, with one JSON file per item, named by a digest of the item. Only the processes that make
        this call need access to it, not the workers of their backends.
    n_jobs : int, optional
        Number of items that run in parallel, each on one core, on the backend that :func:`joblib.parallel_config`
        chooses: processes of this machine by default. 1, joblib's default, runs them in this process. A Dask or Ray
        cluster uses all its cores.
    stale_after : float
        Seconds after which an item is taken over from a process of another machine that no longer touches its claim.
        Processes of this machine that have ended are noticed immediately.
    verbose : bool, optional
        Show a progress bar; by default in a terminal or notebook.

    Returns
    -------
    list
        Results in the order of the items, as read from JSON.

    Raises
    ------
    ItemsFailed
        If the function raised an error for some items; it is raised after all others are done.

    Examples
    --------
    >>> import tempfile
    >>> from castlereg.work import run_items
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     squares = run_items(lambda n: n * n, [1, 2, 3], folder)
    ...     again = run_items(lambda n: n * n, [1, 2, 3, 4], folder)  # runs only 4
    >>> squares, again
    ([1, 4, 9], [1, 4, 9, 16])
    """
    listed, store = list(items), ResultFolder(Path(folder))
    keys = [item_key(item) for item in listed]
    n_items, n_stored, failed = len(set(keys)), len(store.keys().intersection(keys)), []
    with tqdm(total=n_items, initial=n_stored, unit="item", disable=not shows_progress(verbose)) as bar:
        for done in finished_items(function, listed, folder, n_jobs=n_jobs, stale_after=stale_after):
            if done.error:
                failed.append(done)
            bar.update()
    if failed:
        raise ItemsFailed(failed, n_items, store.path)
    results = store.read(keys)
    return [results[key].result for key in keys]


def finished_items(
    function: Callable[[Any], Any],
    items: Iterable[Any],
    folder: str | os.PathLike[str],
    *,
    n_jobs: int | None = None,
    stale_after: float = STALE_AFTER,
) -> Iterator[Done]:
    """Run items as :func:`run_items` does; yield each new result when it is done, here or in another process.

    Items that fail are yielded with an error, which is not kept.
    """
    check_number("stale_after", stale_after, above=0)
    store = ResultFolder(Path(folder))
    waiting = {item_key(item): item for item in items}
    for key in store.keys() & waiting.keys():
        del waiting[key]
    if not waiting:
        return
    with Claims(store.path, stale_after) as claims:
        while True:
            for key, done in run_in_workers(function, _claimed(waiting, claims, store), n_jobs):
                done = _kept(done, store)
                claims.release(key)
                del waiting[key]
                yield done
            for key, done in store.read(waiting).items():
                del waiting[key]
                yield done
            if not waiting:
                return
            time.sleep(min(stale_after / 10, _LONGEST_PAUSE))  # other processes work on them


def _claimed(waiting: dict[str, Any], claims: Claims, store: ResultFolder) -> Iterator[tuple[str, Any]]:
    """Yield the items for this process to run; each is claimed when a worker is ready for it."""
    for key, item in list(waiting.items()):
        if claims.take(key):
            if store.has(key):  # finished by its former owner
                claims.release(key)
            else:
                yield key, item


def _kept(done: Done, store: ResultFolder) -> Done:
    """Write a result; if that fails, return an error of the item."""
    if done.error:
        return done
    try:
        store.write(done.item, done.result, done.seconds)
    except TypeError as error:
        return done._replace(result=None, error=str(error))
    except OSError as error:  # such as a full disk
        return done._replace(result=None, error=f"its result could not be written: {error}")
    return done
