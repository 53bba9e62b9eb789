"""The diabetes table of scikit-learn: predictions with many useless columns, a graph, a what-if answer, a report.

Run it with ``make demo``. Pictures and the report are written to the folder ``demo``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import ShuffleSplit
from tqdm import tqdm

from castlereg import CastleRegressor, CastleRegressorCV, EdgeConstraints, NetworkRegressor, write_report

BLOOD = ["cholesterol", "ldl", "hdl", "log triglycerides", "glucose"]
# What is known before any rows are read: nothing here causes age or sex, the blood does not change the weight, and the
# disease a year later causes nothing that was measured before.
KNOWN = EdgeConstraints(sources=["age", "sex"], tiers=[["age", "sex"], ["bmi"], ["bp", *BLOOD], ["progression"]])


def main(folder: Path, n_splits: int = 4, max_epochs: int = 200, report_folds: int = 5) -> pd.DataFrame:
    """Predict, learn the graph, ask, report; return the errors."""
    X, y = table()
    wide = with_useless_columns(X)
    print(
        f"1. Prediction: {X.shape[1]} columns, a noisy copy of each and 30 columns of random numbers, {len(X)} rows\n"
    )
    errors = held_out_errors(wide, y, n_splits)
    print(errors.round(3).to_string())
    print("Error: MSE on held-out rows in units of the target's variance; predicting the mean has 1.\n")

    print("2. The graph of the original columns, with what is known about them\n")
    model = CastleRegressor(constraints=KNOWN, max_epochs=max_epochs, random_state=0).fit(X, y)
    print(model.graph_.edges().head(8).round(2).to_string(index=False))
    print(f"\nParents of ldl: {', '.join(model.graph_.parents('ldl'))}.")
    print("Laboratories usually calculate it from cholesterol, HDL and triglycerides (Friedewald's formula).\n")

    print("3. What if the body-mass index of everybody were lower by 2?\n")
    world = model.structural_model()
    print(world.effect("bmi", "progression", by=-2.0).summary(), "\n")

    pictures = [
        save(model.graph_.plot(max_edges=14), folder / "graph.png"),
        save(world.effect("bmi", "progression").plot(), folder / "effect.png"),
    ]
    print("4. Pictures:", ", ".join(str(picture) for picture in pictures))
    print("   Report:", write_report(model, X, y, folder / "report.html", cv=report_folds))
    return errors


def table() -> tuple[pd.DataFrame, pd.Series]:
    """Return the table with readable names, without the ratio of two of its columns."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X = X.rename(columns=dict(zip(["s1", "s2", "s3", "s5", "s6"], BLOOD, strict=True)))
    return X.drop(columns="s4"), y.rename("progression")


def with_useless_columns(X: pd.DataFrame) -> pd.DataFrame:
    """Add a noisy copy of every column and thirty columns of random numbers."""
    rng = np.random.default_rng(0)
    copies = X + 0.5 * X.std().to_numpy() * rng.standard_normal(X.shape)
    noise = pd.DataFrame(rng.standard_normal((len(X), 30)), columns=[f"noise {i}" for i in range(30)])
    return pd.concat([X, copies.add_suffix(" again"), noise], axis=1)


def held_out_errors(X: pd.DataFrame, y: pd.Series, n_splits: int) -> pd.DataFrame:
    """Return the errors of four models on random quarters of the rows."""
    models: dict[str, BaseEstimator] = {
        "castlereg, search": CastleRegressorCV(random_state=0),
        "random forest": RandomForestRegressor(300, random_state=0),
        "gradient boosting": HistGradientBoostingRegressor(random_state=0),
        "plain network, mean of 5": NetworkRegressor(n_members=5, random_state=0),
    }
    errors = pd.DataFrame(index=pd.Index(models, name="model"))
    splits = list(ShuffleSplit(n_splits, test_size=0.25, random_state=0).split(X))
    with tqdm(total=n_splits * len(models), desc="models", disable=None, leave=False) as bar:
        for i, (train, test) in enumerate(splits):
            for name, model in models.items():
                predicted = model.fit(X.iloc[train], y.iloc[train]).predict(X.iloc[test])
                errors.loc[name, f"split {i + 1}"] = np.mean(np.square(predicted - y.iloc[test])) / np.var(y)
                bar.update()
    errors.insert(0, "mean error", errors.mean(axis=1))
    return errors


def save(ax: mpl.axes.Axes, path: Path) -> Path:
    """Save a picture."""
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    ax.figure.figure.savefig(path, dpi=130, bbox_inches="tight", pad_inches=0.2)
    plt.close(ax.figure.figure)
    return path


if __name__ == "__main__":
    mpl.use("agg")
    main(Path("demo"))
