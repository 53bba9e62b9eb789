"""``castlereg evaluate``: scores of a saved model on a table that has the target."""

from __future__ import annotations

from castlereg.cli.arguments import Debug, Decimal, Encoding, Json, Model, Quiet, Seed, Separator, Table
from castlereg.cli.console import command, out, print_json
from castlereg.cli.paths import check_paths
from castlereg.cli.tables import columns_for, one_or_all, text_options


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
    """Score a model on rows whose targets are known, with 95 % intervals."""
    check_paths({"model": model, "table": table}, {})
    from castlereg import evaluate as evaluate_model
    from castlereg import load
    from castlereg.data.files import TableFile

    fitted = load(model)
    file = TableFile.open(table, **text_options(separator, decimal, encoding))
    frame = file.read()
    features, targets = columns_for(fitted, frame, file)
    verbose = False if quiet or as_json else None
    evaluation = evaluate_model(fitted, frame[features], one_or_all(frame[targets]), random_state=seed, verbose=verbose)
    if as_json:
        rows = {"rows": evaluation.n_rows, "rows_without_target": evaluation.n_without_target}
        scores = evaluation.to_frame().to_dict(orient="records")
        print_json({"model": model, "table": table, **rows, "scores": scores})
    else:
        out.print(str(evaluation), markup=False)
