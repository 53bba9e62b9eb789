"""``castlereg predict``: predictions of a saved model as a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from castlereg.cli.console import Debug, Quiet, command, err, stop
from castlereg.cli.fit import check_writable
from castlereg.cli.tables import check_columns, read_table


@command
def predict(
    model: Annotated[Path, typer.Argument(help="File that `castlereg fit --output` wrote.")],
    table: Annotated[Path, typer.Argument(help="CSV, TSV or Parquet file; - is CSV from standard input.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV or TSV file; standard output else.")
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Also the probability of every class.")] = False,
    interval: Annotated[
        float | None, typer.Option(min=0, max=1, help="Also an interval of this coverage, such as 0.9.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the columns of the table beside the predictions.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a row instead of CSV.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Predict the target of every row of a table."""
    from castlereg import load

    check_writable(output)
    fitted = load(model)
    rows = read_table(table)
    names = list(getattr(fitted, "feature_names_in_", rows.columns[: fitted.n_features_in_]))
    check_columns(rows, names, table)
    extra = [str(column) for column in rows.columns if column not in names]
    if extra and not keep and not quiet:
        err.print(f"castlereg: note: columns the model does not know are left aside: {', '.join(extra)}", markup=False)
    predicted = _predictions(fitted, rows[names], proba, interval)
    predicted.index = rows.index
    _write(pd.concat([rows, predicted], axis=1) if keep else predicted, output, as_json)


def _predictions(fitted: Any, X: pd.DataFrame, proba: bool, interval: float | None) -> pd.DataFrame:
    values = fitted.predict(X)
    predicted = values if isinstance(values, pd.DataFrame) else _named(fitted, values)
    if proba:
        if not hasattr(fitted, "predict_proba") or not hasattr(fitted, "classes_"):
            stop("--proba is for a classifier of one target, and this model is none")
        shares = fitted.predict_proba(X)
        for place, label in enumerate(fitted.classes_):
            predicted[f"P({label})"] = shares[:, place]
    if interval is not None:
        if not hasattr(fitted, "predict_interval"):
            stop("--interval needs a regressor that was fitted by folds: leave --beta out of `castlereg fit`")
        bounds = fitted.predict_interval(X, coverage=interval)
        predicted["lower"], predicted["upper"] = bounds[:, 0], bounds[:, 1]
    return predicted


def _named(fitted: Any, values: Any) -> pd.DataFrame:
    graph = getattr(fitted, "graph_", None)
    name = "prediction" if graph is None else str(graph.target)
    return pd.DataFrame({name: values})


def _write(frame: pd.DataFrame, output: Path | None, as_json: bool) -> None:
    if as_json:
        text = frame.to_json(orient="records", lines=True, double_precision=15)
    else:
        separator = "\t" if output is not None and output.suffix.lower() in (".tsv", ".tab") else ","
        text = frame.to_csv(index=False, sep=separator)
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        output.write_text(text, encoding="utf-8")
