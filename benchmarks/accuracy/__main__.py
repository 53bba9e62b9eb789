"""Run the benchmark of accuracy, or write its page.

``python -m benchmarks.accuracy run METHOD ... [--splits N] [--settings]``
    Methods of ours, or rivals; rivals that are not installed here run in an environment of their own, which needs
    NumPy, pandas and scikit-learn beside them. ``--settings`` runs the tables on which settings were chosen, on splits
    that the benchmark does not have.
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
    given = parser.parse_args()
    if given.command == "page":
        from benchmarks.accuracy.page import write_page

        write_page()
        return
    folder = os.environ.get("CASTLEREG_DATA")
    if folder is None:
        sys.exit("set CASTLEREG_DATA to the folder of the tables")
    chosen = [cell for cell in cells(given.splits) if given.rows is None or cell.rows in given.rows]
    if set(given.methods) <= set(rivals.RIVALS):
        run.run(given.methods, rivals.predict, chosen, Path(folder))
    else:
        from benchmarks.accuracy.ours import predict

        run.run(given.methods, predict, chosen, Path(folder))


if __name__ == "__main__":
    main()
