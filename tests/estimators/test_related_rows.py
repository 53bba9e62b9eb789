"""Rows that belong together or follow each other: which rows every network trains on, and which validate it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_validate

from castlereg import CastleClassifier, CastleClassifierCV, CastleRegressor, CastleRegressorCV, NetworkRegressor
from castlereg.search.fit import _Run
from tests.fitted_models import short_pools

QUICK: dict[str, Any] = {"hidden_layer_sizes": (4,), "max_epochs": 2, "random_state": 0}
ROWS = 90


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Visits of patients over some years; the target has no value twice."""
    rng = np.random.default_rng(0)
    day = rng.integers(0, 30, ROWS)
    frame = pd.DataFrame(
        {"age": rng.normal(50, 9, ROWS), "date": pd.Timestamp("2020-01-01") + day * pd.Timedelta("40D")}
    )
    frame["day"] = day
    frame["patient"] = rng.choice([f"p{k}" for k in range(15)], ROWS)
    frame["cohort"] = day // 5  # a group that does not overlap with others in time
    frame["y"] = rng.normal(size=ROWS) + 0.05 * frame["age"]
    return frame


class _Assigned(Exception):
    """Says which rows networks get, instead of training them."""


def assigned(model: Any, frame: pd.DataFrame, X: Any = None, y: Any = None, **options: Any) -> list[Any]:
    """Return training and validation rows of every network."""

    def spy(run: _Run, _: Any) -> Any:
        raise _Assigned(run.data.folds)

    X = frame[["age", "day"]] if X is None else X
    with pytest.MonkeyPatch.context() as patch, pytest.raises(_Assigned) as caught:
        patch.setattr(_Run, "train", spy)
        model.fit(X, frame["y"] if y is None else y, **options)
    folds: list[Any] = caught.value.args[0]
    return folds


def apart(labels: Any, train: Any, held: Any) -> bool:
    return not set(np.asarray(labels)[train]) & set(np.asarray(labels)[held])


# --- one split -----------------------------------------------------------------------------------


def test_validation_rows_are_whole_groups(frame: pd.DataFrame) -> None:
    model = CastleRegressor(n_members=3, bootstrap=True, **QUICK)
    sides = assigned(model, frame, groups=frame["patient"])
    assert all(apart(frame["patient"], train, held) for train, held in sides)
    assert all(np.array_equal(held, sides[0][1]) for _, held in sides)
    assert 5 <= len(sides[0][1]) <= 14
    without = assigned(model, frame)
    assert not apart(frame["patient"], *without[0]), "the table should need it"


def test_validation_rows_are_the_latest(frame: pd.DataFrame) -> None:
    for column, X in (("day", None), (1, None), ("date", frame[["age", "date"]])):
        ((train, held),) = assigned(NetworkRegressor(**QUICK), frame, X, time_column=column)
        assert frame["day"][train].max() < frame["day"][held].min()
        assert len(train) + len(held) == ROWS and 5 <= len(held) <= 13


def test_dates_that_are_text_are_times(frame: pd.DataFrame) -> None:
    text = frame[["age"]].assign(date=frame["date"].dt.strftime("%d.%m.%Y"))
    ((train, held),) = assigned(NetworkRegressor(**QUICK), frame, text, time_column="date")
    assert frame["day"][train].max() < frame["day"][held].min()


def test_numbers_of_rows_may_be_times_even_if_they_are_left_out(frame: pd.DataFrame) -> None:
    numbered = frame[["age"]].assign(row_id=np.argsort(np.argsort(frame["day"], kind="stable")))
    with pytest.warns(UserWarning, match="left out: 'row_id'"):
        ((train, held),) = assigned(NetworkRegressor(**QUICK), frame, numbered, time_column="row_id")
    assert numbered["row_id"][train].max() < numbered["row_id"][held].min()


def test_latest_groups(frame: pd.DataFrame) -> None:
    ((train, held),) = assigned(NetworkRegressor(**QUICK), frame, groups=frame["cohort"], time_column="day")
    assert frame["day"][train].max() < frame["day"][held].min()
    assert apart(frame["cohort"], train, held) and set(frame["cohort"][held]) == {5}
    spanning = frame["cohort"].where(frame["day"].between(1, 28), 0)
    with pytest.raises(ValueError, match=r"90 rows cannot be split by time .* groups span all of them"):
        NetworkRegressor(**QUICK).fit(frame[["age", "day"]], frame["y"], groups=spanning, time_column="day")


def test_classes_stay_in_training(frame: pd.DataFrame) -> None:
    kind = np.where(frame["cohort"] == 2, "rare", np.where(frame["age"] > 50, "old", "young"))
    fitted = CastleClassifier(**QUICK).fit(frame[["age", "day"]], kind, groups=frame["cohort"])
    held_out = fitted.model_.held_out
    assert held_out is not None and "rare" not in set(held_out.truth[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": np.zeros(ROWS)}, "groups has only one group"),
        ({"groups": [1, 2]}, r"groups has shape \(2,\), but X has 90 rows"),
        ({"time_column": "month"}, "time_column='month' is not one of"),
        ({"time_column": "patient"}, "time_column 'patient' has text or categories: it must have numbers or dates"),
        ({"time_column": "seen"}, "time_column 'seen' has 2 missing values, the first in row 3: fill them or drop"),
        ({"time_column": "same"}, "cannot be split by time"),
    ],
)
@pytest.mark.filterwarnings("ignore:constant columns")
def test_what_cannot_be_split_raises(frame: pd.DataFrame, options: Any, message: str) -> None:
    seen = frame["day"].astype(float).where(~frame.index.isin([3, 8]))
    X = frame[["age", "patient"]].assign(seen=seen, same=1.0)
    with pytest.raises(ValueError, match=message):
        NetworkRegressor(**QUICK).fit(X, frame["y"], **options)


def test_rows_given_for_validation_are_not_chosen(frame: pd.DataFrame) -> None:
    X, y = frame[["age", "day"]], frame["y"]
    for name, value in (("groups", frame["patient"]), ("time_column", "day")):
        with pytest.raises(ValueError, match=f"{name} cannot be combined with X_val and y_val"):
            NetworkRegressor(**QUICK).fit(X, y, X_val=X, y_val=y, **{name: value})


# --- folds ---------------------------------------------------------------------------------------


def test_folds_are_whole_groups(frame: pd.DataFrame) -> None:
    sides = assigned(CastleRegressorCV((0.01,), search="paper", cv=4, **QUICK), frame, groups=frame["patient"])
    assert len(sides) == 4
    assert all(apart(frame["patient"], train, held) for train, held in sides)
    np.testing.assert_array_equal(np.sort(np.concatenate([held for _, held in sides])), np.arange(ROWS))


def test_folds_are_windows_in_time(frame: pd.DataFrame) -> None:
    sides = assigned(CastleRegressorCV((0.01,), search="paper", cv=4, **QUICK), frame, time_column="day")
    assert all(frame["day"][train].max() < frame["day"][held].min() for train, held in sides)
    sizes = [len(train) for train, _ in sides]
    assert sizes == sorted(sizes) and len(sides) == 4
    both = assigned(
        CastleRegressorCV((0.01,), search="paper", cv=4, **QUICK), frame, groups=frame["cohort"], time_column="day"
    )
    assert [set(frame["cohort"][held]) for _, held in both] == [{2}, {3}, {4}, {5}]


def test_folds_of_groups_are_stratified(frame: pd.DataFrame) -> None:
    kind = (frame["age"] > 50).to_numpy()
    sides = assigned(CastleClassifierCV(cv=3, **QUICK), frame, y=kind, groups=frame["patient"])
    assert all(apart(frame["patient"], train, held) for train, held in sides)
    assert all(abs(kind[held].mean() - kind.mean()) < 0.1 for _, held in sides)


def test_a_pool_keeps_groups_together_and_times_in_order(frame: pd.DataFrame) -> None:
    best = CastleRegressorCV(search="best", cv=2, random_state=0)
    grouped = assigned(best, frame, groups=frame["patient"])
    assert all(apart(frame["patient"], train, held) for train, held in grouped) and len(grouped) == 4
    assert not np.array_equal(grouped[0][1], grouped[2][1])
    in_time = assigned(best, frame, time_column="day")
    assert all(frame["day"][train].max() < frame["day"][held].min() for train, held in in_time)
    np.testing.assert_array_equal(in_time[0][1], in_time[2][1])
    X, y = frame[["age", "day"]], frame["y"]
    with short_pools():
        model = CastleRegressorCV(cv=2, random_state=0).fit(X, y, time_column="day")
    assert np.isfinite(model.predict_interval(X, 0.5)).all() and np.isfinite(model.validation_loss_)


def test_a_splitter_and_a_time_column_do_not_go_together(frame: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match=r"cv=GroupKFold\(.*\) cannot be combined with time_column: pass"):
        CastleRegressorCV((0.01,), cv=GroupKFold(2)).fit(frame[["age", "day"]], frame["y"], time_column="day")


def test_groups_are_routed(frame: pd.DataFrame) -> None:
    """Groups reach the splitter and every fit."""
    X, y = frame[["age", "day"]], frame["y"]
    with config_context(enable_metadata_routing=True):
        model = NetworkRegressor(**QUICK).set_fit_request(groups=True)
        result = cross_validate(
            model,
            X,
            y,
            cv=GroupKFold(2),
            params={"groups": frame["patient"]},
            return_estimator=True,
            return_indices=True,
        )
    by_value = dict(zip(y, frame["patient"], strict=True))
    for fitted, train in zip(result["estimator"], result["indices"]["train"], strict=True):
        held = {by_value[value] for value in fitted.model_.held_out.truth[0]}
        counts = frame["patient"].iloc[train].value_counts()
        assert held < set(counts.index)
        assert len(fitted.model_.held_out.truth[0]) == counts[list(held)].sum()
