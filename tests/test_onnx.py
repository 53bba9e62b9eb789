"""Exported predictors say what the models say, in onnxruntime."""

from __future__ import annotations

import copy
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from castlereg import CastleRegressor, estimators, onnx_inputs, to_onnx
from castlereg.onnx import _labels as labels_of
from castlereg.table.schema import OTHER
from tests.fitted_models import NAMES, fitted, table

pytestmark = [
    pytest.mark.xdist_group("model files"),
    pytest.mark.filterwarnings("ignore:X has (levels|missing values)"),
]


def run(model: Any, X: Any, folder: Path) -> dict[str, Any]:
    """Export a model, and return all outputs for rows by name."""
    to_onnx(model, folder / "model.onnx")
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, onnx_inputs(model, X)), strict=True))


def expected(model: Any, X: Any) -> dict[str, Any]:
    predicted = model.predict(X)
    if model.n_outputs_ == 1 or not hasattr(model, "predict_proba"):
        said = {"prediction": predicted}
        return {**said, "probabilities": model.predict_proba(X)} if hasattr(model, "predict_proba") else said
    names = [target.name for target in model.model_.targets]
    shares = dict(zip(names, model.predict_proba(X), strict=True))
    classes = {f"prediction_{name}": predicted[:, k] for k, name in enumerate(names)}
    return {**classes, **{f"probabilities_{name}": values for name, values in shares.items()}}


def assert_close(said: dict[str, Any], wanted: dict[str, Any], rtol: float = 1e-12) -> None:
    assert set(said) == set(wanted)
    for name, values in wanted.items():
        assert said[name].shape == values.shape
        if values.dtype.kind == "f":
            np.testing.assert_allclose(said[name], values, rtol=rtol)
        else:
            np.testing.assert_array_equal(said[name], values)


@pytest.mark.parametrize("which", NAMES)
def test_exported_models_say_the_same(which: str, tmp_path: Path) -> None:
    model, X, _, unseen = fitted(which)
    embedded = which not in estimators.__all__  # waves are in float32, by two libraries
    for rows in (X, unseen, X[:1]):
        assert_close(run(model, rows, tmp_path), expected(model, rows), rtol=1e-6 if embedded else 1e-12)


def test_labels_beyond_int64_raise() -> None:
    with pytest.raises(ValueError, match="class 9223372036854775808 does not fit into ONNX's int64"):
        labels_of(np.array([0, 2**63], np.uint64))


def test_labels_keep_their_type(tmp_path: Path) -> None:
    kinds = {"CastleClassifier": "O", "NetworkClassifier": "b", "CastleClassifierCV": "f"}
    for which, kind in kinds.items():
        model, X, _, _ = fitted(which)
        assert run(model, X, tmp_path)["prediction"].dtype.kind == kind
    several = run(fitted("several targets").model, fitted("several targets").X, tmp_path)
    kinds = {name: array.dtype.kind for name, array in several.items() if name.startswith("prediction")}
    assert kinds == {"prediction_dear": "b", "prediction_kind": "i"}


def test_polars_frames_give_the_same_inputs() -> None:
    model = fitted("CastleClassifier").model
    frame = table().astype({"grade": object})
    inputs, others = onnx_inputs(model, frame), onnx_inputs(model, pl.from_pandas(frame))
    assert inputs.keys() == others.keys()
    for name in inputs:
        np.testing.assert_array_equal(inputs[name], others[name])


def test_the_file_tells_what_it_is(tmp_path: Path) -> None:
    model, X, _, _ = fitted("several targets")
    to_onnx(model, tmp_path / "model.onnx")
    made = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(made, full_check=True)
    told = {entry.key: entry.value for entry in made.metadata_props}
    assert json.loads(told["targets"]) == ["dear", "kind"]
    assert told["estimator"] == "CastleClassifier"
    assert json.loads(told["missing_text"]) == {"city": "", "garden": "", "grade": ""}
    text, number = onnx.TensorProto.STRING, onnx.TensorProto.DOUBLE
    inputs = {one.name: one.type.tensor_type.elem_type for one in made.graph.input}
    assert inputs == {name: text if name in ("city", "garden", "grade") else number for name in X.columns}
    to_onnx(model, tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "model.onnx").read_bytes()


def relabelled(which: str, column: str, **changes: Any) -> Any:
    """A copy of a fitted model whose schema says something else of a column, with the same number of levels."""
    model = copy.copy(fitted(which).model)
    old = model.model_.preprocessing
    schema = tuple(replace(one, **changes) if one.name == column else one for one in old.schema)
    preprocessing = replace(old, schema=schema)
    blend = model.model_.blend
    blend = replace(blend, parts=tuple(replace(part, preprocessing=preprocessing) for part in blend.parts))
    model.model_ = replace(model.model_, blend=blend, networks=blend.parts[0])
    return model


def test_rare_levels_that_were_joined(tmp_path: Path) -> None:
    for column, levels in (("city", ("Oslo", "Rome", OTHER)), ("zone", (10.0, 20.0, OTHER))):
        model = relabelled("CastleClassifier", column, levels=levels)
        unseen = fitted("CastleClassifier").unseen
        assert_close(run(model, unseen, tmp_path), expected(model, unseen))


def test_an_empty_text_that_is_a_level_is_not_missing(tmp_path: Path) -> None:
    model = relabelled("CastleClassifier", "city", levels=("", "Oslo", "Rome"))
    rows = fitted("CastleClassifier").unseen.copy()
    rows.loc[4:7, "city"] = ""
    rows["city"] = rows["city"].astype("category")  # in other text it is missing
    inputs = onnx_inputs(model, rows)["city"].ravel()
    assert (inputs[4:8] == "").all()
    assert (inputs[rows["city"].isna()] == "(missing)").all()
    assert_close(run(model, rows, tmp_path), expected(model, rows))


def test_texts_that_stand_for_missing_values_are_missing(tmp_path: Path) -> None:
    model, _, _, unseen = fitted("CastleClassifier")
    rows, missing = unseen.copy(), unseen.copy()
    rows.loc[4:7, "city"] = ["", "?", "NA", " "]
    missing.loc[4:7, "city"] = None
    assert (onnx_inputs(model, rows)["city"][4:8] == "").all()
    assert_close(run(model, rows, tmp_path), expected(model, missing))


def test_dates_are_days_since_1970(tmp_path: Path) -> None:
    model, X, _, _ = fitted("several targets")
    assert model.schema_.loc["since", "note"] == "dates (year, week, day)"
    dates = onnx_inputs(model, X)["since"][:, 0]
    assert dates[0] == (X["since"][0] - pd.Timestamp("1970-01-01")).days
    as_text = X.assign(since=X["since"].dt.strftime("%d.%m.%Y %H:%M"))
    np.testing.assert_array_equal(onnx_inputs(model, as_text)["since"][:, 0], dates)
    assert_close(run(model, as_text, tmp_path), expected(model, X))


def test_unusable_columns_are_inputs_without_effect(tmp_path: Path) -> None:
    model = relabelled("NetworkRegressor", "let", kind="unusable", holds="nothing", constant=True)
    X = fitted("NetworkRegressor").X
    said = run(model, X.assign(let=[f"text {i}" for i in range(len(X))]), tmp_path)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    inputs = {**onnx_inputs(model, X), "let": np.full((len(X), 1), 1e30)}
    np.testing.assert_array_equal(session.run(["prediction"], inputs)[0], said["prediction"])


def test_names_that_collide_are_rejected(tmp_path: Path) -> None:
    for name in ("prediction", "probabilities", ""):
        model = relabelled("CastleClassifier", "area", name=name)
        with pytest.raises(ValueError, match=f"column '{name}' has no name or that of an ONNX output"):
            to_onnx(model, tmp_path / "model.onnx")


def test_columns_named_as_operations_do_not_collide(tmp_path: Path) -> None:
    X = fitted("CastleClassifier").X.rename(columns={"area": "constant_0"})
    renamed = relabelled("CastleClassifier", "area", name="constant_0")
    renamed.feature_names_in_ = np.array(X.columns, object)
    assert_close(run(renamed, X, tmp_path), expected(renamed, X))


def test_what_is_not_a_fitted_model_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="Ridge is not an estimator of castlereg"):
        to_onnx(Ridge(), tmp_path / "model.onnx")
    with pytest.raises(NotFittedError):
        to_onnx(CastleRegressor(), tmp_path / "model.onnx")
    with pytest.raises(FileNotFoundError, match="create the folder"):
        to_onnx(fitted("CastleRegressor").model, tmp_path / "missing" / "model.onnx")
    with pytest.raises(ValueError, match="X has text in column 'area'"):
        onnx_inputs(fitted("CastleClassifier").model, table().assign(area="large"))


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'castlereg\[onnx\]'"):
        to_onnx(fitted("CastleRegressor").model, tmp_path / "model.onnx")
