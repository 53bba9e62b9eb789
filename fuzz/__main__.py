"""Run the campaign: ``python -m fuzz [--part NAME] [--count N] [--seconds N] [--jobs N] [--output DIR] [--seed N]``."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from fuzz.campaign import PARTS, Log, reproduce, run
from fuzz.page import record


def main(arguments: list[str] | None = None) -> int:
    """Run parts or a single case; return 1 if there are findings."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(
            errors="backslashreplace"
        )  # messages may contain characters that the encoding does not support
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description="Run the robustness campaign; a rerun continues it."
    )
    parser.add_argument("--part", action="append", choices=PARTS, help="part to run; repeat for several (default: all)")
    parser.add_argument("--count", type=int, help="number of cases per part (default: those of a full campaign)")
    parser.add_argument("--seconds", type=float, help="time limit of each part")
    parser.add_argument("--jobs", type=int, default=2, help="number of parallel cases (default: 2)")
    parser.add_argument(
        "--output", type=Path, default=Path("fuzz-results"), help="folder for the logs (default: fuzz-results)"
    )
    parser.add_argument("--seed", type=int, help="run only this case in this process, and print its result")
    parser.add_argument(
        "--record", action="store_true", help="write the figures to fuzz/results.json and docs/robustness.md"
    )
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
        counted = ", ".join(f"{number:,} {counted_name}" for counted_name, number in sorted(log.totals().items()))
        print(f"{name:8} {len(log.answers):,} cases, {len(log.findings())} findings; {counted}")
        for answer in log.findings()[:20]:
            print(f"    --part {name} --seed {answer['seed']}: {answer['finding'].splitlines()[0][:200]}")
    if given.record:
        record(logs)
    return int(any(log.findings() for log in logs.values()))


if __name__ == "__main__":
    sys.exit(main())
