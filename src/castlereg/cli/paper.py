"""``castlereg experiment`` and ``castlereg datasets``: reproduce the paper's tables and figures, and load its data."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from castlereg.atomic_write import check_writable
from castlereg.cli.arguments import Debug, Json, Quiet
from castlereg.cli.console import command, err, out, print_facts, print_json, print_table, reason, stop
from castlereg.cli.paths import check_paths
from castlereg.options import check_choice
from castlereg.signals import INTERRUPTED

if TYPE_CHECKING:
    from castlereg.paper.experiments.description import Experiment, Scale
    from castlereg.paper.experiments.runner import Outcome


@command
def experiment(
    names: Annotated[list[str] | None, typer.Argument(help="Names of experiments; --list shows them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Run all experiments.")] = False,
    scale: Annotated[
        str,
        typer.Option(help="quick, standard (about an hour per experiment at most) or paper (the size of the paper)."),
    ] = "quick",
    output: Annotated[
        Path, typer.Option(help="Folder for the results; a rerun continues from the results in it.")
    ] = Path("castlereg-experiments"),
    jobs: Annotated[
        int, typer.Option(min=1, help="Number of units to run in parallel, each in a process with one core.")
    ] = 1,
    cluster: Annotated[str | None, typer.Option(help="Run on the Dask cluster at this address.")] = None,
    show: Annotated[bool, typer.Option("--list", help="List the experiments and exit.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run and the expected time, and exit.")
    ] = False,
    page_path: Annotated[Path | None, typer.Option("--page", help="Also write all results to one page.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Reproduce the paper's tables and figures."""
    if names and (every or show):
        stop(f"{'--all' if every else '--list'} cannot be combined with names of experiments: drop one of them")
    from castlereg.paper.experiments.cluster import on_cluster
    from castlereg.paper.experiments.description import SCALES
    from castlereg.paper.experiments.registry import EXPERIMENTS, experiment_named
    from castlereg.paper.experiments.results import write_page
    from castlereg.paper.experiments.runner import run

    if show:
        rows = [(each.name, each.shown_in, each.title) for each in EXPERIMENTS.values()]
        if as_json:
            print_json({"experiments": [dict(zip(("name", "shown_in", "title"), row, strict=True)) for row in rows]})
        else:
            print_table(["name", "in the paper", "title"], rows)
        return
    check_choice("--scale", scale, SCALES)
    chosen_scale = cast("Scale", scale)
    chosen = list(EXPERIMENTS.values()) if every else [experiment_named(name) for name in names or []]
    if not chosen:
        stop("no experiment is named: pass names or --all; `castlereg experiment --list` shows the names")
    if dry_run:
        _dry_run(chosen, chosen_scale, output, jobs, as_json)
        return
    if page_path is not None:
        page_path.parent.mkdir(parents=True, exist_ok=True)
        check_writable(page_path)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        stop(f"the folder for the results cannot be created ({reason(error)}): choose another --output")
    try:
        with nullcontext() if cluster is None else on_cluster(cluster):
            outcomes = run(chosen, chosen_scale, output, jobs=jobs, verbose=not (quiet or as_json))
    except KeyboardInterrupt:
        stop("stopped; finished units are saved, and the same command continues from them", code=INTERRUPTED)
    try:
        facts = [_written(each, outcomes[each.name], output) for each in chosen]
        if page_path is not None:
            shown = [each for each in chosen if len(outcomes[each.name].results)]
            write_page(page_path, shown, outcomes, chosen_scale, output)
    except OSError as error:
        stop(f"{reason(error)}; the results are saved: run the command again to write them")
    if as_json:
        print_json({"scale": scale, "experiments": facts, "page": page_path})
    else:
        _print_outcomes(facts, page_path)
    if not all(outcomes[each.name].complete for each in chosen):
        raise typer.Exit(1)


def _written(experiment: Experiment, outcome: Outcome, output: Path) -> dict[str, Any]:
    """Write the results of an experiment; return the facts to print."""
    from castlereg.paper.experiments.results import write_results

    return {
        "name": experiment.name,
        "units": outcome.n_units,
        "done": outcome.n_units - len(outcome.failed),
        "messages": outcome.messages,
        "files": list(write_results(experiment, outcome, output)) if len(outcome.results) else [],
    }


def _print_outcomes(facts: list[dict[str, Any]], page: Path | None) -> None:
    for of in facts:
        out.print(f"[bold]{of['name']}[/bold]: {of['done']} of {of['units']} units done")
        for message in of["messages"]:
            err.print(f"  {message}", markup=False)
        for path in of["files"]:
            out.print(f"  {path}", markup=False)
    if page is not None:
        out.print(str(page), markup=False)


def _dry_run(chosen: list[Experiment], scale: Scale, output: Path, jobs: int, as_json: bool) -> None:
    from castlereg.paper.experiments.runner import waiting_units, with_sources

    facts: list[dict[str, Any]] = []
    for each in with_sources(chosen):
        waiting = waiting_units(each, scale, output)
        seconds = sum(map(each.cost, waiting))
        facts.append({"name": each.name, "units": len(each.units(scale)), "to_run": len(waiting), "seconds": seconds})
    total = sum(of["seconds"] for of in facts) / jobs
    if as_json:
        print_json({"scale": scale, "jobs": jobs, "experiments": facts, "seconds": total})
        return
    for of in facts:
        out.print(f"{of['name']}: {of['to_run']} of {of['units']} units to run, about {_duration(of['seconds'])}")
    out.print(f"total: about {_duration(total)} with --jobs {jobs}")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@command
def datasets(
    name: Annotated[str | None, typer.Argument(help="Table to show or write (default: list all tables).")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the table to this file, such as x.csv or x.parquet.")
    ] = None,
    variant: Annotated[
        str | None, typer.Option(help="Variant of the table: which target and rows to use (default: default).")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the tables of the catalogue, or write one to a file."""
    if name is None and (output is not None or variant is not None):
        stop(f"{'--output' if output else '--variant'} needs the name of a table; `castlereg datasets` lists the names")
    from castlereg.paper.datasets import catalogue, load
    from castlereg.paper.datasets.folders import folders
    from castlereg.table.files import check_table_suffix, write_table

    if name is None:
        listed = catalogue().reset_index()[["name", "rows", "columns", "task", "target", "title"]]
        listed = listed.astype(object).where(listed.notna(), None)
        if as_json:
            print_json({"tables": listed.to_dict(orient="records")})
        else:
            print_table(list(listed.columns), listed.itertuples(index=False))
        return
    if output is not None:
        stored = {f"tables in {label}": folder for label, folder in folders().items() if output.exists()}
        check_paths({label: folder for label, folder in stored.items() if folder.exists()}, {"--output": output})
        check_table_suffix(output)
    loaded = load(name, variant=variant or "default")
    if output is not None:
        write_table(loaded.X.assign(**{str(loaded.y.name): loaded.y}), output)
    facts = {
        "name": loaded.name,
        "variant": loaded.variant,
        "task": loaded.task,
        "rows": len(loaded.X),
        "columns": loaded.X.shape[1],
        "target": str(loaded.y.name),
        "file": None if output is None else str(output),
    }
    labels = {
        "table": f"{loaded.name} ({loaded.variant}), {len(loaded.X)} rows x {loaded.X.shape[1]} columns",
        "target": f"{loaded.y.name}, {loaded.task}",
    }
    if output is not None:
        labels["file"] = str(output)
    print_facts(facts, labels, as_json)
