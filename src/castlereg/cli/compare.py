"""``castlereg compare``: CASTLE and the paper's other methods on one table."""

from __future__ import annotations

from typing import Annotated

import typer

from castlereg.cli.arguments import (
    Categorical,
    Debug,
    Decimal,
    Dropped,
    DropUnusable,
    Encoding,
    Epochs,
    Json,
    Quiet,
    Seed,
    Separator,
    Table,
    Targets,
    TaskName,
)
from castlereg.cli.console import command, out, print_json, stop
from castlereg.cli.paths import check_paths
from castlereg.cli.tables import check_problem, chosen_task, column_options, read_problem, text_options


@command
def compare(
    table: Table,
    target: Targets,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            help="Method to compare: one of the paper's ten, TANGOS or 'Deep Lasso'; repeat for several (default: the "
            "paper's ten).",
        ),
    ] = None,
    task: TaskName = "auto",
    drop: Dropped = None,
    categorical: Categorical = None,
    drop_unusable: DropUnusable = False,
    folds: Annotated[int, typer.Option(min=2, help="Number of cross-validation folds for each method.")] = 10,
    splits: Annotated[int, typer.Option(min=1, help="Number of random splits into training and held-out rows.")] = 1,
    epochs: Epochs = 200,
    seed: Seed = 0,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train each method on the same folds, from the same initial weights, and score it on held-out rows."""
    if len(target) > 1:
        stop("compare takes one --target: pass it once")
    check_problem(target, drop, task)
    check_paths({"table": table}, {})
    from castlereg import compare as compare_methods
    from castlereg.table.files import TableFile, check_columns

    file = TableFile.open(table, **text_options(separator, decimal, encoding))
    X, y, without_target = read_problem(file, target, drop)
    check_columns(categorical or [], list(X.columns), file)
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
        **column_options(categorical, drop_unusable),
    )
    if not as_json:
        out.print(str(result), markup=False)
        return
    scores = result.to_frame().reset_index().to_dict(orient="records")
    facts = {"table": table, "rows": len(X), "rows_without_target": without_target, "target": target[0]}
    print_json(facts | {"task": chosen, "methods": scores})
