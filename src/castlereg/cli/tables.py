"""Tables and targets that commands read, and the options that say which."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castlereg.cli.console import stop
from castlereg.options import check_choice

if TYPE_CHECKING:
    import pandas as pd

Table = Annotated[Path, typer.Argument(help="CSV, TSV or Parquet file, or folder of Parquet; - is standard input.")]
Targets = Annotated[list[str], typer.Option("--target", "-t", help="Column to predict; repeat it for several.")]
TaskName = Annotated[str, typer.Option("--task", help="auto (by the target's values), regression or classification.")]
Dropped = Annotated[list[str] | None, typer.Option("--drop", help="Column to leave out; repeat it for several.")]


def read_problem(
    path: Path, targets: Sequence[str], drop: Sequence[str] | None
) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """Read a table; return features, targets, and how many rows were dropped for want of a target."""
    from castlereg.data.files import TableFile, check_columns

    file = TableFile.open(path)
    frame = file.read()
    check_columns([*targets, *(drop or [])], list(frame.columns), file)
    has_target = frame[list(targets)].notna().all(axis=1)
    rows = frame[has_target]
    if rows.empty:
        raise ValueError(f"every row of {file} lacks a value of {', '.join(map(repr, targets))}: fill some of them")
    features = rows.drop(columns=[*targets, *(drop or [])])
    if features.shape[1] == 0:
        raise ValueError(f"{file} has no column besides the target: there is nothing to predict from")
    return features, rows[list(targets)], int((~has_target).sum())


def chosen_task(y: pd.DataFrame, task: str) -> tuple[str, str]:
    """Return the task of the targets and the reason; each of several targets is what its values suggest."""
    from castlereg.data.targets import inferred_task

    check_choice("--task", task, ["auto", "regression", "classification"])
    if y.shape[1] > 1:
        if task != "auto":
            stop(f"--task {task} is for one target; the task of each of several follows from its values")
        return "several targets", "numbers and classes side by side"
    if task == "auto":
        return inferred_task(y.iloc[:, 0])
    if task == "regression" and y.iloc[:, 0].dtype.kind not in "biuf":
        stop(f"--task regression, but {y.columns[0]!r} is not a column of numbers")
    return task, "as --task says"
