"""Fitted models that are to rise or fall with columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import castlereg
from castlereg import CastleClassifier, CastleRegressor, CastleRegressorCV, NetworkRegressor, Recipe
from castlereg.losses import Quantiles
from castlereg.regularizers import BatchNorm, Dropout

N_PAIRS = 10_000


def table(n_rows: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    """A table whose target mostly, but not always, rises with age and falls with dose."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["age", "dose", "free"])
    frame["smoker"] = rng.random(n_rows) < 0.4
    frame["city"] = rng.choice(["Oslo", "Rome", "Bern"], n_rows)
    frame.loc[::17, "age"] = np.nan
    y = np.sin(2 * frame.age.fillna(0)) + frame.age.fillna(0) / 2 - np.tanh(3 * frame.dose) + frame.free**2
    return frame, (y - 0.7 * frame.smoker + 0.4 * rng.normal(size=n_rows)).to_numpy()


def pairs(column: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Random rows far and near, and the same with more of a column."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(3 * rng.normal(size=(N_PAIRS, 3)), columns=["age", "dose", "free"])
    rows["smoker"], rows["city"] = rng.random(N_PAIRS) < 0.5, rng.choice(["Oslo", "Rome", "Bern"], N_PAIRS)
    if column == "smoker":
        return rows.assign(smoker=False), rows.assign(smoker=True)
    return rows, rows.assign(**{column: rows[column] + rng.exponential(size=N_PAIRS) ** 3})


def change(predict: Any, column: str) -> np.ndarray:
    less, more = pairs(column)
    return np.asarray(predict(more) - predict(less))


MODELS: dict[str, Any] = {
    "castle": CastleRegressor(max_epochs=40, learning_rate=0.01, random_state=0),
    "linear": CastleRegressor(hidden_layer_sizes=(), max_epochs=20, random_state=0),
    "sampled": CastleRegressor(castle=castlereg.Castle(features_per_step=2), max_epochs=20, random_state=0),
    "recipe": NetworkRegressor(
        [Dropout(0.1)],
        hidden_layer_sizes=(16, 9, 5),
        recipe=Recipe(embedding=4, averaging=0.8, weight_decay=0.01, scaling="robust", schedule="cosine"),
        max_epochs=20,
        random_state=0,
    ),
    "grid": CastleRegressorCV((0.01, 0.1), search="paper", cv=3, max_epochs=10, random_state=0),
    "pool": CastleRegressorCV(cv=3, max_epochs=10, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_predictions_keep_their_direction(name: str) -> None:
    X, y = table()
    model = MODELS[name].set_params(monotone={"age": 1, "dose": -1, "smoker": -1}).fit(X, y)
    assert (change(model.predict, "age") >= 0).all()
    assert (change(model.predict, "dose") <= 0).all()
    assert (change(model.predict, "smoker") <= 0).all()
    assert (np.abs(change(model.predict, "dose")) > 1e-6).mean() > 0.5, "a constant would be monotone too"
    if name == "castle":
        free = MODELS[name].set_params(monotone=None).fit(X, y)
        assert (change(free.predict, "age") < 0).any(), "without the promise, some pairs fall"
        assert model.score(X, y) > 0.75


def test_quantiles_keep_the_direction_where_the_noise_grows_with_the_column() -> None:
    """The true 10 % quantile falls as the column grows: the promise must hold against the data."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"age": rng.uniform(0, 3, 400), "free": rng.normal(size=400)})
    y = 0.2 * X.age + X.age * rng.normal(size=400)
    model = NetworkRegressor(
        loss=Quantiles((0.1, 0.5, 0.9)), monotone={"age": 1}, learning_rate=0.01, max_epochs=40, random_state=0
    ).fit(X, y)
    ages = np.linspace(-1, 4, 200)
    quantiles = model.predict_quantiles(pd.DataFrame({"age": ages, "free": 0.0}))
    assert (np.diff(quantiles, axis=0) >= 0).all()
    assert quantiles[150, 2] > quantiles[50, 2] + 0.5


def test_all_quantiles_and_the_probability_of_the_second_class() -> None:
    X, y = table()
    quantiles = NetworkRegressor(loss=Quantiles((0.1, 0.5, 0.9)), monotone={"age": 1}, max_epochs=10, random_state=0)
    assert (change(quantiles.fit(X, y).predict_quantiles, "age") >= 0).all()
    classes = np.where(y > 0, "sick", "healthy")
    risk = CastleClassifier(monotone={"age": 1}, max_epochs=10, random_state=0).fit(X, classes)
    assert risk.classes_[1] == "sick"
    assert (change(lambda rows: risk.predict_proba(rows)[:, 1], "age") >= 0).all()


def test_columns_are_named_or_numbered() -> None:
    X, y = table(100)
    options: dict[str, Any] = {"max_epochs": 3, "random_state": 0}
    by_name = CastleRegressor(monotone={"dose": -1}, **options).fit(X, y)
    by_index = CastleRegressor(monotone={1: -1}, **options).fit(X, y)
    np.testing.assert_array_equal(by_name.predict(X), by_index.predict(X))


def test_a_loaded_model_and_one_of_a_file_keep_it(tmp_path: Path) -> None:
    X, y = table()
    model = CastleRegressor(monotone={"age": 1}, max_epochs=3, random_state=0).fit(X, y)
    castlereg.save(model, tmp_path / "model.castle")
    loaded = castlereg.load(tmp_path / "model.castle")
    assert loaded.monotone == {"age": 1}
    assert [node.monotone for node in loaded.model_.preprocessing.nodes] == [1, 0, 0, 0, 0]
    X.assign(risk=y).to_csv(tmp_path / "risk.csv", index=False)
    of_file = NetworkRegressor(monotone={"age": 1}, max_epochs=3, random_state=0).fit_file(
        tmp_path / "risk.csv", "risk"
    )
    assert (change(of_file.predict, "age") >= 0).all()


@pytest.mark.parametrize(
    "model, message",
    [
        (CastleRegressor(monotone={"aeg": 1}), r"column in monotone='aeg' is not one of .* did you mean 'age'"),
        (CastleRegressor(monotone={"age": 2}), r"monotone has 2 for column 'age': use 1 if the target rises"),
        (CastleRegressor(monotone={9: 1}), r"monotone has index 9, but X has 5 columns"),
        (CastleRegressor(monotone=["age"]), r"monotone=\['age'\] must be None or a dict"),
        (CastleRegressor(monotone={"city": 1}), r"monotone has column 'city', whose levels have no order"),
        (CastleRegressor(monotone={"age": 1, 0: -1}), r"monotone has column 'age' twice"),
        (CastleRegressor(monotone={"age": np.ones(2)}), r"monotone has array.* for column 'age'"),
        (
            NetworkRegressor(monotone={"age": 1}, recipe=Recipe(activation="silu")),
            r"non-decreasing.* 'silu': use 'relu'",
        ),
        (NetworkRegressor([BatchNorm()], monotone={"age": 1}), r"monotone cannot be combined with BatchNorm"),
        (CastleRegressorCV(monotone={"city": 1}), r"monotone has column 'city', whose levels have no order"),
    ],
)
def test_clear_errors(model: Any, message: str) -> None:
    X, y = table(60)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_three_classes_neither_rise_nor_fall() -> None:
    X, y = table(60)
    with pytest.raises(ValueError, match="two classes, but y has 3 classes"):
        CastleClassifier(monotone={"age": 1}).fit(X, np.digitize(y, [0, 1]))


def test_two_levels_of_text_have_an_order_only_as_an_ordered_category() -> None:
    X, y = table(60)
    X["dosage"] = np.where(X.dose > 0, "high", "low")
    with pytest.raises(ValueError, match="monotone has column 'dosage', whose levels have no order"):
        CastleRegressor(monotone={"dosage": 1}).fit(X, y)
    X["dosage"] = pd.Categorical(X["dosage"], ["low", "high"], ordered=True)
    model = NetworkRegressor(monotone={"dosage": -1}, max_epochs=3, random_state=0).fit(X, y)
    low, high = (
        X.assign(dosage=pd.Categorical([level] * 60, ["low", "high"], ordered=True)) for level in ("low", "high")
    )
    assert (model.predict(high) <= model.predict(low)).all()
