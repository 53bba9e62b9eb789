"""The cells of the benchmark: tables, what is added to their columns, numbers of training rows, splits.

Needs only NumPy, pandas and scikit-learn, so that rivals in environments of their own see the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

Variant = Literal["plain", "random", "copies"]

SPLITS = 3
ADDED = 3  # columns that are added for each real one
COPY_NOISE = 0.5  # of a numeric copy, in standard deviations of its column
COPY_CHANGED = 0.3  # share of cells of a categorical copy that are drawn again
TEST_SHARE = 0.2

_COMMUNITY = ("state", "county", "community", "communityname", "fold")
_FACEBOOK_PARTS = ("comment", "like", "share")


class Data(NamedTuple):
    """Training and test rows."""

    X: pd.DataFrame
    y: pd.Series
    X_test: pd.DataFrame
    y_test: pd.Series
    classes: bool


@dataclass(frozen=True)
class Source:
    """A table of the shared folder."""

    file: str
    target: str
    classes: bool = False
    drop: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()  # columns whose numbers are codes without an order
    settings: bool = False  # whether settings were chosen on it (on other splits); the others only confirm

    def read(self, folder: Path) -> tuple[pd.DataFrame, pd.Series]:
        """Read features and target; text and codes become text, columns with over half of their values missing go."""
        table = pd.read_csv(folder / self.file, na_values=["?"])
        X = table.drop(columns=[self.target, *self.drop])
        X = X.loc[:, X.isna().mean() <= 0.5]
        for name in X:
            if name in self.codes or not pd.api.types.is_numeric_dtype(X[name]):
                X[name] = X[name].map(lambda value: "none" if pd.isna(value) else str(value)).astype(object)
            else:
                X[name] = X[name].astype(float).fillna(X[name].median())
        return X, table[self.target]


SOURCES = {
    "Boston": Source("boston_housing.csv", "MEDV", settings=True),
    "bioconcentration": Source("bioconcentration.csv", "logBCF", drop=("CAS", "SMILES", "Set", "Class"), settings=True),
    "student": Source("student_performance_por.csv", "G3", settings=True),
    "Facebook": Source("facebook_metrics.csv", "Total Interactions", drop=_FACEBOOK_PARTS, codes=("Category",)),
    "wine": Source("wine_quality_white.csv", "quality"),
    "communities": Source("communities_crime.csv", "ViolentCrimesPerPop", drop=_COMMUNITY),
    "heart": Source(
        "statlog_heart.csv", "heart-disease", True, codes=("chest-pain", "electrocardiographic", "thal"), settings=True
    ),
    "retinopathy": Source("diabetic_retinopathy.csv", "Class", True, settings=True),
    "Pima": Source("pima_diabetes.csv", "Outcome", True),
    "contraceptive": Source("contraceptive.csv", "contraceptive_method", True, codes=("husband_occupation",)),
    "Las Vegas": Source("las_vegas.csv", "Score", True),
}


@dataclass(frozen=True, order=True)
class Cell:
    """One problem of the benchmark."""

    table: str
    variant: Variant
    rows: int  # training rows at most; 0 for all
    split: int

    def load(self, folder: Path) -> Data:
        """Read, add columns, and split; the same for every method."""
        source = SOURCES[self.table]
        X, y = _read(self.table, folder)
        rng = np.random.default_rng([list(SOURCES).index(self.table), self.split])
        X = with_columns(X, self.variant, rng)
        kept = y if source.classes else None
        train, test = train_test_split(np.arange(len(X)), test_size=TEST_SHARE, random_state=self.split, stratify=kept)
        if 0 < self.rows < len(train):
            kept = y.iloc[train] if source.classes else None
            train = train_test_split(train, train_size=self.rows, random_state=self.split, stratify=kept)[0]
        return Data(X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test], source.classes)


@lru_cache(maxsize=2)
def _read(table: str, folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    return SOURCES[table].read(folder)


def with_columns(X: pd.DataFrame, variant: Variant, rng: np.random.Generator) -> pd.DataFrame:
    """Add columns of noise, or noisy copies, three for each real column."""
    added: dict[str, Any] = {}
    for number, (name, column) in enumerate((n, X[n]) for n in X for _ in range(ADDED if variant != "plain" else 0)):
        if variant == "random":
            added[f"random {number}"] = rng.standard_normal(len(X))
        elif pd.api.types.is_numeric_dtype(column):
            noise = COPY_NOISE * column.std() * rng.standard_normal(len(X))
            added[f"{name}, copy {number % ADDED}"] = column + noise
        else:
            drawn = rng.permutation(column.to_numpy())
            changed = rng.random(len(X)) < COPY_CHANGED
            added[f"{name}, copy {number % ADDED}"] = np.where(changed, drawn, column)
    return pd.concat([X, pd.DataFrame(added, index=X.index)], axis=1)


def cells(splits: int = SPLITS) -> Iterator[Cell]:
    """Yield all cells, one split after the other, small tables first."""
    for split in range(splits):
        for rows in (300, 100, 0):
            for variant in get_args(Variant):
                for table in SOURCES:
                    yield Cell(table, variant, rows, split)


def error(data: Data, predicted: Any) -> float:
    """Mean squared error in units of the target's variance, or one minus the AUROC (one class against the rest)."""
    if not data.classes:
        return float(np.square(predicted - data.y_test).mean() / data.y_test.var(ddof=0))
    predicted = np.asarray(predicted)
    if predicted.shape[1] == 2:
        return float(1 - roc_auc_score(data.y_test, predicted[:, 1]))
    return float(1 - roc_auc_score(data.y_test, predicted, multi_class="ovr"))
