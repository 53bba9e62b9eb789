"""Run benchmarks and print their tables: ``python -m benchmarks [name ...]``; all by default.

Tables for the page on speed are stored in ``benchmarks/timings``, and the page is updated. Accuracy, effects and the
engines have their own commands, such as ``python -m benchmarks.accuracy``.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from benchmarks.timings import record

TIMED = (
    *("startup", "prediction", "growth", "four_hundred", "wide_tables", "long_tables", "sampled_quality"),
    *("memory", "synthetic_speed", "acyclicity_speed", "engine_losses"),
)
OTHERS = ("graph_recovery", "theorem")


def main(names: list[str]) -> None:
    """Run the named benchmarks."""
    unknown = set(names) - {*TIMED, *OTHERS}
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(sorted(unknown))}; choose from {', '.join([*TIMED, *OTHERS])}")
    for name in names or TIMED:
        module = importlib.import_module(f"benchmarks.{name}")
        if name in OTHERS:
            module.main([])
            continue
        table = module.run()
        shown = table.to_string(index=False, float_format=lambda value: f"{value:.3g}")
        print(f"\n{str(module.__doc__).splitlines()[0]}\n{shown}", flush=True)
        if name in ("growth", "long_tables"):
            print(module.exponents(table).to_string(float_format=lambda value: f"{value:.2f}"))
        if name == "growth":
            module.plot(table, Path("docs/images/growth.png"))
        record(name, table)


if __name__ == "__main__":
    main(sys.argv[1:])
