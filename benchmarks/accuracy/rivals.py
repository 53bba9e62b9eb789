"""The rivals, with their defaults: functions from a cell's data to predictions of its test rows."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import ElasticNetCV, LogisticRegressionCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from benchmarks.accuracy.cells import Data

FOLDS = {"RealMLP_TD": 5, "TabM_D": 1}  # five networks of folds predict together; TabM is 32 networks in one already


def _encoded(model: Any) -> Any:
    """Put one-hot and standardized columns before a model."""
    text = make_column_selector(dtype_exclude="number")
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), text), remainder=StandardScaler()
    )
    return make_pipeline(encode, model)


def _numbered(model: Any) -> Any:
    """Put numbered levels before a model of trees."""
    text = make_column_selector(dtype_exclude="number")
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_pipeline(make_column_transformer((encoder, text), remainder="passthrough"), model)


def _linear(data: Data) -> Any:
    if data.classes:
        folds = min(5, int(data.y.value_counts().min()))
        cs = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
        return _encoded(LogisticRegressionCV(Cs=cs, cv=max(folds, 2), max_iter=2000, scoring="neg_log_loss"))
    return _encoded(ElasticNetCV(l1_ratio=[0.1, 0.5, 0.9, 1.0], cv=5, max_iter=5000))


def _forest(data: Data) -> Any:
    make = RandomForestClassifier if data.classes else RandomForestRegressor
    return _numbered(make(random_state=0))


def _boosting(data: Data) -> Any:
    make = HistGradientBoostingClassifier if data.classes else HistGradientBoostingRegressor
    return _numbered(make(random_state=0))


def _mlp(data: Data) -> Any:
    if data.classes:
        return _encoded(MLPClassifier(random_state=0, max_iter=500))
    from sklearn.compose import TransformedTargetRegressor

    return TransformedTargetRegressor(
        _encoded(MLPRegressor(random_state=0, max_iter=500)), transformer=StandardScaler()
    )


def _catboost(data: Data) -> Any:
    catboost: Any = import_module("catboost")
    make = catboost.CatBoostClassifier if data.classes else catboost.CatBoostRegressor
    text = list(data.X.select_dtypes(exclude="number"))
    return make(random_seed=0, verbose=False, allow_writing_files=False, cat_features=text)


def _of_pytabkit(name: str) -> Callable[[Data], Any]:
    def make(data: Data) -> Any:
        model = getattr(import_module("pytabkit"), f"{name}_{'Classifier' if data.classes else 'Regressor'}")
        return model(random_state=0, n_cv=FOLDS[name], device="cpu")

    return make


RIVALS: dict[str, Callable[[Data], Any]] = {
    "linear": _linear,
    "random forest": _forest,
    "boosting": _boosting,
    "scikit-learn MLP": _mlp,
    "CatBoost": _catboost,
    "RealMLP": _of_pytabkit("RealMLP_TD"),
    "TabM": _of_pytabkit("TabM_D"),
}


def predict(name: str, data: Data) -> Any:
    """Fit a rival; return values, or probabilities in the order of the sorted classes."""
    model = RIVALS[name](data).fit(data.X, data.y)
    return model.predict_proba(data.X_test) if data.classes else model.predict(data.X_test)
