"""``castlereg-paper``: reproduce the paper's tables and figures, compare regularizers, and load the paper's tables."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from castlereg_paper.framework import Experiment

USAGE, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code. An error is one line, unless ``--debug`` is passed."""
    given = _parser().parse_args(arguments)
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    try:
        return int(given.command(given))
    except KeyboardInterrupt:
        return _failed("stopped; finished units are saved, and the same command continues from them", INTERRUPTED)
    except BrokenPipeError:
        return 0  # the reader has closed the pipe, as `head` does
    except (ArithmeticError, ImportError, OSError, ValueError) as error:
        if given.debug:
            raise
        where = f"{error.filename}: " if isinstance(error, OSError) and error.filename and error.strerror else ""
        return _failed(where + (getattr(error, "strerror", None) or str(error)), USAGE)


def _parser() -> argparse.ArgumentParser:
    """Return the commands and their options."""
    parser = argparse.ArgumentParser("castlereg-paper", description=(__doc__ or "").split(": ", 1)[1])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Any, about: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=about)
        added.set_defaults(command=command)
        added.add_argument("--json", action="store_true", help="Print one JSON object instead of text.")
        added.add_argument("--debug", action="store_true", help="Show the full traceback of an error.")
        return added

    run = add("run", _run, "Run experiments; a rerun continues from the results in its folder.")
    run.add_argument("names", nargs="*", help="Experiments; `castlereg-paper list` shows them.")
    run.add_argument("--all", action="store_true", help="Run all experiments.")
    run.add_argument(
        "--scale", default="quick", help="quick, standard (about an hour per experiment at most) or paper (its sizes)."
    )
    run.add_argument("--output", type=Path, default=Path("castlereg-experiments"), help="Folder for the results.")
    run.add_argument("--jobs", type=int, default=1, help="Units to run in parallel, each in a process with one core.")
    run.add_argument("--dry-run", action="store_true", help="Show what would run and the expected time, and exit.")
    run.add_argument("--page", type=Path, help="Also write all results to one page.")
    run.add_argument("--quiet", "-q", action="store_true", help="Show no progress bar.")

    add("list", _list, "List the experiments.")

    compare = add("compare", _compare, "Train methods on the same folds of a table, and score them on held-out rows.")
    compare.add_argument("table", type=Path, help="CSV or Parquet file.")
    compare.add_argument("--target", "-t", required=True, help="Column to predict.")
    compare.add_argument("--method", action="append", help="Method; repeat for several (default: the paper's ten).")
    compare.add_argument("--task", default="auto", help="auto, regression or classification.")
    compare.add_argument("--drop", action="append", default=[], help="Column to leave out; repeat for several.")
    compare.add_argument("--categorical", action="append", help="Numeric column to treat as categorical.")
    compare.add_argument("--folds", type=int, default=10, help="Cross-validation folds for each method.")
    compare.add_argument("--splits", type=int, default=1, help="Random splits into training and held-out rows.")
    compare.add_argument("--epochs", type=int, default=200, help="Maximum number of training epochs.")
    compare.add_argument("--seed", type=int, default=0, help="Random seed; the same seed gives the same result.")
    compare.add_argument("--output", type=Path, help="Folder for the results; a rerun continues from them.")

    datasets = add("datasets", _datasets, "List the tables of the catalogue, or write one to a CSV file.")
    datasets.add_argument("name", nargs="?", help="Table to show or write (default: list all tables).")
    datasets.add_argument("--output", "-o", type=Path, help="CSV file to write the table to.")
    datasets.add_argument("--variant", help="Which target and rows to use (default: default).")
    return parser


def _run(given: argparse.Namespace) -> int:
    """Run experiments, and write their tables, figures and page."""
    from castlereg.atomic_write import check_writable
    from castlereg.options import check_choice
    from castlereg_paper.experiments import EXPERIMENTS, experiment_named
    from castlereg_paper.framework import SCALES, run
    from castlereg_paper.pages import write_page, write_results

    if given.names and given.all:
        raise ValueError("--all cannot be combined with names of experiments: drop one of them")
    check_choice("--scale", given.scale, SCALES)
    chosen = list(EXPERIMENTS.values()) if given.all else [experiment_named(name) for name in given.names]
    if not chosen:
        raise ValueError("no experiment is named: pass names or --all; `castlereg-paper list` shows the names")
    if given.dry_run:
        return _dry_run(given, chosen)
    if given.page is not None:
        given.page.parent.mkdir(parents=True, exist_ok=True)
        check_writable(given.page)
    given.output.mkdir(parents=True, exist_ok=True)
    outcomes = run(chosen, given.scale, given.output, jobs=given.jobs, verbose=not (given.quiet or given.json))
    facts: list[dict[str, Any]] = []
    try:
        for each in chosen:
            outcome = outcomes[each.name]
            files = write_results(each, outcome, given.output) if len(outcome.results) else []
            done = outcome.n_units - len(outcome.failed)
            facts.append({"name": each.name, "units": outcome.n_units, "done": done, "messages": outcome.messages})
            facts[-1]["files"] = [str(path) for path in files]
        if given.page is not None:
            shown = [each for each in chosen if len(outcomes[each.name].results)]
            write_page(given.page, shown, outcomes, given.scale, given.output)
    except OSError as error:
        message = f"{error.filename}: {error.strerror}; the results are saved: run the command again to write them"
        raise ValueError(message) from error
    if given.json:
        print(json.dumps({"scale": given.scale, "experiments": facts, "page": given.page and str(given.page)}))
    else:
        for fact in facts:
            print(f"{fact['name']}: {fact['done']} of {fact['units']} units done", *fact["files"], sep="\n  ")
            for message in fact["messages"]:
                print(f"  {message}", file=sys.stderr)
    return 0 if all(outcomes[each.name].complete for each in chosen) else 1


def _dry_run(given: argparse.Namespace, chosen: list[Experiment]) -> int:
    """Print what would run, and the expected time."""
    from castlereg_paper.framework import waiting_units, with_sources

    facts: list[dict[str, Any]] = []
    for each in with_sources(chosen):
        waiting = waiting_units(each, given.scale, given.output)
        seconds = sum(map(each.cost, waiting))
        units = len(each.units(given.scale))
        facts.append({"name": each.name, "units": units, "to_run": len(waiting), "seconds": seconds})
    total = sum(fact["seconds"] for fact in facts) / given.jobs
    if given.json:
        print(json.dumps({"scale": given.scale, "jobs": given.jobs, "experiments": facts, "seconds": total}))
        return 0
    for fact in facts:
        print(f"{fact['name']}: {fact['to_run']} of {fact['units']} units to run, about {_duration(fact['seconds'])}")
    print(f"total: about {_duration(total)} with --jobs {given.jobs}")
    return 0


def _duration(seconds: float) -> str:
    """Return seconds in a readable unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _list(given: argparse.Namespace) -> int:
    """List the experiments."""
    from castlereg_paper.experiments import EXPERIMENTS

    rows = [{"name": each.name, "shown_in": each.shown_in, "title": each.title} for each in EXPERIMENTS.values()]
    _print_rows("experiments", rows, given.json)
    return 0


def _compare(given: argparse.Namespace) -> int:
    """Compare methods on a table."""
    from castlereg_paper.comparison import compare

    X = _read(given.table, [given.target, *given.drop, *(given.categorical or [])])
    X = X.dropna(subset=given.target).drop(columns=given.drop)
    result = compare(
        X.drop(columns=given.target),
        X[given.target],
        methods=given.method or "paper",
        cv=given.folds,
        n_splits=given.splits,
        task=given.task,
        max_epochs=given.epochs,
        random_state=given.seed,
        folder=given.output,
        verbose=False if given.json else None,
        **({"categorical_features": given.categorical} if given.categorical else {}),
    )
    if given.json:
        scores = json.loads(result.to_frame().reset_index().to_json(orient="records"))
        print(json.dumps({"table": str(given.table), "rows": len(X), "target": given.target, "methods": scores}))
    else:
        print(result)
    return 0


def _read(path: Path, needed: Iterable[str]) -> pd.DataFrame:
    """Read a table, and check that it has these columns."""
    import pandas as pd

    from castlereg.options import did_you_mean

    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, sep=None, engine="python")
    for name in needed:
        if name not in frame.columns:
            hint = did_you_mean(name, map(str, frame.columns)) or f"; it has {', '.join(map(str, frame.columns))}"
            raise ValueError(f"{path.name} has no column {name!r}{hint}")
    return frame


def _datasets(given: argparse.Namespace) -> int:
    """List the tables of the catalogue, or write one to a file."""
    from castlereg.atomic_write import atomic_write
    from castlereg_paper.datasets import catalogue, load

    if given.name is None:
        for option in ("output", "variant"):
            if getattr(given, option) is not None:
                raise ValueError(f"--{option} needs the name of a table; `castlereg-paper datasets` lists the names")
        listed = catalogue().reset_index()[["name", "rows", "columns", "task", "target", "title"]]
        _print_rows("tables", listed.to_dict(orient="records"), given.json)
        return 0
    table = load(given.name, variant=given.variant or "default")
    if given.output is not None:
        with atomic_write(given.output) as file:
            table.X.assign(**{str(table.y.name): table.y}).to_csv(file, index=False)
    facts = {"name": table.name, "variant": table.variant, "task": table.task, "rows": len(table.X)}
    facts |= {"columns": table.X.shape[1], "target": str(table.y.name), "file": given.output and str(given.output)}
    if given.json:
        print(json.dumps(facts))
    else:
        print(*(f"{name:<8} {value}" for name, value in facts.items() if value is not None), sep="\n")
    return 0


def _print_rows(name: str, rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print rows as a JSON object or as a table."""
    if as_json:
        print(json.dumps({name: rows}))
        return
    cells = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _failed(message: str, code: int) -> int:
    """Print an error in one line; return the exit code."""
    print(f"castlereg-paper: {message}", file=sys.stderr)
    return code
