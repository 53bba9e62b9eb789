"""Fitting from files: the same bits as from memory, and errors that name the file."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedKFold

from castlereg import CastleClassifier, CastleClassifierCV, CastleRegressor, EdgeConstraints, NetworkRegressor
from castlereg.table.files import TableFile
from tests.fitted_models import short_pools

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

OPTIONS: dict[str, Any] = {"max_epochs": 12, "hidden_layer_sizes": (8,), "random_state": 0}
N = 3000

pytestmark = pytest.mark.filterwarnings("ignore:.*(numbers stored as text|read as missing values)")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(100, 3, (N, 3)), columns=["c", "b", "a"])
    frame["town"] = rng.choice(["Oslo", "Rome", "Lima"], N)
    frame["rooms"] = rng.integers(1, 6, N)
    frame["garden"] = rng.random(N) > 0.5
    frame["y"] = frame["a"] - np.tanh(frame["b"] - 100) + 2 * (frame["town"] == "Rome") + 0.3 * rng.normal(size=N)
    frame.loc[::7, "b"] = np.nan
    frame.loc[::11, "town"] = None
    frame["width"] = rng.normal(size=N).round(2).astype(str)
    frame.loc[2500, "width"] = "-"  # missing, as all others are numbers
    frame.loc[2999, "town"] = "Kyoto"  # only in the last piece
    return frame


@pytest.fixture(scope="module")
def folder(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    table.to_csv(folder / "flats.csv", index=False)
    table.to_parquet(folder / "flats.parquet")
    (folder / "parts").mkdir()
    table[:1700].to_parquet(folder / "parts" / "1.parquet")
    table[1700:].to_parquet(folder / "parts" / "2.parquet")
    return folder


@pytest.fixture(scope="module", autouse=True)
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TableFile, "columns_on_disk", partialmethod(TableFile.columns_on_disk, rows=1024))
        yield


@pytest.mark.parametrize("name", ["flats.csv", "flats.parquet", "parts"])
def test_a_file_is_fitted_as_its_frame_is(folder: Path, name: str) -> None:
    frame = TableFile.open(folder / name).read()
    X, y = frame.drop(columns="y"), frame["y"]
    of_frame = CastleRegressor(**OPTIONS).fit(X, y)
    of_file = CastleRegressor(**OPTIONS).fit_file(folder / name, "y")
    pd.testing.assert_frame_equal(of_file.schema_.drop(columns="note"), of_frame.schema_.drop(columns="note"))
    assert "Kyoto" in of_file.schema_.loc["town", "levels"]
    assert list(of_file.feature_names_in_) == list(of_frame.feature_names_in_) and of_file.n_features_in_ == 7
    np.testing.assert_array_equal(of_file.predict(X), of_frame.predict(X))
    np.testing.assert_array_equal(of_file.input_graph_.weight_array, of_frame.input_graph_.weight_array)
    np.testing.assert_array_equal(of_file.feature_importances_, of_frame.feature_importances_)
    pd.testing.assert_frame_equal(of_file.history_, of_frame.history_)
    assert of_file.score(X, y) > 0.9


@pytest.mark.parametrize("search", ["fast", "paper"])
def test_a_search_on_a_file_has_the_splitter_and_the_scorer(folder: Path, table: pd.DataFrame, search: Any) -> None:
    X, y = table[["a", "b", "town"]][:300], table["y"][:300].gt(101).map({True: "yes", False: "no"})
    X.assign(high=y).to_parquet(folder / "few.parquet")
    options = {"search": search, "cv": StratifiedKFold(2), "scoring": "accuracy", "random_state": 0, "max_epochs": 4}
    with short_pools():
        of_file, of_frame = (CastleClassifierCV((0.01, 0.1), **options) for _ in range(2))
        of_file.fit_file(folder / "few.parquet", "high")
        of_frame.fit(X, y)
    assert set(of_file.cv_results_["split0_test_score"] * 150 % 1) == {0}  # accuracies
    np.testing.assert_array_equal(of_file.cv_results_["mean_test_score"], of_frame.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(of_file.predict_proba(X), of_frame.predict_proba(X))


def test_classes_with_weights_and_several_members(folder: Path, table: pd.DataFrame) -> None:
    rows = table[["a", "b", "c", "y"]].assign(high=np.where(table["y"] > table["y"].quantile(0.8), "yes", "no"))
    rows.to_parquet(folder / "train.parquet")
    known = EdgeConstraints(forbidden=[("c", "high")])
    model = CastleClassifier(n_members=2, class_weight="balanced", constraints=known, **OPTIONS | {"max_epochs": 3})
    model.fit_file(folder / "train.parquet", "high", columns=["a", "b", "c"])
    into = model.input_graph_.learned_weights["high"]
    assert into["c"] == 0 < into["a"]
    assert list(model.classes_) == ["no", "yes"] and model.history_["member"].nunique() == 2
    assert model.score(rows[["a", "b", "c"]], rows["high"]) > 0.85


def test_ctrl_c_leaves_the_best_model_so_far(folder: Path) -> None:
    def interrupt(epoch: Any) -> None:
        if epoch.number == 2:
            raise KeyboardInterrupt

    model = CastleRegressor(**OPTIONS)
    with pytest.warns(UserWarning, match="interrupted after 2 of at most 12"):
        model.fit_file(folder / "flats.parquet", "y", callbacks=[interrupt], on_interrupt="keep")
    assert len(model.history_) == 2
    kept = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit_file(folder / "flats.csv", "y", columns=["a"], callbacks=[interrupt])
    assert vars(model) == kept


@pytest.mark.parametrize("classes", [list("12A"), list("A12")])
def test_classes_that_become_text_in_a_later_piece(tmp_path: Path, classes: list[str]) -> None:
    x, kind = np.random.default_rng(0).normal(size=3072), np.repeat(classes, 1024)
    pd.DataFrame({"x": x, "kind": kind}).to_csv(tmp_path / "t.csv", index=False)
    model = CastleClassifier(**OPTIONS | {"max_epochs": 1}).fit_file(tmp_path / "t.csv", "kind")
    assert model.classes_.tolist() == ["1", "2", "A"]


def test_errors_name_the_file_and_the_fix(folder: Path, tmp_path: Path) -> None:
    model = NetworkRegressor()

    def raises(message: str, path: Path, target: str = "y", **options: Any) -> None:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            model.fit_file(path, target, **options)

    raises("flats.csv' has no column 'price'; its columns are 'c'", folder / "flats.csv", "price")
    raises("did you mean 'town'", folder / "flats.csv", columns=["twon"])
    raises("columns has the target 'y': drop it", folder / "flats.csv", columns=["a", "y"])
    raises("flat.csv' does not exist; did you mean 'flats.csv'", folder / "flat.csv")
    (tmp_path / "notes.doc").write_text("a,y\n1,2\n")
    raises("suffix '.doc'", tmp_path / "notes.doc")
    raises("without Parquet files", tmp_path)
    (tmp_path / "empty.csv").write_text("")
    raises("is empty", tmp_path / "empty.csv")
    (tmp_path / "bare.csv").write_text("a,y\n")
    raises("bare.csv' has no rows", tmp_path / "bare.csv")
    (tmp_path / "gaps.csv").write_text("a,y\n1,2\n2,\n3,4\n")
    raises("'y' of file .*gaps.csv.* has 1 missing", tmp_path / "gaps.csv")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and nothing more")
    raises("is not a Parquet file", tmp_path / "torn.parquet")
    parts = tmp_path / "parts"
    parts.mkdir()
    pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0]}).to_parquet(parts / "1.parquet")
    pd.DataFrame({"a": ["u", "v"], "y": [1.0, 2.0]}).to_parquet(parts / "2.parquet")
    raises("is not a Parquet file, or its files have different columns .*double", parts)
    raises("has no column 'y'; its columns are 'c,b,a,", folder / "flats.csv", separator=";")
    raises("encoding='utf' applies only to text files", folder / "flats.parquet", encoding="utf")


class _Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path(_Trap.touched),)  # type: ignore[return-value]

    touched = ""


def test_pickled_extension_types_are_not_loaded(tmp_path: Path) -> None:
    _Trap.touched = str(tmp_path / "executed")
    payload = pickle.dumps(_Trap())
    metadata = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": payload}
    schema = pa.schema([pa.field("a", pa.int64(), metadata=metadata), pa.field("y", pa.float64())])
    pq.write_table(pa.table([[1, 2, 3], [1.0, 2.0, 3.0]], schema=schema), tmp_path / "trap.parquet")
    NetworkRegressor(max_epochs=1).fit_file(tmp_path / "trap.parquet", "y")
    assert not (tmp_path / "executed").exists()
    pickle.loads(payload)  # it would have been
    assert (tmp_path / "executed").exists()
