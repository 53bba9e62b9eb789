"""``castlereg compare``: CASTLE against the paper's other methods on a table."""

from __future__ import annotations

from typing import Annotated

import typer

from castlereg.cli.console import Debug, Epochs, Json, Quiet, Seed, command, out, print_facts, stop
from castlereg.cli.fit import Dropped, Table, Targets, TaskName, chosen_task, read_problem


@command
def compare(
    table: Table,
    target: Targets,
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Method to compare; repeat it for several (default: all ten).")
    ] = None,
    task: TaskName = "auto",
    drop: Dropped = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of each method.")] = 10,
    splits: Annotated[int, typer.Option(min=1, help="Random choices of the held-out rows.")] = 1,
    epochs: Epochs = 200,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train every method on the same folds, from the same weights, and score it on held-out rows."""
    from castlereg import compare as compare_methods

    if len(target) > 1:
        stop("compare takes one --target")
    X, y, _ = read_problem(table, target, drop)
    chosen, _ = chosen_task(y, task)
    result = compare_methods(
        X,
        y.iloc[:, 0],
        methods=method or "paper",
        cv=folds,
        n_splits=splits,
        task="regression" if chosen == "regression" else "classification",
        max_epochs=epochs,
        random_state=seed,
        verbose=False if quiet or as_json else None,
    )
    if as_json:
        scores = result.to_frame().reset_index().to_dict(orient="records")
        print_facts({"table": str(table), "target": target[0], "task": chosen, "methods": scores}, {}, True)
    else:
        out.print(str(result), markup=False)
