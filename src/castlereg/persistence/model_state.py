"""A fitted estimator taken apart and put together: the only file here that knows estimators.

All that can be derived from the parts is derived again on reading: the layout, ``schema_``, ``classes_`` and such.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from castlereg import estimators
from castlereg.data.rows import Coding
from castlereg.data.schema import schema_frame
from castlereg.data.targets import ClassTarget, NumericTarget
from castlereg.estimators.base import NetworkEstimator
from castlereg.estimators.castle import CastleEstimator
from castlereg.estimators.classification import Classification
from castlereg.estimators.cross_validation import CrossValidation
from castlereg.estimators.regression import Regression
from castlereg.persistence.container import Arrays, StoredArrays
from castlereg.persistence.errors import Unreadable
from castlereg.persistence.fold_state import FoldState, read_folds, write_folds
from castlereg.persistence.graph_state import read_graph, write_graph
from castlereg.persistence.json_content import fields
from castlereg.persistence.network_state import read_networks, write_networks
from castlereg.persistence.preprocessing_state import read_preprocessing, write_preprocessing
from castlereg.persistence.values import read_value, write_option, write_value

ESTIMATORS: dict[str, type[NetworkEstimator]] = {name: getattr(estimators, name) for name in estimators.__all__}
"""The estimators that can be saved, by their names in a file."""

_FIELDS: dict[str, Any] = {
    **{"estimator": str, "parameters": dict, "named": bool, "preprocessing": dict, "networks": dict},
    **{"validation_loss": float, "history": dict, "graph": dict | None, "choice": dict | None},
}
_FOLD_ATTRIBUTES = {
    **{"results": "cv_results_", "index": "best_index_", "params": "best_params_", "score": "best_score_"},
    **{"folds": "folds_", "seeds": "fold_seeds_", "scores": "_left_out", "regularizers": "best_regularizers_"},
    **{"networks": "_fold_networks", "fold_of": "_fold_of"},
}


def write_model(model: Any, arrays: Arrays) -> dict[str, Any]:
    """Return a fitted estimator as JSON and arrays."""
    if type(model) is not ESTIMATORS.get(type(model).__name__):
        raise TypeError(f"a {type(model).__name__} cannot be saved; pass one of {', '.join(ESTIMATORS)}")
    check_is_fitted(model, msg="this %(name)s is not fitted: call fit before save")
    graph = getattr(model, "graph_", None)
    return {
        "estimator": type(model).__name__,
        "parameters": {name: write_option(name, value, arrays) for name, value in model.get_params(deep=False).items()},
        "named": hasattr(model, "feature_names_in_"),
        "preprocessing": write_preprocessing(model._coding, arrays),
        "networks": write_networks(model.network_, "networks", arrays),
        "validation_loss": float(model.validation_loss_),
        "history": write_value({name: model.history_[name].to_numpy() for name in model.history_}, arrays),
        "graph": None if graph is None else write_graph(graph, arrays),
        "choice": write_folds(_folds_of(model), model.network_, arrays) if isinstance(model, CrossValidation) else None,
    }


def read_model(content: Any, arrays: StoredArrays) -> NetworkEstimator:
    """Undo :func:`write_model`."""
    stored = fields(content, "its model", **_FIELDS)
    if stored.estimator not in ESTIMATORS:
        raise Unreadable(f"its estimator is {stored.estimator!r}, which castlereg does not know")
    model = _new_model(ESTIMATORS[stored.estimator], stored.parameters, arrays)
    coding = read_preprocessing(stored.preprocessing, arrays)
    _set_preprocessing(model, coding, stored.named)
    model.network_ = read_networks(stored.networks, "networks", coding, arrays)
    model.validation_loss_ = stored.validation_loss
    model.history_ = pd.DataFrame(read_value(stored.history, arrays))
    if model.network_.has_all_nodes != (stored.graph is not None):
        raise Unreadable("its graph does not belong to its networks")
    if stored.graph is not None:
        model.graph_ = read_graph(stored.graph, coding.layout.n_nodes, arrays)
    if isinstance(model, CastleEstimator):
        model._keep_acyclicity(coding.layout.n_nodes)
    if isinstance(model, CrossValidation) != (stored.choice is not None):
        raise Unreadable(f"its choice among folds does not belong to a {stored.estimator}")
    if isinstance(model, CrossValidation):
        _set_folds(model, read_folds(stored.choice, model.network_, coding, arrays))
    arrays.finish()
    return model


def _new_model(cls: type[NetworkEstimator], parameters: dict[str, Any], arrays: StoredArrays) -> NetworkEstimator:
    """Make an estimator; options that came after the file was written are left at their defaults."""
    for name in parameters.keys() - set(cls._get_param_names()):
        raise Unreadable(f"a {cls.__name__} has no option {name!r}")
    return cls(**{name: read_value(content, arrays) for name, content in parameters.items()})


def _set_preprocessing(model: NetworkEstimator, coding: Coding, named: bool) -> None:
    """Set what a fit learns of the table."""
    for task, kind in ((Regression, NumericTarget), (Classification, ClassTarget)):
        if isinstance(model, task) and not all(isinstance(target, kind) for target in coding.targets):
            raise Unreadable(f"its targets are not what a {type(model).__name__} predicts")
    schema = coding.encoder.schema
    model._coding = coding
    model.schema_ = schema_frame(schema)
    model.n_features_in_ = len(schema)
    if named:
        model.feature_names_in_ = np.array([column.name for column in schema], object)
    model.n_outputs_ = len(coding.targets)
    if isinstance(model, Classification):
        classes = [target.classes for target in coding.targets if isinstance(target, ClassTarget)]
        model.classes_ = classes[0] if len(classes) == 1 else classes


def _folds_of(model: CrossValidation) -> FoldState:
    return FoldState(**{name: getattr(model, attribute) for name, attribute in _FOLD_ATTRIBUTES.items()})


def _set_folds(model: CrossValidation, state: FoldState) -> None:
    for name, attribute in _FOLD_ATTRIBUTES.items():
        setattr(model, attribute, getattr(state, name))
