"""Write the figures of both engines, and the comparison with scikit-learn, to ``docs/speed.md``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from benchmarks.marked_figures import DOCS, write_figures
from castlereg_paper.markdown import markdown_table

RESULTS = Path(__file__).with_name("results.csv")
COMMAND = "python -m benchmarks.engines page"


def read() -> Callable[..., float]:
    """Return the function from case, engine and figure to its value; NaN where it was not measured."""
    known = pd.read_csv(RESULTS).set_index(["case", "engine", "figure"])["value"]
    return lambda case, engine="native", figure="seconds": float(known.get((case, engine, figure), float("nan")))


def against_peer() -> str:
    """Return the comparison with scikit-learn."""
    value = read()
    names = {
        "grid": ("a grid of 10 folds x 4 betas, 500 rows x 9 features, 200 epochs", "40 plain MLPs"),
        "compare": ("`compare`, ten methods (180 networks), 500 x 10, first run", "10 grid searches of one MLP"),
        "first_fit": ("process start to first fitted model, 442 x 10, nothing cached", "one MLP"),
    }
    rows = []
    for case, (name, peer) in names.items():
        ours, theirs = value(case), value(case, figure="peer")
        digits = 0 if theirs > 5 * ours else 1
        ratio = f"{ours / theirs:.1f} times the time" if ours > theirs else f"{theirs / ours:.{digits}f} times as fast"
        rows.append((name, f"{theirs:.1f} s ({peer})", f"{ours:.1f} s", ratio))
    return markdown_table(pd.DataFrame(rows, columns=["", "scikit-learn", "castlereg", " "]))


def figures() -> str:
    """Return the tables of the page on speed."""
    known, value = pd.read_csv(RESULTS).set_index(["case", "engine", "figure"]), read()

    rows = [
        (
            "a grid of 40 networks, speed-up over 40 MLPs of scikit-learn",
            *(f"{value('grid', engine, 'peer') / value('grid', engine):.0f}" for engine in ("jax", "native")),
        ),
        ("a comparison of ten methods, first run in a process, s", *_pair(value, "compare")),
        ("`CastleRegressorCV()` on 1,000 rows x 20 mixed columns, first fit, s", *_pair(value, "search")),
        ("the same again, s", *_pair(value, "search", "again")),
        (
            "a process that fits 442 x 10, time relative to scikit-learn's MLP",
            "",
            f"{value('first_fit', 'native') / value('first_fit', 'native', 'peer'):.1f}",
        ),
    ]
    stacks = [case for case in known.index.unique("case") if case.startswith("throughput:")]
    for case in stacks:
        shares = (value(case, engine, "rate") / value(case, engine, "limit") for engine in ("jax", "native"))
        rows.append(
            (f"{case.partition(':')[2]}, share of the machine's float32 product", *map("{:.2f}".format, shares))
        )
    sizes = [case.split(":")[1:] for case in known.index.unique("case") if case.startswith("steps:")]
    ratios = pd.DataFrame(
        [
            (
                f"{nodes} x {width}",
                int(n),
                f"{value(case, 'jax') / value(case):.1f}" if value(case, figure="is_native") else "JAX",
            )
            for nodes, width, n in sizes
            for case in [f"steps:{nodes}:{width}:{n}"]
        ],
        columns=["nodes x width", "networks", "ratio"],
    ).pivot(index="nodes x width", columns="networks", values="ratio")
    ratios = ratios.loc[list(dict.fromkeys(f"{nodes} x {width}" for nodes, width, _ in sizes))]
    ratios.columns = pd.Index([f"{n} network{'s' if n > 1 else ''}" for n in ratios.columns])
    return "\n\n".join(
        [
            against_peer().rstrip(),
            "These and other cases on both engines:",
            markdown_table(pd.DataFrame(rows, columns=["", "JAX", "native"])).rstrip(),
            "Speed-up of an epoch on the native engine over JAX, after compilation; "
            '"JAX" where `engine="auto"` uses JAX:',
            markdown_table(ratios.reset_index()).rstrip(),
        ]
    )


def _pair(value: Callable[..., float], case: str, figure: str = "seconds") -> tuple[str, str]:
    first, second = (value(case, engine, figure) for engine in ("jax", "native"))
    return f"{first:.1f}", f"{second:.1f}"


def write() -> None:
    """Write the tables."""
    write_figures(DOCS / "speed.md", COMMAND, figures())
