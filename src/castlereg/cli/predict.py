"""``castlereg predict``: predictions of a saved model as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from castlereg.atomic_write import check_writable
from castlereg.cli.console import Debug, Quiet, command, err, stop, write_output
from castlereg.cli.tables import Model, Table

if TYPE_CHECKING:
    import pandas as pd


@command
def predict(
    model: Model,
    table: Table,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV or TSV file (default: standard output).")
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Also the probability of every class.")] = False,
    interval: Annotated[
        float | None, typer.Option(min=0, max=1, help="Also an interval of this coverage, such as 0.9.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the columns of the table beside the predictions.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per row instead of CSV.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Predict the target of every row of a table."""
    import pandas as pd

    from castlereg import load
    from castlereg.data.files import TableFile, check_columns

    check_writable(output)
    fitted = load(model)
    file = TableFile.open(table)
    rows = file.read()
    names = list(getattr(fitted, "feature_names_in_", rows.columns[: fitted.n_features_in_]))
    check_columns(names, list(rows.columns), file)
    extra = [str(column) for column in rows.columns if column not in names]
    if extra and not keep and not quiet:
        err.print(f"castlereg: note: columns unknown to the model are ignored: {', '.join(extra)}", markup=False)
    predicted = _predictions(fitted, rows[names], proba, interval)
    predicted.index = rows.index
    write_output(_text(pd.concat([rows, predicted], axis=1) if keep else predicted, output, as_json), output)


def _predictions(fitted: Any, X: pd.DataFrame, proba: bool, interval: float | None) -> pd.DataFrame:
    import pandas as pd

    values = fitted.predict(X)
    graph = getattr(fitted, "graph_", None)
    name = "prediction" if graph is None else str(graph.target)
    predicted = values if isinstance(values, pd.DataFrame) else pd.DataFrame({name: values})
    if proba:
        if not hasattr(fitted, "predict_proba") or not hasattr(fitted, "classes_"):
            stop("--proba is for a classifier of one target, which this model is not")
        shares = fitted.predict_proba(X)
        for k, label in enumerate(fitted.classes_):
            predicted[f"P({label})"] = shares[:, k]
    if interval is not None:
        if not hasattr(fitted, "predict_interval"):
            stop("--interval needs a regressor that was fitted by folds: leave --beta out of `castlereg fit`")
        bounds = fitted.predict_interval(X, coverage=interval)
        predicted["lower"], predicted["upper"] = bounds[:, 0], bounds[:, 1]
    return predicted


def _text(frame: pd.DataFrame, output: Path | None, as_json: bool) -> str:
    if as_json:
        return frame.to_json(orient="records", lines=True, double_precision=15)
    separator = "\t" if output is not None and output.suffix.lower() in (".tsv", ".tab") else ","
    return frame.to_csv(index=False, sep=separator)
