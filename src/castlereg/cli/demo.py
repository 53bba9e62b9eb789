"""``castlereg demo``: the whole journey on a table that comes with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from castlereg.cli.console import Debug, Quiet, command, print_facts, shows_progress, write_output
from castlereg.cli.fit import used_columns


@command
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("castlereg-demo"),
    epochs: Annotated[int, typer.Option(min=1, help="Most passes over the rows.")] = 200,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit the diabetes table; write its model, its graph and a report."""
    from sklearn.datasets import load_diabetes

    from castlereg import CastleRegressorCV, save
    from castlereg.report import write_report

    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    y = y.rename("progression")
    output.mkdir(parents=True, exist_ok=True)
    model = CastleRegressorCV(max_epochs=epochs, random_state=0, verbose=shows_progress(quiet)).fit(X, y)
    save(model, output / "diabetes.castle")
    write_output(model.graph_.to_svg(), output / "graph.svg")
    write_report(model, X, y, output / "report.html", title="Progression of diabetes", verbose=shows_progress(quiet))
    labels = {
        "table": f"scikit-learn's diabetes, {len(X)} rows x {X.shape[1]} columns",
        "beta": f"{model.reg_beta_:g}, chosen among {', '.join(f'{b:g}' for b in model.reg_betas)} by ten folds",
        "held-out loss": f"{model.validation_loss_:.3f} (predicting the mean has 1)",
        "uses": ", ".join(used_columns(model.graph_, "progression")),
        "report": str(output / "report.html"),
        "graph": str(output / "graph.svg"),
        "model": f"{output / 'diabetes.castle'} (castlereg predict {output / 'diabetes.castle'} TABLE)",
    }
    print_facts({}, labels, as_json=False)
