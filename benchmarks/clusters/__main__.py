"""Run a thousand small fits in one way, or write the figures into the page.

``python -m benchmarks.clusters serial | local | dask | ray | array [--search] [--kill]``
    As work items, or by ``GridSearchCV``; ``--kill`` kills a worker after 300 fits. Appends a line to results.csv.
``python -m benchmarks.clusters page``
    Write the table of docs/speed.md.
"""

from __future__ import annotations

import argparse
import os

# One thread for each process, before anything reads it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "1")
os.environ.setdefault("PYTHONWARNINGS", "ignore")


def main() -> None:
    """Read the command line."""
    from benchmarks.clusters import page, run
    from benchmarks.clusters.grid import ITEMS, fit
    from castlereg.work import run_items

    parser = argparse.ArgumentParser("benchmarks.clusters")
    parser.add_argument("way", choices=[*run.WAYS, "element", "page"])
    parser.add_argument("folder", nargs="?", help="Of an element of an array.")
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    if given.way == "page":
        page.write()
    elif given.way == "element":
        run_items(fit, ITEMS, given.folder)
    else:
        run.measure(given.way, "search" if given.search else "items", given.kill)


if __name__ == "__main__":
    main()
