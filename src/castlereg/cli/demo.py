"""``castlereg demo``: a model of scikit-learn's diabetes table, its graph and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from castlereg.cli.arguments import Debug, Epochs, Json, Quiet
from castlereg.cli.console import command, print_facts, write_output
from castlereg.cli.fit import held_out_facts, held_out_labels, used_columns
from castlereg.notices import shows_progress

_BETAS = (0.001, 0.01, 0.1, 1.0)


@command
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("castlereg-demo"),
    epochs: Epochs = 200,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Fit scikit-learn's diabetes table; write the model, its graph and an HTML report."""
    from sklearn.datasets import load_diabetes

    from castlereg import CastleRegressorCV, save
    from castlereg.report import write_report

    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    y = y.rename("progression")
    output.mkdir(parents=True, exist_ok=True)
    verbose = shows_progress(False if quiet or as_json else None)
    model = CastleRegressorCV(_BETAS, max_epochs=epochs, random_state=0, verbose=verbose).fit(X, y)
    paths = {"report": output / "report.html", "graph": output / "graph.svg", "model": output / "diabetes.castle"}
    save(model, paths["model"])
    write_output(model.graph_.to_svg(), paths["graph"])
    write_report(model, X, y, paths["report"], title="Progression of diabetes", verbose=verbose)
    facts = {
        "rows": len(X),
        "columns": X.shape[1],
        "reg_beta": model.reg_beta_,
        "held_out_loss": model.validation_loss_,
        "held_out": held_out_facts(model),
        "uses": used_columns(model.graph_, "progression"),
        **paths,
    }
    labels = {
        "table": f"scikit-learn's diabetes, {len(X)} rows x {X.shape[1]} columns",
        "beta": f"{model.reg_beta_:g}, chosen from {', '.join(f'{b:g}' for b in _BETAS)} by 10-fold cross-validation",
        "held-out loss": f"{model.validation_loss_:.3f} (about 1 if the mean is predicted)",
        **held_out_labels(facts["held_out"]),
        "uses": ", ".join(facts["uses"]),
        "report": str(paths["report"]),
        "graph": str(paths["graph"]),
        "model": f"{paths['model']} (castlereg predict {paths['model']} TABLE)",
    }
    print_facts(facts, labels, as_json)
