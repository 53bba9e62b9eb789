"""Run the benchmark of effects, or write its page.

``python -m benchmarks.effects make FOLDER [--seeds FIRST LAST]``
    Draw worlds; write rows and the true effect of every column on an outcome.
``python -m benchmarks.effects run FOLDER``
    Run our estimates, linear adjustment and the plain association; write learned graphs for the peers.
``python -m benchmarks.effects peers FOLDER DOWHY.json``
    Score the output of benchmarks/peers/dowhy_effects.py, which runs in its own environment.
``python -m benchmarks.effects counterfactuals``
    Compare counterfactuals of fitted and of true equations with the truth.
``python -m benchmarks.effects speed FOLDER``
    Time questions about 10,000 rows of 50 columns; write the rows for benchmarks/peers/dowhy_speed.py, whose result
    is added to speed.csv by hand.
``python -m benchmarks.effects page``
    Write docs/effects.md and its figure from the results.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.effects import counterfactuals, run, speed, worlds

SEEDS = (0, 8)  # of the page; equations were chosen on seeds 100 to 107


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser("benchmarks.effects")
    commands = parser.add_subparsers(dest="command", required=True)
    of_make = commands.add_parser("make")
    of_make.add_argument("folder", type=Path)
    of_make.add_argument("--seeds", type=int, nargs=2, default=SEEDS)
    commands.add_parser("run").add_argument("folder", type=Path)
    of_peers = commands.add_parser("peers")
    of_peers.add_argument("folder", type=Path)
    of_peers.add_argument("output", type=Path)
    commands.add_parser("counterfactuals")
    commands.add_parser("speed").add_argument("folder", type=Path)
    commands.add_parser("page")
    given = parser.parse_args()
    if given.command == "make":
        for seed in range(*given.seeds):
            for kind in worlds.KINDS:
                worlds.write(worlds.problem(kind, seed), given.folder)
    elif given.command == "run":
        run.run(worlds.read(given.folder), given.folder)
    elif given.command == "peers":
        _score_peers(given.folder, given.output)
    elif given.command == "counterfactuals":
        counterfactuals.measure(range(*SEEDS))
    elif given.command == "speed":
        speed.write_for_peers(given.folder)
        speed.measure()
    else:
        from benchmarks.effects.page import write_page

        write_page()


def _score_peers(folder: Path, output: Path) -> None:
    results = json.loads(output.read_text())
    known = pd.read_csv(run.RESULTS)
    known[known["method"] != "DoWhy"].to_csv(run.RESULTS, index=False, float_format="%.5g")
    for problem in worlds.read(folder):
        for graph in ("true", "learned"):
            found = results.get(f"{problem.kind}_{problem.seed}/{graph}")
            if found is not None:
                estimates: run.Estimates = {c: (np.array(curve), None) for c, curve in found["curves"].items()}
                seconds = found["fit"], found["questions"]
                run.append([run.score(problem, estimates, seconds, "DoWhy", graph)])


if __name__ == "__main__":
    main()
