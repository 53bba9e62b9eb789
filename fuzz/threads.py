"""One model used by 50 threads, and 50 threads that load and save at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import castlereg
from fuzz.model_files import originals
from fuzz.tables import same
from fuzz.verdict import Counts, expect

THREADS = 50


def check(seed: int, folder: Path) -> Counts:
    """Predict, load and save from many threads; all results equal those of one thread."""
    rng = np.random.default_rng([7, seed])
    known = originals(folder.parent)
    content, X, predicted = known[int(rng.integers(len(known)))]
    path = folder / "model.castle"
    path.write_bytes(content)
    model = castlereg.load(path)
    rows = [rng.permutation(len(X))[: 1 + rng.integers(len(X))] for _ in range(THREADS)]
    alone = [model.predict(X.iloc[chosen]) for chosen in rows]
    together = _together(lambda k: [model.predict(X.iloc[rows[k]]) for _ in range(5)])
    for expected, results in zip(alone, together, strict=True):
        for result in results:
            same(result, expected, "a model in a thread")
    for loaded in _together(lambda k: castlereg.load(path).predict(X)):
        same(loaded, predicted, "a model loaded in a thread")

    def save_and_load(k: int) -> Any:
        castlereg.save(model, path)
        return castlereg.load(path).predict(X)

    for loaded in _together(save_and_load):
        same(loaded, predicted, "a model saved and loaded in a thread")
    expect(path.read_bytes() == content, "the file that all threads wrote differs")
    expect(list(folder.iterdir()) == [path], "threads left files behind")
    return {"threads": 3 * THREADS, "predictions": 7 * THREADS}


def _together(work: Callable[[int], Any]) -> list[Any]:
    """Start the same work in all threads at the same time, and return the results."""
    barrier = threading.Barrier(THREADS)
    results: list[Any] = [None] * THREADS
    errors: list[BaseException] = []

    def run(k: int) -> None:
        try:
            barrier.wait()
            results[k] = work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
