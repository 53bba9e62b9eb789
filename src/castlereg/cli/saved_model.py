"""``castlereg predict`` and ``castlereg graph``: the predictions and the graph of a saved model."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from castlereg.atomic_write import check_writable
from castlereg.cli.console import Debug, Quiet, command, err, stop, write_output
from castlereg.cli.fit import Model, Table
from castlereg.options import check_choice

if TYPE_CHECKING:
    import pandas as pd

    from castlereg.graph import CausalGraph

_FORMATS = ("svg", "dot", "json", "gml", "csv", "png", "text")


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


@command
def graph(
    model: Model,
    form: Annotated[
        str | None, typer.Option("--format", "-f", help="svg, dot, json, gml, csv (edges), png or text.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file (default: standard output).")
    ] = None,
    threshold: Annotated[float | None, typer.Option(min=0, help="Leave weaker edges out; 0 keeps all.")] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write the graph that a model learned."""
    from castlereg import load

    form = form or (output.suffix.lower().lstrip(".") if output is not None else "text")
    check_choice("--format", form, _FORMATS)
    check_writable(output)
    if form == "png" and output is None and sys.stdout.isatty():
        stop("a PNG is not text: give --output, or send it into a file or a pipe")
    fitted = load(model)
    if not hasattr(fitted, "graph_"):
        stop(f"{model} has no graph: it is a network without CASTLE")
    write_output(_written(fitted.graph_ if threshold is None else fitted.graph_.above(threshold), form), output)


def _written(learned: CausalGraph, form: str) -> str | bytes:
    if form == "png":
        drawn = io.BytesIO()
        learned.plot().figure.figure.savefig(drawn, format="png", dpi=130)
        return drawn.getvalue()
    if form == "csv":
        return learned.edges().to_csv(index=False)
    if form == "text":
        return f"{learned.summary()}\n\n{learned.edges().round(3).to_string(index=False)}\n"
    writers = {"svg": learned.to_svg, "dot": learned.to_dot, "json": learned.to_json, "gml": learned.to_gml}
    text: str = writers[form]()
    return text if text.endswith("\n") else text + "\n"
