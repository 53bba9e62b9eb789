"""Saved and loaded models are the same: predictions bit for bit in another process, and all that was learned."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import safetensors
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

import castlereg
from castlereg import Castle, CastleRegressor, NetworkRegressor, Recipe, estimators
from castlereg.acyclicity import trace_exponential
from castlereg.network import initialize
from castlereg.persistence.container import StoredArrays
from castlereg.persistence.json_content import Unreadable
from castlereg.persistence.model_state import ESTIMATORS
from castlereg.persistence.predictor_state import read_preprocessing, write_preprocessing
from tests.fitted_models import NAMES, fitted

pytestmark = [
    pytest.mark.xdist_group("model files"),
    pytest.mark.filterwarnings("ignore:X has (levels|missing values)"),
]
SOURCES = Path(castlereg.__file__).parents[1]


def said_of(model: Any, X: Any) -> dict[str, Any]:
    """Everything that a model says of rows."""
    methods = ("predict", "predict_proba", "predict_interval", "predict_set")
    return {name: getattr(model, name)(X) for name in methods if hasattr(model, name)}


def assert_same(one: Any, other: Any) -> None:
    """Compare values and types, part by part."""
    assert type(one) is type(other)
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    elif isinstance(one, np.ma.MaskedArray):
        assert_same(np.ma.getmaskarray(one), np.ma.getmaskarray(other))
        assert_same(one.filled(0), other.filled(0))
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
        if one.dtype == object:
            assert list(map(type, one)) == list(map(type, other))
    elif isinstance(one, dict):
        assert list(map(type, one)) == list(map(type, other))
        assert_same(list(one), list(other))
        assert_same(list(one.values()), list(other.values()))
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif dataclasses.is_dataclass(one):
        for field in filter(lambda field: field.compare, dataclasses.fields(one)):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif hasattr(one, "split"):  # a splitter, or text
        assert repr(one) == repr(other)
    else:
        assert one == other or (one != one and other != other)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All models, saved."""
    folder = tmp_path_factory.mktemp("models")
    for name in NAMES:
        castlereg.save(fitted(name).model, folder / f"{name}.castle")
    return folder


@pytest.fixture(scope="module")
def elsewhere(folder: Path) -> dict[str, dict[str, Any]]:
    """What the loaded models say in a fresh process."""
    rows = {name: (fitted(name).X, fitted(name).unseen) for name in NAMES}
    (folder / "rows.pickle").write_bytes(pickle.dumps(rows))
    script = """
import pickle, sys, warnings, castlereg
from pathlib import Path
warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
said = {}
for name, tables in pickle.loads((folder / "rows.pickle").read_bytes()).items():
    model = castlereg.load(folder / f"{name}.castle")
    methods = ("predict", "predict_proba", "predict_interval", "predict_set")
    said[name] = [{one: getattr(model, one)(X) for one in methods if hasattr(model, one)} for X in tables]
(folder / "said.pickle").write_bytes(pickle.dumps(said))
"""
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    subprocess.run([sys.executable, "-c", script, str(folder)], check=True, env=environment)
    said: dict[str, dict[str, Any]] = pickle.loads((folder / "said.pickle").read_bytes())
    return said


@pytest.mark.parametrize("which", NAMES)
def test_a_fresh_process_predicts_the_same_bits(which: str, elsewhere: dict[str, Any]) -> None:
    model, X, _, unseen = fitted(which)
    assert_same(elsewhere[which], [said_of(model, X), said_of(model, unseen)])


@pytest.mark.parametrize("which", NAMES)
def test_all_that_was_learned_comes_back(which: str, folder: Path) -> None:
    model = fitted(which).model
    loaded = castlereg.load(folder / f"{which}.castle")
    assert type(loaded) is type(model)
    assert_same(loaded.get_params(), model.get_params())
    learned, loaded_state = vars(model), vars(loaded)
    assert set(loaded_state) == set(learned)
    for attribute in loaded_state:
        assert_same(loaded_state[attribute], learned[attribute])
    attributes = [name for name in dir(model) if name.endswith("_") and not name.startswith("_")]
    assert {"model_", "history_", "schema_", "validation_loss_", "n_features_in_", "n_outputs_"} <= set(attributes)
    for attribute in attributes:
        assert hasattr(loaded, attribute) == hasattr(model, attribute)
        assert_same(getattr(loaded, attribute, None), getattr(model, attribute, None))
    assert clone(loaded).get_params().keys() == model.get_params().keys()


def test_every_estimator_is_tested() -> None:
    assert set(NAMES) >= set(ESTIMATORS) == set(estimators.__all__)


def test_graphs_have_all_their_parts(folder: Path) -> None:
    graph, loaded = fitted("CastleClassifier").model.graph_, castlereg.load(folder / "CastleClassifier.castle").graph_
    assert loaded.to_json() == graph.to_json()
    assert loaded.sortability == graph.sortability
    assert loaded.threshold == graph.threshold
    assert not hasattr(castlereg.load(folder / "NetworkRegressor.castle"), "graph_")


def test_a_bound_of_a_loaded_model(folder: Path) -> None:
    model, X, y, _ = fitted("CastleRegressor")
    loaded = castlereg.load(folder / "CastleRegressor.castle")
    bounds = [castlereg.paper.generalization_bound(either, X, y) for either in (loaded, model)]
    assert_same(bounds[0].to_frame(), bounds[1].to_frame())


@pytest.mark.parametrize("which", NAMES)
def test_pickle_and_joblib_work_too(which: str) -> None:
    model, _, _, unseen = fitted(which)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    for copied in (pickle.loads(pickle.dumps(model)), joblib.load(file)):
        assert_same(said_of(copied, unseen), said_of(model, unseen))


def test_the_same_model_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    castlereg.save(castlereg.load(folder / "CastleClassifierCV.castle"), tmp_path / "again.castle")
    assert (tmp_path / "again.castle").read_bytes() == (folder / "CastleClassifierCV.castle").read_bytes()


class Halving(castlereg.regularizers.L2):
    """A regularizer of the user's own."""


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("random_state", np.random.RandomState(0)),
        ("random_state", np.random.default_rng(0)),
        ("regularizers", [Halving()]),
        ("categorical_features", pd.Index(["a"])),
        ("castle", Castle(acyclicity=trace_exponential)),
        ("recipe", Recipe(input_init=initialize)),
    ],
)
def test_options_without_a_safe_form_become_none_with_a_warning(option: str, value: Any, tmp_path: Path) -> None:
    model, X, _, _ = fitted("CastleRegressor")
    other = pickle.loads(pickle.dumps(model)).set_params(**{option: value})
    with pytest.warns(UserWarning, match=rf"{option}=.* is not saved.*has {option}=None"):
        castlereg.save(other, tmp_path / "m.castle")
    with pytest.warns(UserWarning, match=f"does not contain the option {option}; set it before you fit again"):
        loaded = castlereg.load(tmp_path / "m.castle")
    assert loaded.get_params()[option] is None
    assert_same(loaded.predict(X), model.predict(X))


def test_nothing_of_an_option_that_is_left_out_is_in_the_file(tmp_path: Path) -> None:
    """Its arrays would belong to no part of the model, and the file could not be loaded."""
    model, X, _, _ = fitted("NetworkClassifierCV")
    other = pickle.loads(pickle.dumps(model)).set_params(cv=[np.arange(3), print])
    with pytest.warns(UserWarning, match="cv=.* is not saved"):
        castlereg.save(other, tmp_path / "m.castle")
    with pytest.warns(UserWarning, match="does not contain the option cv"):
        loaded = castlereg.load(tmp_path / "m.castle")
    assert_same(said_of(loaded, X), said_of(model, X))


def test_chosen_regularizers_without_a_safe_form_become_none(tmp_path: Path) -> None:
    model, X, _, _ = fitted("NetworkRegressorCV")
    other = pickle.loads(pickle.dumps(model))
    other.model_ = dataclasses.replace(
        model.model_, folds=dataclasses.replace(model.model_.folds, regularizers=(Halving(),))
    )
    with pytest.warns(UserWarning, match=r"best_regularizers_=.* is not saved.*has best_regularizers_=None$"):
        castlereg.save(other, tmp_path / "m.castle")
    loaded = castlereg.load(tmp_path / "m.castle")
    assert loaded.best_regularizers_ is None
    assert_same(said_of(loaded, X), said_of(model, X))


def test_save_rejects_anything_but_fitted_models(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError, match="this CastleRegressor is not fitted; call fit before save"):
        castlereg.save(CastleRegressor(), tmp_path / "m.castle")

    class Own(NetworkRegressor):
        pass

    Own.__name__ = "NetworkRegressor"
    for other in (Ridge(), None, Own(), fitted("CastleRegressor").model.graph_):
        with pytest.raises(TypeError, match=r"a \w+ cannot be saved; pass one of .*CastleRegressor"):
            castlereg.save(other, tmp_path / "m.castle")
    assert not list(tmp_path.iterdir())


def test_save_rejects_paths_that_cannot_be_written(tmp_path: Path) -> None:
    model = fitted("CastleRegressor").model
    with pytest.raises(FileNotFoundError, match=r"create the folder .*missing first"):
        castlereg.save(model, tmp_path / "missing" / "m.castle")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        castlereg.save(model, tmp_path)


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.castle"
    path.write_bytes(b"old")

    def full_disk(descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space left"):
        castlereg.save(fitted("CastleRegressor").model, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    castlereg.save(fitted("CastleRegressor").model, tmp_path / "m.castle")
    usual, ours = (stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("usual", "m.castle"))
    assert ours == usual


def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path) -> None:
    model = pickle.loads(pickle.dumps(fitted("CastleRegressor").model))
    model.model_.networks.parameters.input_weights[0, 0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="input_weights are not finite"):
        castlereg.save(model, tmp_path / "m.castle")


def test_texts_of_any_kind_come_back(tmp_path: Path) -> None:
    """Names that JSON must escape, and classes of texts as objects."""
    model = pickle.loads(pickle.dumps(fitted("CastleClassifier").model))
    odd = ['a "quoted" \\ name', "\ud800 half a pair", "日本 \u2028\x00"]
    object.__setattr__(model.model_.targets[0], "classes", np.array(sorted(odd), object))
    castlereg.save(model, tmp_path / "m.castle")
    loaded = castlereg.load(tmp_path / "m.castle")
    assert_same(loaded.classes_, np.array(sorted(odd), object))


def test_other_programs_can_open_the_file(folder: Path) -> None:
    with safetensors.safe_open(folder / "CastleClassifier.castle", framework="np") as file:
        metadata, weights = file.metadata(), file.get_tensor("networks/input_weights")
    assert (metadata["format"], metadata["version"]) == ("castlereg model", "2")
    assert metadata["castlereg"] == castlereg.__version__
    assert json.loads(metadata["model"])["estimator"] == "CastleClassifier"
    assert_same(weights, np.asarray(fitted("CastleClassifier").model.model_.networks.parameters.input_weights))


def test_seasons_of_a_column_that_does_not_hold_dates_are_rejected() -> None:
    arrays: dict[str, Any] = {}
    stored = json.loads(json.dumps(write_preprocessing(fitted("CastleClassifier").model.model_.preprocessing, arrays)))
    stored["columns"][0]["seasons"] = ["year", "week"]
    with pytest.raises(Unreadable, match="has seasons, but does not contain dates"):
        read_preprocessing(stored, StoredArrays(arrays))
