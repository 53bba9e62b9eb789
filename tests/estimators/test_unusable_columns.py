"""Identifiers and free text: left out with a warning, or kept as levels on request."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg import CastleRegressor, NetworkRegressor, load, save
from tests.estimators.test_odd_frames import untrained

N = 48
OPTIONS: dict[str, Any] = {"hidden_layer_sizes": (4,), "max_epochs": 1, "random_state": 0}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.normal(size=N),
            "mail": [f"user{i}@example.org" for i in range(N)],
            "said": [f"This is comment {i} of many" for i in range(N)],
            "user_id": rng.permutation(N) + 100,
            "b": rng.normal(size=N),
        }
    )


@pytest.fixture(scope="module")
def fitted() -> CastleRegressor:
    X = table()
    with pytest.warns(UserWarning, match=r"left out: 'mail' \(.*\); 'said' \(.*\); 'user_id' \("):
        return CastleRegressor(**OPTIONS).fit(X, (X["a"] + X["b"]).rename("y"))


def test_the_warning_points_at_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castlereg.search.candidates.train", untrained)
    with pytest.warns(UserWarning, match="are left out: 'mail'") as caught:
        NetworkRegressor(**OPTIONS).fit(table(), np.linspace(0, 1, N))
    assert caught[0].filename == __file__


def test_the_user_may_keep_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castlereg.search.candidates.train", untrained)
    X = table()
    with pytest.warns(UserWarning, match=r"left out: 'said' \(free text.*\); 'user_id'") as caught:
        model = NetworkRegressor(categorical_features=["mail"], **OPTIONS).fit(X, X["a"])
    assert not any("mail" in str(warning.message) for warning in caught)
    assert model.schema_.loc["mail", "kind"] == "categorical"


def test_dropped_columns_stay_as_nodes_without_edges(fitted: CastleRegressor) -> None:
    assert list(fitted.feature_names_in_) == list(table())
    assert fitted.schema_["kind"].tolist() == ["numeric", "unusable", "unusable", "unusable", "numeric"]
    weights = fitted.input_graph_.learned_weights
    for name in ("mail", "said", "user_id"):
        assert not weights.loc[name].any()
        assert not weights[name].any()
    assert weights.loc["a", "y"] > 0


def test_prediction_ignores_what_is_in_them(fitted: CastleRegressor, tmp_path: Path) -> None:
    X = table()
    odd = X.assign(mail=np.inf, said=[b"bytes", 3, None] * (N // 3), user_id=pd.Timestamp("2024-01-01"))
    save(fitted, tmp_path / "model.castle")
    loaded = load(tmp_path / "model.castle")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = fitted.predict(X)
        for asked in (fitted, loaded):
            np.testing.assert_array_equal(asked.predict(odd), expected)


@pytest.mark.filterwarnings("ignore:X has columns that carry")
def test_other_estimators_drop_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castlereg.search.candidates.train", untrained)
    X = table()
    y = pd.DataFrame({"n": X["a"] + X["b"], "m": X["a"]})
    several = NetworkRegressor(**OPTIONS).fit(X, y)
    assert (several.schema_["kind"] == "unusable").sum() == 3
    arrays = X.to_numpy(object)
    model = NetworkRegressor(**OPTIONS).fit(arrays, y["n"])
    arrays[:, 1] = 5.0
    np.testing.assert_array_equal(model.predict(arrays), model.predict(X.to_numpy(object)))
    with pytest.raises(ValueError, match="expecting 5 features"):
        model.predict(np.ones((3, 1)))


@pytest.mark.filterwarnings("ignore:X has columns that carry")
def test_validation_rows_of_another_fit_are_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is fitted again forgets which columns it did not use."""
    monkeypatch.setattr("castlereg.search.candidates.train", untrained)
    X = table()
    model = NetworkRegressor(**OPTIONS).fit(X, X["a"])
    town = X.assign(mail=["Oslo", "Rome"] * (N // 2), said="x", user_id=X["a"]).drop(columns="said")
    town["town"] = ["here", "there", "far"] * (N // 3)
    with pytest.raises(ValueError, match="X_val has text in column 'user_id'"):
        model.fit(town, X["a"], X_val=town.assign(user_id="text"), y_val=X["a"])


@pytest.mark.filterwarnings("ignore:.* has columns that carry")
def test_files_are_read_the_same_way(tmp_path: Path) -> None:
    X = table()
    X.assign(y=X["a"] + X["b"]).to_csv(tmp_path / "t.csv", index=False)
    model = NetworkRegressor(**OPTIONS).fit_file(tmp_path / "t.csv", "y")
    assert (model.schema_["kind"] == "unusable").sum() == 3
    np.testing.assert_array_equal(model.predict(X), model.predict(X.assign(said=1.0)))
