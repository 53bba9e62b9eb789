"""``castlereg experiment``: the paper's tables and figures, run again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from rich.table import Table

from castlereg.cli.console import Debug, Quiet, command, err, out, stop
from castlereg.experiments.description import Experiment, Scale
from castlereg.experiments.registry import EXPERIMENTS, experiment_named
from castlereg.experiments.results import page, write_results
from castlereg.experiments.runner import Outcome, run, waiting_units, with_sources
from castlereg.options import check_choice


@command
def experiment(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments to run; --list shows them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Run all of them.")] = False,
    scale: Annotated[str, typer.Option(help="quick, standard (each within about an hour) or paper.")] = "quick",
    output: Annotated[Path, typer.Option(help="Folder of results; a rerun goes on with what is there.")] = Path(
        "castlereg-experiments"
    ),
    jobs: Annotated[int, typer.Option(min=1, help="Processes on this machine, one core each.")] = 1,
    cluster: Annotated[str | None, typer.Option(help="Run on the Dask scheduler at this address.")] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the experiments and stop.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would run, and how long, and stop.")] = False,
    page_path: Annotated[Path | None, typer.Option("--page", help="Also write all results as one page.")] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run the paper's tables and figures again."""
    if show:
        _list()
        return
    try:
        check_choice("--scale", scale, get_args(Scale))
        chosen_scale = cast(Scale, scale)
        chosen = list(EXPERIMENTS.values()) if every else [experiment_named(name) for name in names or []]
    except ValueError as error:
        stop(str(error))
    if not chosen:
        stop("say which experiment, or --all; `castlereg experiment --list` shows them")
    if dry_run:
        _dry_run(chosen, chosen_scale, output, jobs)
        return
    try:
        outcomes = run(chosen, chosen_scale, output, jobs=jobs, cluster=cluster, progress=not quiet)
    except (ConnectionError, ModuleNotFoundError) as error:
        stop(str(error))
    except KeyboardInterrupt:
        stop("stopped; what is done is kept, and the same command goes on", code=130)
    complete = True
    for one in chosen:
        outcome = outcomes[one.name]
        complete &= outcome.complete
        out.print(f"[bold]{one.name}[/bold]: {outcome.n_units - len(outcome.failed)} of {outcome.n_units} units done")
        for message in outcome.messages:
            err.print(f"  {message}", markup=False)
        if len(outcome.results):
            for path in _written(one, outcome, output):
                out.print(f"  {path}", markup=False)
    if page_path is not None:
        _write_page(
            page_path, [one for one in chosen if len(outcomes[one.name].results)], outcomes, chosen_scale, output
        )
    if not complete:
        raise typer.Exit(1)


def _written(one: Experiment, outcome: Outcome, output: Path) -> list[Path]:
    try:
        return write_results(one, outcome, output)
    except OSError as error:
        stop(f"{error.filename}: cannot be written ({error.strerror}); the results are kept, run again to write them")


def _write_page(path: Path, chosen: list[Experiment], outcomes: dict[str, Outcome], scale: Scale, output: Path) -> None:
    figures = path.parent / "images" / "results"
    figures.mkdir(parents=True, exist_ok=True)
    copied = {}
    for one in chosen:
        figure = output / one.name / "figure.png"
        if figure.exists():
            (figures / f"{one.name}.png").write_bytes(figure.read_bytes())
            copied[one.name] = f"images/results/{one.name}.png"
    text = page(chosen, outcomes, scale, copied, when=datetime.now(UTC).date())
    path.write_text(text, encoding="utf-8")
    out.print(str(path), markup=False)


def _list() -> None:
    table = Table(box=None, header_style="bold")
    for heading in ("name", "in the paper", "what"):
        table.add_column(heading)
    for one in EXPERIMENTS.values():
        table.add_row(one.name, one.shown_in, one.title)
    out.print(table)


def _dry_run(chosen: list[Experiment], scale: Scale, output: Path, jobs: int) -> None:
    total = 0.0
    for one in with_sources(chosen):
        waiting = waiting_units(one, scale, output)
        seconds = sum(map(one.cost, waiting))
        total += seconds
        out.print(f"{one.name}: {len(waiting)} of {len(one.units(scale))} units to run, about {_duration(seconds)}")
    out.print(f"all: about {_duration(total / jobs)} with --jobs {jobs}")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
