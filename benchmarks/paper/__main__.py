"""Run the paper's experiments, or write pages from their results.

``python -m benchmarks.paper run [NAME ...] [--units FOLDER] [--jobs N]``
    Run the missing units of some or all experiments, and write the files in ``benchmarks/paper/results``. Units that
    are in the files are not run again.
``python -m benchmarks.paper page``
    Write the figures and the map of docs/when_it_pays.md, the rule of ``castlereg.advice``, and docs/results.md with
    its figures, once all experiments are complete.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.about import write_about
from benchmarks.paper import pages
from benchmarks.paper.files import RESULTS, SCALE, pack, unpack


def main() -> None:
    """Read the command line."""
    from castlereg.paper.experiments.registry import EXPERIMENTS, experiment_named
    from castlereg.paper.experiments.runner import run

    parser = argparse.ArgumentParser("benchmarks.paper")
    parser.add_argument("action", choices=["run", "page"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--units", type=Path, help="Folder of units; by default a new one.")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    if given.action == "page":
        pages.write()
        return
    chosen = [experiment_named(name) for name in given.names] or list(EXPERIMENTS.values())
    with tempfile.TemporaryDirectory() as folder:
        output = given.units or Path(folder)
        unpack(output / "units")
        try:
            run(chosen, SCALE, output, jobs=given.jobs)
        finally:
            pack(chosen, output / "units")
    write_about(RESULTS, "python -m benchmarks.paper run")


if __name__ == "__main__":
    main()
