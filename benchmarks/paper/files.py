"""Results of experiments as files, one per experiment with a line per unit; page and report are written from them.

The records of a unit are stored column by column, which takes a third of the space; figures have nine digits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from castlereg.atomic_write import atomic_write
from castlereg.paper.experiments.description import Experiment, Scale
from castlereg.work import Done, ResultFolder, item_key

RESULTS = Path(__file__).with_name("results")
SCALE: Scale = "standard"


def pack(experiments: Iterable[Experiment], units: Path, results: Path = RESULTS) -> None:
    """Write the results in a folder of units to one file per experiment."""
    store = ResultFolder(units)
    results.mkdir(parents=True, exist_ok=True)
    for experiment in experiments:
        items = [experiment.item(unit) for unit in experiment.units(SCALE)]
        finished = store.read([item_key(item) for item in items])
        if finished:
            lines = [_line(done) for done in finished.values()]
            with atomic_write(results / f"{experiment.name}.jsonl") as file:
                file.write(("\n".join(lines) + "\n").encode())


def unpack(units: Path, results: Path = RESULTS) -> None:
    """Write packed results to a folder of units, so a run continues with the missing units."""
    store = ResultFolder(units)
    for path in sorted(results.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            content = json.loads(line)
            columns = content["records"]
            shared = {name: value for name, value in columns.items() if not isinstance(value, list)}
            lists = {name: value for name, value in columns.items() if isinstance(value, list)}
            records = [
                {name: lists[name][i] if name in lists else shared[name] for name in columns}
                for i in range(content["n"])
            ]
            store.write(content["item"], records, content["seconds"])


def _line(done: Done) -> str:
    records: list[dict[str, Any]] = done.result
    columns = {name: [_short(record[name]) for record in records] for name in records[0]}
    short = {name: values[0] if len(set(map(repr, values))) == 1 else values for name, values in columns.items()}
    content = {"item": done.item, "seconds": round(done.seconds, 1), "n": len(records), "records": short}
    return json.dumps(content, separators=(",", ":"))


def _short(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value
