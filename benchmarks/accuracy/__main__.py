"""Run the benchmark of accuracy, or write its page.

``python -m benchmarks.accuracy run METHOD ... [--splits N] [--rows N ...]``
    Methods of ours, or rivals; rivals that are not installed here run in a separate environment, which needs
    NumPy, pandas and scikit-learn too: ``pip install torch pytabkit catboost``. What is in the table of results
    is not run again.
``python -m benchmarks.accuracy time --rivals PYTHON``
    Seconds of our searches, CatBoost and RealMLP in turn; PYTHON is that of the rivals' environment.
``python -m benchmarks.accuracy coverage``
    Coverage of the intervals and class sets of ``search="best"``.
``python -m benchmarks.accuracy page``
    Write docs/accuracy.md and its pictures from the results.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.accuracy import rivals, run
from benchmarks.accuracy.cells import SPLITS, cells


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser("benchmarks.accuracy")
    commands = parser.add_subparsers(dest="command", required=True)
    of_run = commands.add_parser("run")
    of_run.add_argument("methods", nargs="+")
    of_run.add_argument("--splits", type=int, default=SPLITS)
    of_run.add_argument("--rows", type=int, nargs="*", default=None)
    commands.add_parser("page")
    of_time = commands.add_parser("time")
    of_time.add_argument("--rivals", required=True, metavar="PYTHON")
    commands.add_parser("coverage")
    of_work = commands.add_parser("work")
    of_work.add_argument("method")
    of_work.add_argument("table")
    given = parser.parse_args()
    if given.command == "page":
        from benchmarks.accuracy.page import write_page

        write_page()
        return
    folder = os.environ.get("CASTLEREG_DATA")
    if folder is None:
        sys.exit("set CASTLEREG_DATA to the folder of the tables")
    if given.command == "coverage":
        from benchmarks.accuracy.coverage import measure

        measure(Path(folder))
        return
    if given.command in ("time", "work"):
        from benchmarks.accuracy import timing

        if given.command == "time":
            timing.measure(given.rivals, Path(folder))
        else:
            timing.work(given.method, given.table, Path(folder))
        return
    chosen = [cell for cell in cells(given.splits) if given.rows is None or cell.rows in given.rows]
    if set(given.methods) <= set(rivals.RIVALS):
        run.run(given.methods, rivals.predict, chosen, Path(folder))
    else:
        from benchmarks.accuracy.ours import predict

        run.run(given.methods, predict, chosen, Path(folder))


if __name__ == "__main__":
    main()
