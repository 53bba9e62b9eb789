"""Run items on joblib's workers: this process, processes of this machine, or a Dask or Ray cluster."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from joblib import Parallel, delayed

from castlereg.work.clusters import active_cluster, run_on_cluster
from castlereg.work.one_item import lost_item, run_item
from castlereg.work.results import Done

_TOGETHER = 2  # times that an item may lose its worker while others run; then it runs on its own


def run_in_workers(
    function: Callable[[Any], Any], items: Iterable[tuple[str, Any]], n_jobs: int | None = None
) -> Iterator[tuple[str, Done]]:
    """Run items with joblib; yield each with its key when it is done.

    Parameters
    ----------
    function : callable
        Takes an item. Its errors are returned as messages, and the other items continue.
    items : iterable of (str, item)
        Keys and items, taken as workers become free.
    n_jobs : int, optional
        Number of items that run in parallel, each on one core; 1 is this process. By default the number of
        :func:`joblib.parallel_config`. A cluster uses all its cores.

    Yields
    ------
    str, Done
        An item whose worker died runs again; after the third time it is an error.
    """
    cluster = active_cluster()
    if cluster is not None:
        yield from run_on_cluster(cluster, function, iter(items))
        return
    queue, deaths, isolated = _Queue(items), Counter[str](), dict[str, Any]()
    while queue.has_items():
        try:
            for key, done in _parallel(function, queue, n_jobs):
                del queue.running[key]
                yield key, done
        except Exception:  # errors of the function are in the results
            if not queue.running:  # joblib itself cannot run
                raise
            deaths.update(queue.running.keys())
        for key, item in queue.taken_back():
            if deaths[key] < _TOGETHER:
                queue.add(key, item)
            else:
                isolated[key] = item
    for key, item in isolated.items():
        try:
            yield from _parallel(function, [(key, item)], n_jobs)
        except Exception as error:
            yield key, lost_item(item, error)


def _parallel(
    function: Callable[[Any], Any], items: Iterable[tuple[str, Any]], n_jobs: int | None
) -> Iterator[tuple[str, Done]]:
    calls = map(lambda of_item: delayed(run_item)(function, *of_item), items)
    with warnings.catch_warnings():
        # joblib replaces processes that have grown, as those that compile many programs do
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
        yield from Parallel(n_jobs, batch_size=1, return_as="generator_unordered")(calls)


class _Queue:
    """Items to be run, handed out one by one to any thread of joblib."""

    def __init__(self, items: Iterable[tuple[str, Any]]) -> None:
        self._items, self._first, self._lock = iter(items), list[tuple[str, Any]](), threading.Lock()
        self.running: dict[str, Any] = {}

    def __iter__(self) -> _Queue:
        return self

    def __next__(self) -> tuple[str, Any]:
        with self._lock:
            key, item = self._first.pop() if self._first else next(self._items)
            self.running[key] = item
            return key, item

    def has_items(self) -> bool:
        """Return whether there are items left, so that no processes are started without work."""
        with self._lock:
            if not self._first:
                self._first += islice(self._items, 1)
            return bool(self._first)

    def add(self, key: str, item: Any) -> None:
        """Put an item first."""
        with self._lock:
            self._first.append((key, item))

    def taken_back(self) -> list[tuple[str, Any]]:
        """Return the items that were handed out and are not done."""
        with self._lock:
            items = list(self.running.items())
            self.running.clear()
            return items
