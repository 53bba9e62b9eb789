"""Fitting from files: the schema of the frame, the quality of a fit from memory, and errors that name the file."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import castlereg.search.file_data as file_data
from castlereg import CastleClassifier, CastleRegressor, EdgeConstraints, NetworkRegressor
from castlereg.training.file_source import FileSource
from castlereg.training.stack import Stack

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

OPTIONS = {"max_epochs": 12, "hidden_layer_sizes": (8,), "random_state": 0}
N = 3000


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
        patch.setattr(file_data, "_READ_ROWS", 1024)
        yield


@pytest.fixture(scope="module")
def models(table: pd.DataFrame, folder: Path) -> dict[str, CastleRegressor]:
    """One from memory, and one from each kind of file."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*read as numbers")
        frame = pd.read_csv(folder / "flats.csv")
        fitted = {"memory": CastleRegressor(**OPTIONS).fit(frame.drop(columns="y"), frame["y"])}
        for name in ("flats.csv", "flats.parquet", "parts"):
            fitted[name] = CastleRegressor(**OPTIONS).fit_file(folder / name, "y", chunk_rows=1024)
    return fitted


@pytest.mark.parametrize("name", ["flats.csv", "flats.parquet", "parts"])
def test_a_file_has_the_schema_of_its_frame(models: dict[str, CastleRegressor], name: str) -> None:
    pd.testing.assert_frame_equal(models[name].schema_, models["memory"].schema_)
    assert "Kyoto" in models[name].schema_.loc["town", "levels"]
    assert list(models[name].feature_names_in_) == list(models["memory"].feature_names_in_)
    assert models[name].n_features_in_ == 7


def test_scales_are_those_of_the_frame(models: dict[str, CastleRegressor]) -> None:
    by_name = [
        {p.schema[j].name: (p.center[k], p.spread[k]) for k, j in enumerate(p.order)}
        for p in (models[name].model_.preprocessing for name in ("memory", "flats.csv"))
    ]
    assert by_name[0].keys() == by_name[1].keys()
    for name, scale in by_name[0].items():
        np.testing.assert_allclose(by_name[1][name], scale, rtol=1e-9)


def test_all_formats_give_the_same_model_as_good_as_from_memory(
    models: dict[str, CastleRegressor], table: pd.DataFrame
) -> None:
    X = table.drop(columns="y")
    predicted = [models[name].predict(X) for name in ("flats.csv", "flats.parquet", "parts")]
    # Scales are summed piece by piece, and text has its own last digit.
    np.testing.assert_allclose(predicted[1], predicted[2], atol=0.05)
    np.testing.assert_allclose(predicted[0], predicted[1], atol=0.05)
    ours, theirs = models["flats.parquet"].score(X, table["y"]), models["memory"].score(X, table["y"])
    assert ours > 0.9 and abs(ours - theirs) < 0.02
    history = models["flats.parquet"].history_
    assert list(history.columns) == list(models["memory"].history_.columns) and len(history) == 12
    strongest = [set(map(frozenset, m.graph_.edges()[["cause", "effect"]].to_numpy()[:2])) for m in models.values()]
    assert strongest[0] == strongest[2]


def test_same_seed_same_model(models: dict[str, CastleRegressor], folder: Path, table: pd.DataFrame) -> None:
    with pytest.warns(UserWarning, match="read as numbers"):
        again = CastleRegressor(**OPTIONS).fit_file(folder / "flats.parquet", "y", chunk_rows=1024)
    X = table.drop(columns="y")[:50]
    np.testing.assert_array_equal(again.predict(X), models["flats.parquet"].predict(X))


def test_strengths_are_measured_on_validation_rows(folder: Path, table: pd.DataFrame) -> None:
    model = CastleRegressor(0.03, objective="graph", **OPTIONS)
    with pytest.warns(UserWarning, match="read as numbers"):
        graph = model.fit_file(folder / "flats.parquet", "y", chunk_rows=1024).graph_
    assert graph.is_dag and graph.dropped_weight == 0
    joined = graph.learned_weights + graph.learned_weights.T
    assert (joined <= 1).all(axis=None)
    assert joined["y"].idxmax() == "a"  # which explains two thirds of it
    assert joined.loc["y", "a"] > 0.7


def test_classes_with_weights_a_validation_file_and_several_members(folder: Path, table: pd.DataFrame) -> None:
    rows = table[["a", "b", "c", "y"]].assign(high=np.where(table["y"] > table["y"].quantile(0.8), "yes", "no"))
    rows.to_parquet(folder / "train.parquet")
    rows[:500].to_csv(folder / "stop.csv", index=False)
    model = CastleClassifier(
        max_epochs=3,
        hidden_layer_sizes=(8,),
        n_members=2,
        class_weight="balanced",
        constraints=EdgeConstraints(forbidden=[("c", "high")]),
        random_state=0,
    )
    model.fit_file(folder / "train.parquet", "high", validation=folder / "stop.csv", columns=["a", "b", "c"])
    assert model.graph_.weights.loc["c", "high"] == 0 and model.graph_.weights.loc["a", "high"] > 0
    assert list(model.classes_) == ["no", "yes"] and model.history_["member"].nunique() == 2
    assert model.score(rows[["a", "b", "c"]], rows["high"]) > 0.85


def test_ctrl_c_leaves_the_best_model_so_far(
    folder: Path, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_runner = FileSource.runner

    def runner(self: FileSource, stack: Stack) -> Any:
        made = make_runner(self, stack)
        run = made.run

        def twice(*arguments: Any) -> Any:
            if stack.epoch.max() == 2:
                raise KeyboardInterrupt
            return run(*arguments)

        made.run = twice  # type: ignore[method-assign]
        return made

    monkeypatch.setattr(FileSource, "runner", runner)
    model = CastleRegressor(**OPTIONS)
    with pytest.warns(UserWarning) as caught:
        model.fit_file(folder / "flats.parquet", "y", chunk_rows=1024, on_interrupt="keep")
    assert any("interrupted after 2 of at most 12" in str(w.message) for w in caught)
    assert len(model.history_) == 2
    kept = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit_file(folder / "flats.csv", "y", columns=["a"], chunk_rows=1024)
    assert vars(model) == kept


def test_errors_name_the_file_and_the_fix(folder: Path, tmp_path: Path) -> None:
    model = NetworkRegressor()

    def raises(message: str, path: Path, target: str = "y", **options: object) -> None:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            model.fit_file(path, target, **options)

    raises("flats.csv' has no column 'price'; its columns are 'c'", folder / "flats.csv", "price")
    raises("did you mean 'town'", folder / "flats.csv", columns=["twon"])
    raises("flat.csv' does not exist; did you mean 'flats.csv'", folder / "flat.csv")
    (tmp_path / "notes.doc").write_text("a,y\n1,2\n")
    raises("suffix '.doc'", tmp_path / "notes.doc")
    raises("has no Parquet files", tmp_path)
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
    raises("column 'a' differs between files, numbers in .*1.parquet' and text in .*2.parquet'", parts)
    raises("separator=';' is not in line 1", folder / "flats.csv", separator=";")
    raises("decimal=',' is not the decimal mark", folder / "flats.csv", decimal=",")
    raises("encoding='utf' applies only to text files", folder / "flats.parquet", encoding="utf")
    raises("chunk_rows=10 ", folder / "flats.csv", chunk_rows=10)
    with pytest.raises(ValueError, match="bootstrap=True"):
        NetworkRegressor(bootstrap=True).fit_file(folder / "flats.csv", "y")


class _Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path(_Trap.touched),)  # type: ignore[return-value]

    touched = ""


def test_pickled_extension_types_raise_and_are_not_loaded(tmp_path: Path) -> None:
    _Trap.touched = str(tmp_path / "executed")
    payload = pickle.dumps(_Trap())
    metadata = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": payload}
    schema = pa.schema([pa.field("a", pa.int64(), metadata=metadata), pa.field("y", pa.float64())])
    pq.write_table(pa.table([[1, 2, 3], [1.0, 2.0, 3.0]], schema=schema), tmp_path / "trap.parquet")
    with pytest.raises(ValueError, match=r"extension type 'arrow\.py_extension_type'"):
        NetworkRegressor().fit_file(tmp_path / "trap.parquet", "y")
    assert not (tmp_path / "executed").exists()
    pickle.loads(payload)  # it would have been
    assert (tmp_path / "executed").exists()
