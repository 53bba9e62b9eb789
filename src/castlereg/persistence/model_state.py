"""What a fitted estimator is made of: its options, its coding, its networks, its graph, its choice among folds.

All that can be derived from these is derived again on reading: the layout, ``schema_``, ``classes_`` and such.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pandas as pd

from castlereg.data.schema import schema_frame
from castlereg.data.targets import ClassTarget, NumericTarget
from castlereg.estimators import (
    CastleClassifier,
    CastleClassifierCV,
    CastleMultiOutput,
    CastleRegressor,
    CastleRegressorCV,
    NetworkClassifier,
    NetworkClassifierCV,
    NetworkMultiOutput,
    NetworkRegressor,
    NetworkRegressorCV,
)
from castlereg.estimators.base import NetworkEstimator
from castlereg.estimators.castle import CastleEstimator
from castlereg.estimators.classification import Classification
from castlereg.estimators.cross_validation import CrossValidation
from castlereg.estimators.fitted_network import FittedNetwork
from castlereg.estimators.regression import Regression
from castlereg.notices import warn_user
from castlereg.persistence.arrays import ArrayReader, ArrayWriter
from castlereg.persistence.coding_state import read_coding, write_coding
from castlereg.persistence.graph_state import read_graph, write_graph
from castlereg.persistence.json_content import Content
from castlereg.persistence.network_state import read_networks, write_networks
from castlereg.persistence.refusal import Unreadable
from castlereg.persistence.values import NoWrittenForm, read_value, write_value

ESTIMATORS: dict[str, type[NetworkEstimator]] = {
    cls.__name__: cls
    for cls in (
        *(CastleRegressor, CastleClassifier, CastleMultiOutput, CastleRegressorCV, CastleClassifierCV),
        *(NetworkRegressor, NetworkClassifier, NetworkMultiOutput, NetworkRegressorCV, NetworkClassifierCV),
    )
}
"""The estimators that have a file, by their names in it."""


def write_model(model: NetworkEstimator, arrays: ArrayWriter) -> dict[str, Any]:
    """Write a fitted estimator.

    Parameters
    ----------
    model : estimator
        Of a class in :data:`ESTIMATORS`.
    arrays : ArrayWriter

    Returns
    -------
    dict
    """
    graph = getattr(model, "graph_", None)
    return {
        "estimator": type(model).__name__,
        "parameters": {
            name: _written_or_none(name, value, arrays) for name, value in model.get_params(deep=False).items()
        },
        "named": hasattr(model, "feature_names_in_"),
        "coding": write_coding(model._coding, arrays),
        "networks": write_networks(model.network_, "networks", arrays),
        "validation_loss": float(model.validation_loss_),
        "history": _write_history(model.history_, arrays),
        "graph": None if graph is None else write_graph(graph, arrays),
        "choice": _write_choice(model, arrays) if isinstance(model, CrossValidation) else None,
    }


def read_model(content: Content, arrays: ArrayReader) -> NetworkEstimator:
    """Undo :func:`write_model`.

    Parameters
    ----------
    content : Content
    arrays : ArrayReader

    Returns
    -------
    estimator
    """
    content.only(
        *("estimator", "parameters", "named", "coding", "networks", "validation_loss", "history", "graph", "choice")
    )
    cls = ESTIMATORS[content.text("estimator", ESTIMATORS)]
    model = cls(**_read_parameters(content.part("parameters"), cls, arrays))
    coding = read_coding(content.part("coding"), arrays)
    _check_targets(cls, coding.targets)
    model._coding = coding
    model.n_features_in_ = len(coding.schema)
    if content.flag("named"):
        model.feature_names_in_ = np.array([column.name for column in coding.schema], object)
    model.schema_ = schema_frame(coding.schema)
    model.n_outputs_ = len(coding.targets)
    if isinstance(model, Classification):
        classes = [target.classes for target in coding.targets if isinstance(target, ClassTarget)]
        model.classes_ = classes[0] if len(classes) == 1 else classes
    model.network_ = read_networks(content.part("networks"), "networks", coding, arrays)
    model.validation_loss_ = content.number("validation_loss")
    model.history_ = _read_history(content, arrays)
    if model.network_.has_all_nodes != (content.any("graph") is not None):
        raise Unreadable("its networks and its graph do not go together")
    if content.any("graph") is not None:
        model.graph_ = read_graph(content.part("graph"), coding.layout.n_nodes, arrays)
    if isinstance(model, CastleEstimator):
        model._keep_acyclicity(coding.layout.n_nodes)
    if isinstance(model, CrossValidation):
        _read_choice(content.part("choice"), model, arrays)
    elif content.any("choice") is not None:
        raise Unreadable(f"a {cls.__name__} chooses nothing among folds")
    arrays.finish()
    return model


# --- options -----------------------------------------------------------------------------------------


def _written_or_none(name: str, value: Any, arrays: ArrayWriter) -> Any:
    """Write an option; those that need pickle are not needed to predict."""
    try:
        return write_value(value, arrays)
    except NoWrittenForm as error:
        warn_user(
            f"{name}={value!r} is not saved: {error}. The loaded model predicts the same and has {name}=None, to be "
            "set again before another fit"
        )
        return None


def _read_parameters(content: Content, cls: type[NetworkEstimator], arrays: ArrayReader) -> dict[str, Any]:
    """Read the options; those that came after the file was written are left at their defaults."""
    return {name: read_value(content.any(name), arrays) for name in content.among(cls._get_param_names())}


def _check_targets(cls: type[NetworkEstimator], targets: tuple[Any, ...]) -> None:
    kind = NumericTarget if issubclass(cls, Regression) else ClassTarget if issubclass(cls, Classification) else object
    if not all(isinstance(target, kind) for target in targets):
        raise Unreadable(f"its targets are not what a {cls.__name__} predicts")


# --- training ----------------------------------------------------------------------------------------


def _write_history(history: pd.DataFrame, arrays: ArrayWriter) -> list[str]:
    for k, name in enumerate(history.columns):
        arrays.add(f"history/{k}", history[name].to_numpy())
    return [str(name) for name in history.columns]


def _read_history(content: Content, arrays: ArrayReader) -> pd.DataFrame:
    names = content.texts("history")
    columns = [arrays.take(f"history/{k}", shape=(None,)) for k in range(len(names))]
    if len({len(column) for column in columns}) > 1 or len(set(names)) != len(names):
        raise Unreadable("the columns of its history do not go together")
    return pd.DataFrame(dict(zip(names, columns, strict=True)))


# --- cross-validation --------------------------------------------------------------------------------


def _write_choice(model: CrossValidation, arrays: ArrayWriter) -> dict[str, Any]:
    fold_networks = None
    if not _same_weights(model._fold_networks, model.network_):
        fold_networks = write_networks(model._fold_networks, "fold_networks", arrays)
    arrays.add("fold_of", model._fold_of)
    return {
        "results": write_value(model.cv_results_, arrays),
        "index": int(model.best_index_),
        "params": write_value(model.best_params_, arrays),
        "score": write_value(model.best_score_, arrays),
        "regularizers": _written_or_none("best_regularizers_", model.best_regularizers_, arrays),
        "folds": write_value(model.folds_, arrays),
        "fold_seeds": write_value(model.fold_seeds_, arrays),
        "fold_networks": fold_networks,
        "left_out": write_value(model._left_out, arrays),
    }


def _same_weights(one: FittedNetwork, other: FittedNetwork) -> bool:
    pairs = zip(jax.tree.leaves(one.parameters), jax.tree.leaves(other.parameters), strict=True)
    scales = zip(jax.tree.leaves(one.standardization), jax.tree.leaves(other.standardization), strict=True)
    return all(np.array_equal(a, b) for a, b in (*pairs, *scales))


def _read_choice(content: Content, model: CrossValidation, arrays: ArrayReader) -> None:
    content.only(
        *("results", "index", "params", "score", "regularizers", "folds", "fold_seeds", "fold_networks", "left_out")
    )
    model._fold_networks = model.network_
    if content.any("fold_networks") is not None:
        model._fold_networks = read_networks(content.part("fold_networks"), "fold_networks", model._coding, arrays)
    model._fold_of = arrays.take("fold_of", np.int64, (model._fold_networks.n_members,))
    model.cv_results_ = _of_type(dict, "results", content, arrays)
    model.best_index_ = content.integer("index")
    model.best_params_ = _of_type(dict, "params", content, arrays)
    model.best_score_ = _of_type(float, "score", content, arrays)
    model.best_regularizers_ = read_value(content.any("regularizers"), arrays)
    model.folds_ = _of_type(list, "folds", content, arrays)
    for fold in model.folds_:
        if type(fold) is not tuple or len(fold) != 2 or not all(_is_vector(part, "i") for part in fold):
            raise Unreadable("its folds are no pairs of rows")
    model.fold_seeds_ = content.integers("fold_seeds")
    if len(model.fold_seeds_) != len(model.folds_):
        raise Unreadable(f"it has {len(model.folds_)} folds and {len(model.fold_seeds_)} seeds of folds")
    model._left_out = _of_type(list, "left_out", content, arrays)
    n_folds = len(np.unique(model._fold_of))
    if len(model._left_out) != n_folds or not all(_is_of_fold(one, model.n_outputs_) for one in model._left_out):
        raise Unreadable("what its folds left out does not fit the folds")


def _of_type(kind: type, name: str, content: Content, arrays: ArrayReader) -> Any:
    value = read_value(content.any(name), arrays)
    if type(value) is not kind:
        raise Unreadable(f"its {name} are a {type(value).__name__} and no {kind.__name__}")
    return value


def _is_vector(value: Any, kind: str) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == kind


def _is_of_fold(value: Any, n_targets: int) -> bool:
    return type(value) is list and len(value) == n_targets and all(_is_vector(one, "f") for one in value)
