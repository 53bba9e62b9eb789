"""Real tables as they come from the file, against the same tables encoded by hand.

Reads the tables from the folder in ``CASTLEREG_DATA``. Four parts:

``by_hand``  CASTLE on frames as read against one-hot columns and means filled in, three splits
``missing``  Boston with 30 % of its cells removed: CASTLE against scikit-learn's MLP on filled-in means, five seeds
``robust``   robust against standard scaling, three splits
``speed``    one node per column against one node per dummy, Student table

``python -m benchmarks.real_tables [part ...]``
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from castlereg import CastleClassifier, CastleRegressor, Recipe

MEMBERS = 4  # networks that are averaged, so that the encoding is compared and not the luck of a seed
SPLITS = 3
RECIPES = {"standard": Recipe(), "robust": Recipe(scaling="robust")}


@dataclass(frozen=True)
class Problem:
    """A file, its target, and columns that are not features."""

    title: str
    file: str
    target: str
    drop: tuple[str, ...] = ()
    classes: bool = False
    most_missing: int | None = None  # columns with more missing values are dropped

    def read(self, folder: Path) -> tuple[pd.DataFrame, pd.Series]:
        """Read features and target as pandas does."""
        table = pd.read_csv(folder / self.file)
        features = table.drop(columns=[self.target, *self.drop])
        if self.most_missing is not None:
            features = features.loc[:, (features == "?").sum() <= self.most_missing]
        return features, table[self.target]


IDENTIFIERS = ("state", "county", "community", "communityname", "fold")
COMMUNITIES = Problem("Communities", "communities_crime.csv", "ViolentCrimesPerPop", IDENTIFIERS)
STUDENT = Problem("Student", "student_performance_por.csv", "G3")
BOSTON = Problem("Boston", "boston_housing.csv", "MEDV")
MIXED = [
    STUDENT,
    Problem("Las Vegas (log loss)", "las_vegas.csv", "Score", classes=True),
    Problem("Facebook", "facebook_metrics.csv", "Total Interactions"),
    Problem("Facebook, parts dropped", "facebook_metrics.csv", "Total Interactions", ("comment", "like", "share")),
    COMMUNITIES,
    Problem("Communities, police dropped", COMMUNITIES.file, COMMUNITIES.target, IDENTIFIERS, most_missing=1),
]
OTHERS = [
    BOSTON,
    Problem("Wine", "wine_quality_white.csv", "quality"),
    Problem("Bioconcentration", "bioconcentration.csv", "logBCF", ("CAS", "SMILES", "Set", "Class")),
    Problem("Pima (log loss)", "pima_diabetes.csv", "Outcome", classes=True),
    Problem("Heart (log loss)", "statlog_heart.csv", "heart-disease", classes=True),
    Problem("Retinopathy (log loss)", "diabetic_retinopathy.csv", "Class", classes=True),
    Problem("Contraceptive (log loss)", "contraceptive.csv", "contraceptive_method", classes=True),
]


def one_hot(train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Encode by hand: a column for every level, missing values filled with the training rows' means."""
    both = pd.concat([train, test]).replace("?", np.nan)
    numbers = both.apply(pd.to_numeric, errors="coerce")
    both = both.where(numbers.isna(), numbers).infer_objects()
    both = pd.get_dummies(both, dtype=float)
    encoded = both.iloc[: len(train)], both.iloc[len(train) :]
    return encoded[0].fillna(encoded[0].mean()), encoded[1].fillna(encoded[0].mean())


def error(
    problem: Problem, train: Any, test: Any, y_train: Any, y_test: Any, seed: int, **options: Any
) -> tuple[float, Any]:
    """Fit CASTLE; return its error on test rows, in units of the target's variance or as log loss, and the model."""
    make = CastleClassifier if problem.classes else CastleRegressor
    model: Any = make(n_members=MEMBERS, random_state=seed, **options).fit(train, y_train)
    if problem.classes:
        return float(log_loss(y_test, model.predict_proba(test), labels=model.classes_)), model
    return float(((model.predict(test) - y_test) ** 2).mean() / y_train.var(ddof=0)), model


def split(problem: Problem, X: pd.DataFrame, y: pd.Series, seed: int) -> tuple[Any, Any, Any, Any]:
    """Hold a random fifth out."""
    train, test, y_train, y_test = train_test_split(
        X, y, test_size=0.2, random_state=seed, stratify=y if problem.classes else None
    )
    return train, test, y_train, y_test


def by_hand(folder: Path) -> pd.DataFrame:
    """Compare frames as read with frames encoded by hand."""
    rows = []
    for problem in MIXED:
        X, y = problem.read(folder)
        errors: dict[str, list[float]] = {"as read": [], "by hand": []}
        for seed in range(SPLITS):
            train, test, y_train, y_test = split(problem, X, y, seed)
            native, model = error(problem, train, test, y_train, y_test, seed)
            encoded = one_hot(train, test)
            errors["as read"].append(native)
            errors["by hand"].append(error(problem, *encoded, y_train, y_test, seed)[0])
        rows.append(
            {
                "table": problem.title,
                "feature nodes": model.model_.networks.layout.n_features,
                "dummies": encoded[0].shape[1],
                **{name: " ".join(f"{e:.4f}" for e in values) for name, values in errors.items()},
                "mean as read": np.mean(errors["as read"]),
                "mean by hand": np.mean(errors["by hand"]),
            }
        )
        print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def missing(folder: Path) -> pd.DataFrame:
    """Remove 30 % of Boston's cells at random."""
    X, y = BOSTON.read(folder)
    rows = []
    for seed in range(5):
        gone = X.mask(np.random.default_rng(seed).random(X.shape) < 0.3)
        row: dict[str, Any] = {"seed": seed}
        for label, table in {"whole": X, "missing": gone}.items():
            train, test, y_train, y_test = split(BOSTON, table, y, seed)
            row[f"CASTLE, {label}"] = error(BOSTON, train, test, y_train, y_test, seed)[0]
            for name, options in PEERS.items():
                row[f"{name}, {label}"] = _peer_error(options, seed, train, test, y_train, y_test)
        rows.append(row)
    frame = pd.DataFrame(rows)
    for name in ("CASTLE", *PEERS):
        frame[f"{name}, rise"] = frame[f"{name}, missing"] - frame[f"{name}, whole"]
    return frame


PEERS: dict[str, dict[str, Any]] = {
    "MLP": {"hidden_layer_sizes": (14, 14), "early_stopping": True, "n_iter_no_change": 30, "max_iter": 200},
    "MLP, defaults": {"max_iter": 1000},
}


def _peer_error(options: dict[str, Any], seed: int, train: Any, test: Any, y_train: Any, y_test: Any) -> float:
    """Average as many of scikit-learn's networks as CASTLE has, on standardized columns and target."""
    fill = make_pipeline(SimpleImputer(), StandardScaler()).fit(train)
    center, spread = y_train.mean(), y_train.std(ddof=0)
    networks = [
        MLPRegressor(random_state=MEMBERS * seed + i, **options).fit(fill.transform(train), (y_train - center) / spread)
        for i in range(MEMBERS)
    ]
    predicted = np.mean([network.predict(fill.transform(test)) for network in networks], axis=0)
    return float((((y_test - center) / spread - predicted) ** 2).mean())


def robust(folder: Path) -> pd.DataFrame:
    """Compare robust with standard scaling; Communities, scaled to 0 to 1 by its makers, is left out."""
    rows = []
    for problem in [*OTHERS, *(one for one in MIXED if one.file != COMMUNITIES.file)]:
        X, y = problem.read(folder)
        errors: dict[str, list[float]] = {name: [] for name in RECIPES}
        for seed in range(SPLITS):
            parts = split(problem, X, y, seed)
            for name, values in errors.items():
                values.append(error(problem, *parts, seed, recipe=RECIPES[name])[0])
        means = {name: float(np.mean(values)) for name, values in errors.items()}
        difference = np.array(errors["robust"]) - np.array(errors["standard"])
        rows.append({"table": problem.title, **means, "robust better in": f"{(difference < 0).sum()} of {SPLITS}"})
        print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def speed(folder: Path) -> pd.DataFrame:
    """Time training of the Student table with a node per column and with a node per dummy, compiled before."""
    X, y = STUDENT.read(folder)
    dummies = pd.get_dummies(X, dtype=float)
    rows = []
    for members in (1, 10):
        seconds = {}
        for name, table in {"column": X, "dummy": dummies}.items():
            model = CastleRegressor(n_members=members, max_epochs=100, recipe=Recipe(patience=100), random_state=0)
            model.fit(table, y)
            times = []
            for _ in range(3):
                start = time.perf_counter()
                model.fit(table, y)
                times.append(time.perf_counter() - start)
            seconds[name] = min(times)
        rows.append(
            {
                "networks": members,
                "seconds, node per column": seconds["column"],
                "seconds, node per dummy": seconds["dummy"],
                "ratio": seconds["dummy"] / seconds["column"],
            }
        )
    return pd.DataFrame(rows)


def main(names: list[str]) -> None:
    """Run the named parts, all by default."""
    folder = os.environ.get("CASTLEREG_DATA")
    if folder is None:
        print("real_tables: set CASTLEREG_DATA to the folder of the tables")
        return
    warnings.filterwarnings("ignore", category=UserWarning)
    for part in (by_hand, missing, robust, speed):
        if not names or part.__name__ in names:
            print(f"\n{str(part.__doc__).splitlines()[0]}", flush=True)
            print(part(Path(folder)).to_string(index=False, float_format=lambda v: f"{v:.4f}"), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
