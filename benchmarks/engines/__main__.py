"""Measure both engines, or write the figures into the page.

``python -m benchmarks.engines run [CASE ...]``
    Every case on each engine in its own process, one after the other; results.csv holds the last figures of each.
``python -m benchmarks.engines page``
    Write the tables of docs/speed.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

import pandas as pd

from benchmarks.engines.page import RESULTS, write

ENGINES = ("jax", "native")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser("benchmarks.engines")
    parser.add_argument("command", choices=["run", "page", "case"])
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if given.command == "page":
        write()
        return
    from benchmarks.engines import cases

    if given.command == "case":
        engine, case = given.names
        cases.use(engine)
        print(json.dumps(cases.run(case)))
        return
    for case in given.names or [*cases.CASES, "first_fit"]:
        _keep(case, _first_fit() if case == "first_fit" else {engine: _measured(engine, case) for engine in ENGINES})
    write()


def _measured(engine: str, case: str) -> dict[str, float]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.engines", "case", engine, case]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    figures: dict[str, float] = json.loads(printed.splitlines()[-1])
    return figures


def _first_fit() -> dict[str, dict[str, float]]:
    """Return the seconds of a process that fits one model, and of one that fits scikit-learn's."""
    from benchmarks.startup import run

    table = run().set_index("")["seconds"]
    peer = float(table["scikit-learn's MLP"])
    return {"native": {"seconds": float(table["castlereg, cold"]), "peer": peer}}


def _keep(case: str, by_engine: dict[str, dict[str, float]]) -> None:
    rows = [
        {"case": case, "engine": engine, "figure": name, "value": f"{value:.6g}"}
        for engine, figures in by_engine.items()
        for name, value in figures.items()
    ]
    known = pd.read_csv(RESULTS) if RESULTS.exists() else pd.DataFrame(columns=["case"])
    pd.concat([known[known["case"] != case], pd.DataFrame(rows)]).to_csv(RESULTS, index=False)
    print(case, by_engine, flush=True)


if __name__ == "__main__":
    main()
