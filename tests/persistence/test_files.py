"""Saved and loaded models are the same: predictions bit for bit in another process, and all that was learned."""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import math
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import joblib
import numpy as np
import pandas as pd
import pytest
import safetensors
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

import castlereg
from castlereg import (
    Castle,
    CastleRegressor,
    CausalGraph,
    EdgeConstraints,
    NetworkRegressor,
    Recipe,
    estimators,
    persistence,
)
from castlereg.acyclicity import trace_exponential
from castlereg.layout import EdgeRules
from castlereg.network import initialize
from castlereg.persistence import _CLASSES, _Reader, _Writer
from castlereg.regularizers import (
    L1,
    L2,
    Autoencoder,
    BatchNorm,
    Corruption,
    DeepLasso,
    Dropout,
    InputNoise,
    MixUp,
    Tangos,
)
from castlereg.search import model as fitted_model
from castlereg.target_losses import Huber, Poisson, Quantiles
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
    assert set(NAMES) >= set(_CLASSES["castlereg.estimators"].split()) == set(estimators.__all__)


def test_files_keep_some_rows_unless_they_must_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, _, _ = fitted("CastleClassifier")
    model = copy.copy(model)
    model.model_ = dataclasses.replace(model.model_)  # without the graph, if it was already discovered
    monkeypatch.setattr(fitted_model, "_MOST_SAVED_ROWS", 30)
    castlereg.save(model, tmp_path / "rows.castle")
    castlereg.save(model, tmp_path / "none.castle", rows=False)
    some, none = castlereg.load(tmp_path / "rows.castle"), castlereg.load(tmp_path / "none.castle")
    assert some.model_.known_graph is None and none.model_.rows is None
    kept = some.model_.rows.columns.cells
    assert len(kept) == 30
    assert_same(kept[[0, -1]], model.model_.rows.columns.cells[[0, -1]])
    for loaded in (some, none):
        assert_same(loaded.predict(X), model.predict(X))
        for attribute in ("graph_", "input_graph_", "feature_importances_"):
            assert_same(getattr(loaded, attribute), getattr(model, attribute))
    with pytest.raises(ValueError, match="saved without rows: pass X and y"):
        none.structural_model()


def test_rows_that_are_a_view_of_a_larger_table_are_saved_alone(tmp_path: Path) -> None:
    model = copy.copy(fitted("CastleRegressor").model)
    model.model_ = dataclasses.replace(model.model_, rows=model.model_.rows.take(np.array([5, 2, 9])))
    castlereg.save(model, tmp_path / "m.castle")
    for copied in (castlereg.load(tmp_path / "m.castle"), pickle.loads(pickle.dumps(model))):
        assert_same(copied.model_.rows.columns.values, model.model_.rows.columns.cells)
        assert copied.model_.rows.columns.rows is None


def test_a_structural_model_of_a_file_is_the_same(folder: Path) -> None:
    model, loaded = fitted("CastleClassifier").model, castlereg.load(folder / "CastleClassifier.castle")
    worlds = [each.structural_model(n_draws=2) for each in (model, loaded)]
    assert_same(worlds[1].to_frame(), worlds[0].to_frame())


@pytest.mark.parametrize("which", NAMES)
def test_pickles_hold_what_files_hold(which: str, folder: Path) -> None:
    model, _, _, unseen = fitted(which)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    castlereg.save(model, folder / "now.castle")  # the graph may have been discovered since
    loaded = castlereg.load(folder / "now.castle")
    for copied in (pickle.loads(pickle.dumps(model)), joblib.load(file)):
        assert_same(said_of(copied, unseen), said_of(model, unseen))
        for field in dataclasses.fields(loaded.model_):
            assert_same(getattr(copied.model_, field.name), getattr(loaded.model_, field.name))


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
    model, X, _, _ = fitted("CastleClassifierCV")
    other = pickle.loads(pickle.dumps(model)).set_params(cv=[np.arange(3), print])
    with pytest.warns(UserWarning, match="cv=.* is not saved"):
        castlereg.save(other, tmp_path / "m.castle")
    with pytest.warns(UserWarning, match="does not contain the option cv"):
        loaded = castlereg.load(tmp_path / "m.castle")
    assert_same(said_of(loaded, X), said_of(model, X))


def test_a_chosen_candidate_without_a_safe_form_becomes_none(tmp_path: Path) -> None:
    model, X, _, _ = fitted("CastleRegressorCV")
    other, folds = pickle.loads(pickle.dumps(model)), model.model_.folds
    other.model_ = dataclasses.replace(model.model_, folds=dataclasses.replace(folds, regularizers=(Halving(),)))
    with pytest.warns(UserWarning, match=r"regularizers=.*Halving.* is not saved.*has regularizers=None;"):
        castlereg.save(other, tmp_path / "m.castle")
    loaded = castlereg.load(tmp_path / "m.castle")
    assert loaded.model_.folds.regularizers is None
    assert_same(said_of(loaded, X), said_of(model, X))


def test_functions_within_a_model_raise(tmp_path: Path) -> None:
    model = pickle.loads(pickle.dumps(fitted("CastleRegressorCV").model))
    model.model_.folds.results["params"] = [Castle(acyclicity=trace_exponential)]
    with pytest.raises(ValueError, match=r"cannot be saved: \w+ objects can only be pickled .*/acyclicity"):
        castlereg.save(model, tmp_path / "m.castle")


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
    with pytest.raises(ValueError, match="input_weights is an array of float32, which is not finite"):
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
        metadata = json.loads(file.metadata()["castlereg"])
        weights = file.get_tensor("model/blend/parts/0/parameters/input_weights")
    assert (metadata["format"], metadata["class"]) == (3, "CastleClassifier")
    assert metadata["castlereg"] == castlereg.__version__
    assert_same(weights, np.asarray(fitted("CastleClassifier").model.model_.networks.parameters.input_weights))


# --- values ----------------------------------------------------------------------------------------


def test_every_annotation_is_understood() -> None:
    """A kind of annotation that nothing fits would make a class impossible to save."""
    known = (bool, int, float, str, type(None))
    for name, cls in persistence._classes().items():
        for kind in persistence._hints(cls).values():
            options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
            assert all(isinstance(part, type) or get_origin(part) or part in (*known, Any) for part in options), name


def round_trip(value: Any) -> Any:
    writer = _Writer()
    content = json.loads(json.dumps(writer.write(value, "options/value"), allow_nan=False))
    reader = _Reader(writer.arrays)
    read = reader.read(content, "options/value")
    assert not reader.arrays
    return read


DTYPES = [np.dtype(code) for code in sorted(persistence._DTYPES)]
VALUES = [
    *(None, True, 0, -(10**30), 0.1 + 0.2, 5e-324, -0.0, math.nan, math.inf, -math.inf, "", "\udc80\x00é"),
    *([1, [2.5, ("x",)]], (), {1: "int", 1.5: "float", "1": "text", (0, "a"): None, True + 1: []}),
    *(dtype.type(1) for dtype in DTYPES),
    *(np.float32("nan"), np.float64(np.inf), np.int64(-(2**63)), np.uint64(2**64 - 1)),
    *(np.array([[1, 0], [0, 1]], dtype) for dtype in DTYPES),
    *(np.array(3.5), np.empty((0, 4)), np.array([np.nan, -np.inf]), np.arange(6).reshape(2, 3).T),
    *(np.array(["b", "long \u2028 text"]), np.array(["a"], "U9"), np.array(["x", 1, 1.5, None, [2]], object)),
    *(np.array([], "U7"), np.array([], object), np.ma.masked_invalid([1.0, np.nan])),
    *(pd.DataFrame({"a": [1, 2], "b": [np.nan, 0.5]}), pd.Timestamp("2020-01-01 12:00"), pd.Timedelta("1 days 2h")),
    *(L1(0.5), L2(0), Dropout(0.25), Autoencoder(2), BatchNorm(0.5), Corruption(0.2), InputNoise(0.01), MixUp(0.7)),
    *(DeepLasso(0.3), Tangos(0.5, 0.2, pairs=7), Castle(0.1, 2, acyclicity=None, capacity=True, features_per_step=3)),
    *(Castle(acyclicity="auto", sparsity="group"), Castle(reconstruction=False, sparsity=None)),
    *(Huber(0.5), Poisson(), Quantiles((0.2, 0.7))),
    *(Recipe(), Recipe("robust", "glorot", 0.25, warmup=3, batches="independent")),
    EdgeConstraints([("a", "b")], [("b", "a")], [["a"], ["b", "c"]], ["c"], ["a"]),
    EdgeConstraints(beliefs=[("a", "b", 0.3), ("a", "c", 0.8, "a paper")]),
    *(KFold(4), StratifiedKFold(3, shuffle=True, random_state=7), GroupKFold(2), StratifiedGroupKFold(2)),
    *(ShuffleSplit(2, test_size=0.3), StratifiedShuffleSplit(3, train_size=9), GroupShuffleSplit(2)),
    *(TimeSeriesSplit(3, gap=1), PredefinedSplit([0, 1, -1]), LeaveOneOut(), LeaveOneGroupOut()),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}-{str(value)[:20]!r}")
def test_values_come_back_as_they_were(value: Any) -> None:
    read = round_trip(value)
    assert_same(read, value)
    if isinstance(value, float):
        assert math.copysign(1, read) == math.copysign(1, value)


def test_every_option_class_is_among_these_values() -> None:
    names = " ".join(_CLASSES[module] for module in ("castlereg.regularizers", "sklearn.model_selection")).split()
    assert {*names, "Recipe", "EdgeConstraints"} <= {type(value).__name__ for value in VALUES}
    assert {*castlereg.regularizers.__all__} - {"Own", "Regularizer"} <= {*names}


def test_an_object_that_appears_twice_is_one_object() -> None:
    array, recipe = np.arange(3), Recipe()
    read = round_trip([array, recipe, recipe, array, np.arange(3)])
    assert read[0] is read[3] and read[1] is read[2] and read[4] is not read[0]


def test_options_that_came_after_a_file_are_at_their_defaults() -> None:
    content = {"kind": "Castle", "value": {"reg_beta": 0.5}}
    assert _Reader({}).read(content, "castle") == Castle(0.5)
    with pytest.raises(persistence._Invalid, match="missing or unknown fields"):
        _Reader({}).read(content, "model/castle")


def test_a_model_of_an_earlier_version_has_no_evidence() -> None:
    graph = CausalGraph.from_weights(np.triu(np.ones((2, 2)), 1), ["a", "b"], target="b")
    writer = _Writer()
    content = writer.write([graph, EdgeRules(graph.edge_array, graph.edge_array)], "model/parts")
    for name in ("hidden_array", "independences_array", "shapes_array", "prior_array"):
        del writer.arrays[content[0]["value"].pop(name)["value"]]
    del content[1]["value"]["prior"]
    read, rules = _Reader(writer.arrays).read(content, "model/parts")
    assert np.isnan(read.hidden_array).all() and rules.prior is None
    del content[0]["value"]["direction_array"]
    with pytest.raises(persistence._Invalid, match="missing or unknown fields"):
        _Reader({}).read(content[0], "model/parts")


def circle() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    "value",
    [
        *(lambda: 0, print, object(), L2, {1, 2}, b"bytes", range(3), 1j, RepeatedKFold(), iter([]), circle()),
        *(KFold(2, shuffle=True, random_state=np.random.RandomState(0)), np.array([print]), np.array(["x"], "T")),
        *(Castle(acyclicity=trace_exponential), Recipe(input_init=print), Halving(), CastleRegressor()),
        *(np.array([["a"]]), np.array("a"), np.str_("a"), np.datetime64("2020-01-01"), np.array([1j]), [print]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_need_pickle_have_no_form(value: Any) -> None:
    with pytest.raises(persistence._Invalid):
        _Writer().write(value, "options/value")


EVIL: list[Any] = [
    {"kind": "os.system", "value": ["true"]},
    {"kind": "KFold", "value": {"n_splits": 2, "shuffle": False, "random_state": None, "__class__": "x"}},
    {"kind": "KFold", "value": {"n_splits": "two", "shuffle": False, "random_state": None}},
    {"kind": "PredefinedSplit", "value": {"test_fold": [[], []]}},
    {"kind": "PredefinedSplit", "value": {}},
    {"kind": "L2", "value": {"strength": "much"}},
    {"kind": "L2", "value": {"strength": {"kind": "float", "value": "nan"}}},
    {"kind": "L2", "value": {"strength": 0.1, "evil": 1}},
    {"kind": "EdgeConstraints", "value": dict.fromkeys(("required", "forbidden", "tiers", "sinks", "sources"), 3)},
    {"kind": "Castle", "value": {"acyclicity": "builtins.eval"}},
    {"kind": "Castle", "value": {"acyclicity": {"kind": "Castle", "value": {}}}},
    {"kind": "Castle", "value": {"reconstruct": 3}},
    {"kind": "ReleasedCastle", "value": {}},
    {"kind": "CastleRegressor", "value": {}},
    {"kind": "Recipe", "value": {"input_init": "castlereg.network.initialize"}},
    {"kind": "Recipe", "value": {"input_init": {"kind": "array", "value": "missing"}}},
    {"kind": "Recipe", "value": {"warmup": -1}},
    {"kind": "Quantiles", "value": {"levels": {"kind": "tuple", "value": ["a"]}}},
    {"kind": "tuple", "value": 3},
    {"kind": "dict", "value": [[1, 2, 3]]},
    {"kind": "dict", "value": [[[], 1]]},
    {"kind": "number", "value": "missing"},
    {"kind": "array", "value": ["missing"]},
    {"kind": "masked", "value": []},
    {"kind": "texts", "value": ["a"]},
    {"kind": "objects", "value": 7},
    {"kind": "frame", "value": 7},
    {"kind": "time", "value": "never"},
    {"kind": "same", "value": 0},
    {"kind": ["tuple"], "value": []},
    {"kind": "tuple", "value": [], "more": 1},
    {"kind": "lost", "value": None},
    {"tuple": []},
    {},
    1e999,
]


@pytest.mark.parametrize("content", EVIL, ids=lambda content: str(content)[:40])
def test_content_of_no_known_kind_is_rejected(content: Any) -> None:
    with pytest.raises((persistence._Invalid, TypeError, ValueError, LookupError, AttributeError)):
        _Reader({}).read(content, "options/value")


def test_texts_of_characters_that_do_not_exist_are_rejected() -> None:
    codes = np.array([[2**32 - 1]], np.uint32)
    content = {"kind": "texts", "value": {"kind": "array", "value": "a"}}
    with pytest.raises(ValueError, match="characters that do not exist"):
        _Reader({"a": codes}).read(content, "options/value")
