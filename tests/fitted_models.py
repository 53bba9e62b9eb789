"""Small fitted models, each trained once for all tests of files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold

from castlereg import (
    Castle,
    CastleClassifier,
    CastleClassifierCV,
    CastleRegressor,
    CastleRegressorCV,
    EdgeConstraints,
    NetworkClassifier,
    NetworkRegressor,
    Recipe,
)
from castlereg.regularizers import L2
from castlereg.search import recipe as recipes

QUICK: dict[str, Any] = {"max_epochs": 2, "random_state": 0, "hidden_layer_sizes": (4, 4)}


class Fitted(NamedTuple):
    """A model, the table it was fitted on, and one with missing values and levels that it had not seen."""

    model: Any
    X: Any
    y: Any
    unseen: Any


def table(rows: int = 48) -> pd.DataFrame:
    """Numbers, codes, text, an ordered category and a boolean, some with missing values."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "area": rng.normal(80, 20, rows),
            "income": rng.lognormal(3, 1.5, rows),
            "zone": rng.choice([10, 20, 35], rows),
            "city": rng.choice(["Oslo", "Rome", "Lima, \u00c9"], rows),
            "garden": rng.choice(["yes", "no"], rows),
            "grade": pd.Categorical(rng.choice(["low", "mid", "top"], rows), ["low", "mid", "top"], ordered=True),
            "let": rng.random(rows) < 0.5,
        }
    )
    frame.loc[::7, "area"] = np.nan
    frame.loc[1::5, "city"] = None
    frame.loc[2::11, "grade"] = None
    return frame


def unseen_table() -> pd.DataFrame:
    """Rows with levels, and missing values in columns, that :func:`table` does not have."""
    frame = table().head(20)
    frame["grade"] = frame["grade"].cat.set_categories(["low", "mid", "top", "new"])
    frame.loc[0, ["city", "garden", "grade"]] = ["Bergen", "perhaps", "new"]
    frame.loc[1, ["zone", "income"]] = [99, 1e6]
    frame.loc[2, ["income", "garden"]] = [np.nan, None]
    frame.loc[3, "zone"] = np.nan
    return frame


def _values() -> np.ndarray:
    frame = table()
    rng = np.random.default_rng(4)
    effect = frame["city"].map({"Oslo": 2.0, "Rome": -1.0}).fillna(0.0)
    return np.asarray(100 + 20 * effect + 3 * rng.normal(size=len(frame)))


def _terciles(labels: list[Any]) -> np.ndarray:
    y = _values()
    return np.array(labels)[np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))]


def _numbers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(48, 3)) * [1.0, 50.0, 1e-3] + [0.0, 1e4, 0.0]
    return X, X[:, 0] + X[:, 1] / 50


def _make(name: str) -> tuple[Any, Any, Any]:
    mixed = {**QUICK, "categorical_features": ["zone"]}
    shallow = {**mixed, "hidden_layer_sizes": (4,)}
    if name == "CastleRegressor":
        known = EdgeConstraints(
            required=[("x0", "y")], forbidden=[("x1", "x2")], tiers=[["x0"], ["y"]], beliefs=[("x2", "y", 0.7)]
        )
        castle = Castle(sparsity="group", capacity=True, acyclicity="logdet")
        return CastleRegressor(0.02, np.float32(0.5), castle=castle, constraints=known, **QUICK), *_numbers()
    if name == "NetworkRegressor":
        recipe = Recipe("robust", "glorot", 0.2, warmup=1, batches="independent")
        model = NetworkRegressor(recipe=recipe, n_members=2, bootstrap=True, **mixed)
        return model, table(), pd.Series(_values(), name="rent")
    if name == "CastleClassifier":
        weights = {"high": 2.0, "low": 1, "middle": np.float64(0.5)}
        return CastleClassifier(class_weight=weights, **shallow), table(), _terciles(["low", "middle", "high"])
    if name == "NetworkClassifier":
        labels = pd.Series(_values() > 100, name="dear")
        return NetworkClassifier([L2(np.float32(0.1))], n_members=2, **mixed), table(), labels
    if name == "CastleRegressorCV":
        X, y = _numbers()
        cv = KFold(2, shuffle=True, random_state=1)
        options = {**QUICK, "castle": [Castle(reg_lambda=2), Castle()], "hidden_layer_sizes": np.array([4])}
        model = CastleRegressorCV(np.array([0.01, 0.1]), search="paper", cv=cv, **options)
        return model, X, np.column_stack([y, y**2])
    if name == "CastleClassifierCV":
        options = {**shallow, "scoring": "neg_log_loss", "recipe": Recipe("robust")}
        return CastleClassifierCV((0.01,), search="paper", cv=2, **options), table(), _terciles([1.0, 2.0, 5.0])
    if name == "several targets":
        since = pd.Series(pd.date_range("2020-01-01", periods=48, freq="415h"))  # of years, weeks and days
        targets = pd.DataFrame({"dear": _values() > 100, "kind": np.where(_values() > 90, 7, 5)})
        return CastleClassifier(**shallow), table().assign(since=since.where(since.index != 5)), targets
    if name == "linear":
        options = {**QUICK, "hidden_layer_sizes": (), "search": "one_standard_error"}
        return CastleRegressorCV((0.1, 0.01), cv=2, **options), *_numbers()
    if name == "embedded and refitted":
        recipe = Recipe(embedding=3, activation="silu", schedule="cosine", averaging=0.5, weight_decay=0.1, refit=True)
        return CastleRegressor(recipe=recipe, n_members=2, **mixed), table(), _values()
    if name == "pool of numbers":
        return CastleRegressorCV(cv=2, random_state=0), *_numbers()
    if name == "pool of classes":
        model = CastleClassifierCV(search="best", cv=2, categorical_features=["zone"], random_state=0)
        return model, table(), _terciles(["low", "middle", "high"])
    raise KeyError(name)


NAMES = [
    *("CastleRegressor", "NetworkRegressor", "CastleClassifier", "NetworkClassifier", "CastleRegressorCV"),
    *("CastleClassifierCV", "several targets", "linear", "embedded and refitted", "pool of numbers", "pool of classes"),
]


@contextmanager
def short_pools() -> Iterator[None]:
    """Train the candidates of a pool for three epochs only."""
    with mock.patch.multiple(recipes, _EPOCHS=((10**6, 3),), _FEWEST_EPOCHS=3):
        yield


@cache
def fitted(name: str) -> Fitted:
    """Return the model of this class, which must not be changed."""
    model, X, y = _make(name)
    with short_pools():
        model.fit(X, y)
    unseen = unseen_table() if isinstance(X, pd.DataFrame) else X[:20]
    if isinstance(X, pd.DataFrame) and "since" in X:
        unseen = unseen.assign(since=X["since"][:20])
    return Fitted(model, X, y, unseen)
