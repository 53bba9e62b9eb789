"""Run the campaign: ``python -m fuzz [--part NAME] [--count N] [--seconds N] [--jobs N] [--output DIR] [--seed N]``."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from fuzz.campaign import PARTS, Log, reproduce, run
from fuzz.page import record


def main(arguments: list[str] | None = None) -> int:
    """Run parts, or one case; return 1 if there are findings."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # messages may hold what no encoding has
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Robustness campaign; a rerun goes on.")
    parser.add_argument("--part", action="append", choices=PARTS, help="part to run; repeat it for several (all)")
    parser.add_argument("--count", type=int, help="cases of each part (by default: those of a whole campaign)")
    parser.add_argument("--seconds", type=float, help="stop each part after this time")
    parser.add_argument("--jobs", type=int, default=2, help="cases side by side (2)")
    parser.add_argument("--output", type=Path, default=Path("fuzz-results"), help="folder of the logs (fuzz-results)")
    parser.add_argument("--seed", type=int, help="run only this case, here, and show what happens")
    parser.add_argument("--record", action="store_true", help="write the figures to fuzz/results.json and the docs")
    given = parser.parse_args(arguments)
    parts = [PARTS[name] for name in given.part or PARTS]
    if given.seed is not None:
        if len(parts) != 1:
            parser.error("--seed needs one --part")
        answer = reproduce(parts[0].name, given.seed)
        print(answer.get("trace") or answer)
        return int("finding" in answer)
    logs: dict[str, Log] = {}
    for part in parts:
        count = part.count if given.count is None else given.count
        logs[part.name] = run(part, given.output, count=count, jobs=given.jobs, seconds=given.seconds)
    for name, log in logs.items():
        counted = ", ".join(f"{number:,} {what}" for what, number in sorted(log.totals().items()))
        print(f"{name:8} {len(log.answers):,} cases, {len(log.findings())} findings; {counted}")
        for answer in log.findings()[:20]:
            print(f"    --part {name} --seed {answer['seed']}: {answer['finding'].splitlines()[0][:200]}")
    if given.record:
        record(logs)
    return int(any(log.findings() for log in logs.values()))


if __name__ == "__main__":
    sys.exit(main())
