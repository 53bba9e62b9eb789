"""``castlereg experiment``: the paper's tables and figures, run again."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table

from castlereg.cli.console import Debug, Quiet, check_writable, command, err, out, reason, stop
from castlereg.options import check_choice

if TYPE_CHECKING:
    from castlereg.paper.experiments.description import Experiment, Scale
    from castlereg.paper.experiments.runner import Outcome


@command
def experiment(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments to run; --list shows them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Run all of them.")] = False,
    scale: Annotated[str, typer.Option(help="quick, standard (each within about an hour) or paper.")] = "quick",
    output: Annotated[Path, typer.Option(help="Folder of results; a rerun goes on with what is there.")] = Path(
        "castlereg-experiments"
    ),
    jobs: Annotated[int, typer.Option(min=1, help="Units side by side, in processes of one core each.")] = 1,
    cluster: Annotated[str | None, typer.Option(help="Run on the Dask cluster at this address.")] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the experiments and stop.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would run, and how long, and stop.")] = False,
    page_path: Annotated[Path | None, typer.Option("--page", help="Also write all results as one page.")] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run the paper's tables and figures again."""
    from castlereg.paper.experiments.description import SCALES
    from castlereg.paper.experiments.registry import EXPERIMENTS, experiment_named
    from castlereg.paper.experiments.results import write_page
    from castlereg.paper.experiments.runner import run
    from castlereg.paper.experiments.workers import on_cluster

    if show:
        _list(list(EXPERIMENTS.values()))
        return
    try:
        check_choice("--scale", scale, SCALES)
        chosen_scale = cast("Scale", scale)
        chosen = list(EXPERIMENTS.values()) if every else [experiment_named(name) for name in names or []]
    except ValueError as error:
        stop(str(error))
    if not chosen:
        stop("say which experiment, or --all; `castlereg experiment --list` shows them")
    if dry_run:
        _dry_run(chosen, chosen_scale, output, jobs)
        return
    if page_path is not None:
        page_path.parent.mkdir(parents=True, exist_ok=True)
        check_writable(page_path)
    try:
        with nullcontext() if cluster is None else on_cluster(cluster):
            outcomes = run(chosen, chosen_scale, output, jobs=jobs, verbose=not quiet)
    except (ConnectionError, ModuleNotFoundError) as error:
        stop(str(error))
    except KeyboardInterrupt:
        stop("stopped; what is done is kept, and the same command goes on", code=130)
    try:
        complete = _written(chosen, outcomes, output)
        if page_path is not None:
            shown = [one for one in chosen if len(outcomes[one.name].results)]
            write_page(page_path, shown, outcomes, chosen_scale, output)
            out.print(str(page_path), markup=False)
    except OSError as error:
        stop(f"{reason(error)}; the results are kept, run again to write them")
    if not complete:
        raise typer.Exit(1)


def _written(chosen: list[Experiment], outcomes: dict[str, Outcome], output: Path) -> bool:
    """Write the results of experiments, and say so; return whether all of their units are done."""
    from castlereg.paper.experiments.results import write_results

    complete = True
    for one in chosen:
        outcome = outcomes[one.name]
        complete &= outcome.complete
        out.print(f"[bold]{one.name}[/bold]: {outcome.n_units - len(outcome.failed)} of {outcome.n_units} units done")
        for message in outcome.messages:
            err.print(f"  {message}", markup=False)
        if len(outcome.results):
            for path in write_results(one, outcome, output):
                out.print(f"  {path}", markup=False)
    return complete


def _list(experiments: list[Experiment]) -> None:
    table = Table(box=None, header_style="bold")
    for heading in ("name", "in the paper", "what"):
        table.add_column(heading)
    for one in experiments:
        table.add_row(one.name, one.shown_in, one.title)
    out.print(table)


def _dry_run(chosen: list[Experiment], scale: Scale, output: Path, jobs: int) -> None:
    from castlereg.paper.experiments.runner import waiting_units, with_sources

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
