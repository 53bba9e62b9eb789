"""Frames as users have them: one column is one node, whatever it holds, however it is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from castlereg import CastleClassifier, CastleRegressor, NetworkRegressor, Recipe
from castlereg.regularizers import Autoencoder, Castle, InputNoise, MixUp


def mixed_frame(n: int = 120) -> tuple[pd.DataFrame, pd.Series]:
    """Rooms, a city, a garden, a price per day and a date; the target follows three of them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "area": rng.normal(80, 20, n),
            "rooms": rng.integers(1, 6, n),
            "city": rng.choice(["Oslo", "Rome", "Lima"], n),
            "garden": rng.choice(["yes", "no"], n),
            "built": pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 7000, n), "D"),
        }
    )
    effect = frame["city"].map({"Oslo": 2.0, "Rome": 0.0, "Lima": -2.0})
    target = effect + 0.05 * (frame["area"] - 80) + (frame["garden"] == "yes") + 0.1 * rng.normal(size=n)
    return frame, target.rename("rent")


def with_gaps(frame: pd.DataFrame, share: float = 0.2) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return frame.mask(rng.random(frame.shape) < share)


def quick(**options: Any) -> CastleRegressor:
    return CastleRegressor(**{"max_epochs": 6, "random_state": 0, **options})


def test_one_column_is_one_node_and_levels_are_learned() -> None:
    frame, rent = mixed_frame(300)
    model = CastleRegressor(learning_rate=0.01, random_state=0).fit(frame[:240], rent[:240])
    assert model.input_graph_.nodes == [*frame.columns, "rent"]
    assert model.score(frame[240:], rent[240:]) > 0.9
    assert list(model.schema_["kind"]) == ["numeric", "ordinal", "categorical", "binary", "numeric"]
    learned = model.input_graph_.learned_weights["rent"].drop("rent")
    assert learned["city"] == learned.max()


def test_missing_values_are_learned_from() -> None:
    frame, rent = mixed_frame(400)
    gone = with_gaps(frame)
    model = CastleRegressor(learning_rate=0.01, random_state=0).fit(gone[:320], rent[:320])
    np.testing.assert_array_equal(model.schema_["missing"], gone[:320].isna().sum())
    assert 0.5 < model.score(gone[320:], rent[320:]) < model.score(frame[320:], rent[320:])


def test_a_missing_value_may_predict_the_target() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    missing = rng.random(300) < 0.4
    x[missing, 0] = np.nan
    y = 2.0 * missing + 0.1 * rng.normal(size=300)
    model = CastleRegressor(learning_rate=0.01, random_state=0).fit(x[:240], y[:240])
    assert model.score(x[240:], y[240:]) > 0.9


def test_a_column_with_one_value_is_kept_for_its_missing_values() -> None:
    rng = np.random.default_rng(0)
    missing = rng.random(300) < 0.4
    frame = pd.DataFrame({"noise": rng.normal(size=300), "seen": np.where(missing, None, "x")})
    y = 2.0 * missing + 0.1 * rng.normal(size=300)
    model = CastleRegressor(learning_rate=0.01, random_state=0).fit(frame[:240], y[:240])
    assert model.score(frame[240:], y[240:]) > 0.9


# --- nothing but names changes -------------------------------------------------------------------

STORED: dict[str, Callable[[pd.DataFrame], Any]] = {
    "order of categories": lambda frame: frame.astype({"city": pd.CategoricalDtype(["Rome", "Lima", "Oslo"])}),
    "category": lambda frame: frame.astype({"city": "category", "garden": "category"}),
    "object": lambda frame: frame.astype(object),
    "string": lambda frame: frame.astype({"city": "string", "garden": "string"}),
    "nullable": lambda frame: frame.astype({"rooms": "Int64", "area": "Float64"}),
    "float": lambda frame: frame.astype({"rooms": float}),
    "names": lambda frame: frame.rename(columns=str.upper),
    "polars": lambda frame: pl.DataFrame(
        {name: [None if pd.isna(value) else value for value in frame[name]] for name in frame.columns}
    ),
    "NumPy": lambda frame: frame.to_numpy(dtype=object),
}


@pytest.fixture(scope="module")
def reference() -> tuple[pd.DataFrame, pd.Series, CastleRegressor]:
    frame, rent = mixed_frame()
    frame = with_gaps(frame, 0.1)
    return frame, rent, quick().fit(frame, rent)


@pytest.mark.parametrize("how", list(STORED))
def test_how_a_table_is_stored_changes_nothing(
    how: str, reference: tuple[pd.DataFrame, pd.Series, CastleRegressor]
) -> None:
    frame, rent, model = reference
    stored = STORED[how](frame)
    other = quick().fit(stored, rent)
    np.testing.assert_array_equal(other.predict(stored), model.predict(frame))
    np.testing.assert_array_equal(other.input_graph_.learned_array, model.input_graph_.learned_array)


def test_booleans_are_stored_in_many_ways() -> None:
    frame, rent = mixed_frame()
    garden = frame["garden"] == "yes"
    stored = [garden, garden.astype(int), garden.astype(float), garden.astype("boolean"), garden.astype(object)]
    predictions = [(quick().fit(other, rent).predict(other)) for other in (frame.assign(garden=one) for one in stored)]
    for prediction in predictions[1:]:
        np.testing.assert_array_equal(prediction, predictions[0])


# --- prediction ----------------------------------------------------------------------------------


def test_rows_do_not_see_each_other(reference: tuple[pd.DataFrame, pd.Series, CastleRegressor]) -> None:
    frame, _, model = reference
    together = model.predict(frame)
    np.testing.assert_array_equal(np.concatenate([model.predict(frame[i : i + 1]) for i in range(20)]), together[:20])
    np.testing.assert_array_equal(model.predict(frame[::-1])[::-1], together)


@pytest.mark.parametrize("scaling", ["standard", "robust"])
def test_prediction_agrees_with_training(scaling: str) -> None:
    """The loss that training saw is the error of ``predict``: missing values, flags and levels are encoded alike."""
    frame, rent = mixed_frame(200)
    frame = with_gaps(frame)
    model = quick(max_epochs=20, recipe=Recipe(scaling=scaling))
    model.fit(frame[:150], rent[:150], X_val=frame[150:], y_val=rent[150:])
    error = ((model.predict(frame[150:]) - rent[150:]) ** 2).mean() / rent[:150].var(ddof=0)
    np.testing.assert_allclose(error, model.validation_loss_, rtol=1e-4)


def test_unknown_levels_are_predicted_with_a_warning() -> None:
    frame, rent = mixed_frame()
    model = quick().fit(frame, rent)
    with pytest.warns(UserWarning, match="not in the training data: 'Paris' in column 'city'") as caught:
        prediction = model.predict(frame.assign(city="Paris"))
    assert np.isfinite(prediction).all()
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="missing values in columns that had none in training: 120 in 'area'"):
        assert np.isfinite(model.predict(frame.assign(area=np.nan))).all()


def test_unknown_levels_of_validation_rows_are_warned_of_once() -> None:
    frame, rent = mixed_frame()
    with pytest.warns(UserWarning, match="X_val has levels that are not in the training data: 'Paris'") as caught:
        quick().fit(frame, rent, X_val=frame.assign(city="Paris"), y_val=rent)
    assert len(caught) == 1


def test_new_missing_values_of_validation_rows_are_warned_of() -> None:
    frame, rent = mixed_frame()
    with pytest.warns(
        UserWarning, match="X_val has missing values in columns that had none in training: 120 in 'area'"
    ):
        model = quick(max_epochs=2).fit(frame, rent, X_val=frame.assign(area=np.nan), y_val=rent)
    assert np.isfinite(model.validation_loss_)


def test_an_unknown_level_is_like_the_average_of_the_known_ones() -> None:
    frame, rent = mixed_frame(400)
    model = CastleRegressor(learning_rate=0.01, random_state=0).fit(frame, rent)
    by_city = [model.predict(frame.assign(city=city)).mean() for city in ("Oslo", "Rome", "Lima")]
    with pytest.warns(UserWarning, match="Paris"):
        unknown = model.predict(frame.assign(city="Paris")).mean()
    assert unknown == pytest.approx(np.mean(by_city), abs=0.25 * np.ptp(by_city))


# --- options -------------------------------------------------------------------------------------


def test_codes_can_be_called_categorical() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"code": rng.integers(0, 6, 300), "noise": rng.normal(size=300)})
    y = frame["code"].map(dict(enumerate([0.0, 5, -3, 4, -5, 1]))) + 0.1 * rng.normal(size=300)
    options = {"learning_rate": 0.01, "random_state": 0, "hidden_layer_sizes": ()}
    as_number = CastleRegressor(**options).fit(frame, y)
    as_levels = CastleRegressor(categorical_features=["code"], **options).fit(frame, y)
    assert as_number.schema_.loc["code", "kind"] == "ordinal"
    assert as_levels.schema_.loc["code", "kind"] == "categorical"
    assert as_number.score(frame, y) < 0.5 < 0.95 < as_levels.score(frame, y)


def test_robust_scaling_withstands_a_wild_cell() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=400)
    X[0, 0] = 1e5
    scores = {
        scaling: CastleRegressor(recipe=Recipe(scaling=scaling), learning_rate=0.01, random_state=0)
        .fit(X[:300], y[:300])
        .score(X[300:], y[300:])
        for scaling in ("standard", "robust")
    }
    assert scores["standard"] < 0.5 < 0.8 < scores["robust"]


def test_bad_options_raise() -> None:
    frame, rent = mixed_frame()
    with pytest.raises(ValueError, match=r"scaling='robusst' is not one of .* did you mean 'robust'"):
        Recipe(scaling="robusst")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"column in categorical_features='citty'.* did you mean 'city'"):
        quick(categorical_features=["citty"]).fit(frame, rent)


def test_regularizers_take_missing_values_and_levels() -> None:
    frame, rent = mixed_frame()
    model = NetworkRegressor([Autoencoder(), MixUp(), InputNoise()], max_epochs=6, random_state=0)
    model.fit(with_gaps(frame), rent)
    assert np.isfinite(model.history_.to_numpy(float)).all()
    assert np.isfinite(model.predict(frame)).all()


def test_sampled_features_take_missing_values_and_levels() -> None:
    frame, rent = mixed_frame()
    model = quick(castle=Castle(features_per_step=2)).fit(with_gaps(frame), rent)
    assert np.isfinite(model.history_.to_numpy(float)).all()


def test_classes_of_a_frame() -> None:
    frame, rent = mixed_frame(300)
    kind = pd.cut(rent, 3, labels=["cheap", "fair", "dear"])
    model = CastleClassifier(learning_rate=0.01, random_state=0).fit(with_gaps(frame), kind)
    assert list(model.classes_) == ["cheap", "dear", "fair"]
    assert model.score(frame, kind.astype(str)) > 0.7


def test_a_failed_fit_leaves_the_model_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, rent = mixed_frame()
    model = quick(max_epochs=2).fit(frame, rent)
    before = model.predict(frame)

    def fail(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("castlereg.search.candidates.train", fail)
    for other in (frame.assign(garden=range(5, 125)), frame[["area"]]):
        with pytest.raises(KeyboardInterrupt):
            model.fit(other, rent)
        np.testing.assert_array_equal(model.predict(frame), before)
