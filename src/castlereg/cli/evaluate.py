"""``castlereg evaluate``: scores of a saved model on a table that has the target."""

from __future__ import annotations

from dataclasses import replace

from castlereg.cli.arguments import Debug, Decimal, Encoding, Json, Model, Quiet, Seed, Separator, Table
from castlereg.cli.console import command, out, print_json
from castlereg.cli.paths import check_paths
from castlereg.cli.tables import columns_for, one_or_all, open_for, text_options, with_targets


@command
def evaluate(
    model: Model,
    table: Table,
    seed: Seed = 0,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Score a model on a table that has the target, with 95 % confidence intervals."""
    check_paths({"model": model, "table": table}, {})
    from castlereg import evaluate as evaluate_model
    from castlereg import load

    fitted = load(model)
    file = open_for(fitted, table, text_options(separator, decimal, encoding))
    frame = file.read()
    X, y, without_target = with_targets(frame, *columns_for(fitted, frame, file), file)
    verbose = False if quiet or as_json else None
    evaluation = evaluate_model(fitted, X, one_or_all(y), random_state=seed, verbose=verbose)
    evaluation = replace(evaluation, n_without_target=without_target)
    if as_json:
        rows = {"rows": evaluation.n_rows, "rows_without_target": evaluation.n_without_target}
        scores = evaluation.to_frame().to_dict(orient="records")
        print_json({"model": model, "table": table, **rows, "scores": scores})
    else:
        out.print(str(evaluation), markup=False)
