"""Run the benchmarks and print their tables: ``python -m benchmarks [name ...]``."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from benchmarks import (
    acyclicity_speed,
    comparison,
    cross_validation,
    eager_torch,
    engine_losses,
    four_hundred,
    graph_recovery,
    grid,
    growth,
    known_edges,
    known_graphs,
    long_tables,
    memory,
    mixed_recovery,
    prediction,
    real_tables,
    regularizers,
    sampled_quality,
    startup,
    synthetic_speed,
    theorem,
    throughput,
    wide_tables,
)


def _print(title: str, table: pd.DataFrame) -> None:
    print(f"\n{title}\n{table.to_string(index=False, float_format=lambda v: f'{v:.3g}')}", flush=True)


def main(names: list[str]) -> None:
    """Run the named benchmarks, all by default."""
    known = {
        "grid": grid,
        "comparison": comparison,
        "startup": startup,
        "throughput": throughput,
        "prediction": prediction,
        "growth": growth,
        "memory": memory,
        "eager_torch": eager_torch,
        "four_hundred": four_hundred,
        "sampled_quality": sampled_quality,
        "wide_tables": wide_tables,
        "long_tables": long_tables,
        "synthetic_speed": synthetic_speed,
        "acyclicity_speed": acyclicity_speed,
        "engine_losses": engine_losses,
    }
    accuracy = (
        "known_graphs",
        "known_edges",
        "graph_recovery",
        "mixed_recovery",
        "regularizers",
        "real_tables",
        "cross_validation",
        "theorem",
    )
    unknown = set(names) - {*known, *accuracy}
    if unknown:
        sys.exit(f"no benchmark named {', '.join(sorted(unknown))}; there are {', '.join([*known, *accuracy])}")
    for name, module in known.items():
        if not names or name in names:
            table = module.run()
            _print(str(module.__doc__).splitlines()[0], table)
            if module is growth or module is long_tables:
                print(module.exponents(table).to_string(float_format=lambda v: f"{v:.2f}"))
            if module is growth:
                growth.plot(table, Path("docs/images/growth.png"))
    if not names or "known_graphs" in names:
        known_graphs.main()
    if not names or "known_edges" in names:
        known_edges.main()
    if not names or "graph_recovery" in names:
        graph_recovery.main([])
    if not names or "mixed_recovery" in names:
        mixed_recovery.main([])
    if not names or "regularizers" in names:
        regularizers.main([])
    if not names or "real_tables" in names:
        real_tables.main([])
    if not names or "cross_validation" in names:
        cross_validation.main([])
    if not names or "theorem" in names:
        theorem.main([])


if __name__ == "__main__":
    main(sys.argv[1:])
