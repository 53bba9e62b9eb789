"""``castlereg predict``: predictions of a saved model for the rows of a table."""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from castlereg.cli.arguments import Debug, Decimal, Encoding, Model, Quiet, Separator, Table
from castlereg.cli.console import command, err, write_output
from castlereg.cli.paths import check_paths
from castlereg.cli.tables import feature_names, open_for, text_options
from castlereg.notices import shows_progress

if TYPE_CHECKING:
    import pandas as pd

_JSON_LINES = (".jsonl", ".ndjson")
_ROWS_AT_ONCE = 1000  # for intervals, which compare each row with all training rows


@command
def predict(
    model: Model,
    table: Table,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Output file: .csv, .tsv, .jsonl (also .gz), .parquet, .feather or .xlsx (default: CSV on stdout).",
        ),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each class.")] = False,
    interval: Annotated[
        float | None, typer.Option(help="Add a prediction interval with this coverage, such as 0.9.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the columns of the table next to the predictions.")
    ] = False,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per row instead of CSV.")] = False,
    debug: Debug = False,
) -> None:
    """Predict the target of every row of a table."""
    check_paths({"model": model, "table": table}, {"--output": output})
    is_file = output is not None and (output.is_file() or not output.exists())  # not a pipe or a device
    if as_json and is_file and output is not None and output.suffix.lower() not in _JSON_LINES:
        raise ValueError(
            f"--json contradicts --output {output}, whose suffix sets the format: use a name that ends in .jsonl"
        )
    if interval is not None and not 0 < interval < 1:
        raise ValueError(f"--interval {interval:g} must be between 0 and 1, such as 0.9")
    import pandas as pd

    from castlereg import load
    from castlereg.table.files import check_columns, check_table_suffix, write_table
    from castlereg.table.writing import write_json_lines

    if is_file and output is not None:
        check_table_suffix(output)
    fitted = load(model)
    _check_options(fitted, proba, interval)
    file = open_for(fitted, table, text_options(separator, decimal, encoding))
    rows = file.read()
    names = feature_names(fitted, list(rows.columns))
    check_columns(names, list(rows.columns), file)
    known = {*names, *(target.name for target in fitted.model_.targets)}
    extra = [str(column) for column in rows.columns if column not in known]
    if extra and not keep and not quiet:
        err.print(f"castlereg: note: ignoring columns that the model does not use: {', '.join(extra)}", markup=False)
    predicted = _predictions(fitted, rows[names], proba, interval, shows_progress(False if quiet else None))
    predicted.columns = distinct(predicted.columns, rows.columns if keep else ())
    predicted.index = rows.index
    frame = pd.concat([rows, predicted], axis=1) if keep else predicted
    if is_file and output is not None:
        write_table(frame, output)
    elif as_json:
        lines = io.BytesIO()
        write_json_lines(frame, lines)
        write_output(lines.getvalue(), output)
    else:
        write_output(frame.to_csv(index=False), output)


def _check_options(fitted: Any, proba: bool, interval: float | None) -> None:
    numeric = [target.is_numeric for target in fitted.model_.targets]
    if proba and (len(numeric) > 1 or numeric[0]):
        raise ValueError("--proba is for a classifier with one target, and this model is not one: drop --proba")
    if interval is not None and not all(numeric):
        raise ValueError("--interval is for numeric targets, and this model predicts classes: use --proba instead")
    if interval is not None and fitted.model_.folds is None:
        raise ValueError("--interval needs a model fitted by cross-validation: run `castlereg fit` without --beta")


def _predictions(fitted: Any, X: pd.DataFrame, proba: bool, interval: float | None, verbose: bool) -> pd.DataFrame:
    """Predict the targets and their quantiles, then probabilities and intervals on request; names may repeat."""
    import numpy as np
    import pandas as pd

    from castlereg.losses import Quantiles

    targets = [target.name for target in fitted.model_.targets]
    values = fitted.predict(X)
    columns = [
        values.iloc[:, k] if isinstance(values, pd.DataFrame) else np.reshape(values, (len(X), -1))[:, k]
        for k in range(len(targets))
    ]
    names = list(targets)
    loss = fitted.model_.targets[0].node.loss
    if isinstance(loss, Quantiles):
        names += [f"{t}_{level:g}" for t in targets for level in loss.levels]
        columns += list(fitted.predict_quantiles(X).reshape(len(X), -1).T)
    if proba:
        names += [f"P({label})" for label in fitted.classes_]
        columns += list(fitted.predict_proba(X).T)
    if interval is not None:
        names += (
            ["lower", "upper"] if len(targets) == 1 else [f"{t}_{end}" for t in targets for end in ("lower", "upper")]
        )
        columns += list(_intervals(fitted, X, interval, verbose).reshape(len(X), -1).T)
    predicted = pd.DataFrame({k: np.asarray(column) for k, column in enumerate(columns)})
    predicted.columns = names
    return predicted


def _intervals(fitted: Any, X: pd.DataFrame, coverage: float, verbose: bool) -> Any:
    """Predict intervals in blocks of rows, because each row is compared with all training rows."""
    import numpy as np
    from tqdm.auto import tqdm

    starts = range(0, len(X), _ROWS_AT_ONCE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the predictions have warned already
        bar = tqdm(starts, desc="intervals", unit_scale=_ROWS_AT_ONCE, unit="row", disable=not verbose, delay=2)
        blocks = [fitted.predict_interval(X[start : start + _ROWS_AT_ONCE], coverage=coverage) for start in bar]
    return np.concatenate(blocks)


def distinct(names: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Rename columns whose names are taken or duplicated.

    >>> distinct(["price", "lower", "upper"], ["area", "price"])
    ['price_predicted', 'lower', 'upper']
    >>> distinct(["lower", "lower"], ["lower_predicted"])
    ['lower', 'lower_predicted_2']
    """
    known, renamed = set(map(str, taken)), []
    for name in names:
        tries = itertools.chain([name, f"{name}_predicted"], (f"{name}_predicted_{n}" for n in itertools.count(2)))
        renamed.append(next(tried for tried in tries if tried not in known))
        known.add(renamed[-1])
    return renamed
