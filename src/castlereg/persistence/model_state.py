"""Convert a fitted estimator, its options and its :class:`castlereg.fitted.FittedModel`, to JSON and arrays and back.

Attributes that follow from others, such as the layout, ``schema_`` and ``classes_``, are derived again on reading.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from castlereg import estimators
from castlereg.estimators.base import NetworkEstimator
from castlereg.estimators.cross_validation import CrossValidated
from castlereg.fitted import FittedModel
from castlereg.notices import warn_user
from castlereg.persistence import predictor_state, result_state
from castlereg.persistence.container import Arrays, StoredArrays
from castlereg.persistence.json_content import Unreadable, checked, fields
from castlereg.persistence.values import LOST, read_value, write_option, write_value

ESTIMATORS: dict[str, type[NetworkEstimator]] = {name: getattr(estimators, name) for name in estimators.__all__}
"""The estimators that can be saved, by their names in a file."""

_FIELDS: dict[str, Any] = {
    **{"estimator": str, "parameters": dict, "named": bool, "preprocessing": dict, "networks": dict},
    **{"validation_loss": float | None, "history": dict, "graph": dict | None, "cross_validation": dict | None},
    **{"blend": dict | None, "selected": list[int] | None, "importances": bool, "engine": str},
}
_ENGINES = {"jax", "native", "torch"}


def write_model(model: Any, arrays: Arrays) -> dict[str, Any]:
    """Return a fitted estimator as JSON and arrays."""
    if type(model) is not ESTIMATORS.get(type(model).__name__):
        raise TypeError(f"a {type(model).__name__} cannot be saved; pass one of {', '.join(ESTIMATORS)}")
    check_is_fitted(model, msg="this %(name)s is not fitted; call fit before save")
    fitted: FittedModel = model.model_
    if fitted.importances is not None:
        arrays["importances"] = fitted.importances
    return {
        "estimator": type(model).__name__,
        "parameters": {name: write_option(name, value, arrays) for name, value in model.get_params(deep=False).items()},
        "named": hasattr(model, "feature_names_in_"),
        "preprocessing": predictor_state.write_preprocessing(fitted.preprocessing, arrays),
        "networks": predictor_state.write_networks(fitted.networks, arrays),
        "validation_loss": None if np.isnan(fitted.validation_loss) else fitted.validation_loss,
        "history": write_value({name: fitted.history[name].to_numpy() for name in fitted.history}, arrays),
        "graph": None if fitted.graph is None else result_state.write_graph(fitted.graph, arrays),
        "cross_validation": None if fitted.folds is None else result_state.write_folds(fitted.folds, arrays),
        "blend": None if fitted.blend is None else predictor_state.write_blend(fitted.blend, arrays),
        "selected": None if fitted.selected is None else list(fitted.selected),
        "importances": fitted.importances is not None,
        "engine": fitted.engine,
    }


def read_model(content: Any, arrays: StoredArrays) -> NetworkEstimator:
    """Undo :func:`write_model`."""
    stored = fields({"engine": "jax", **checked(content, dict, "its model")}, "its model", **_FIELDS)
    if stored.estimator not in ESTIMATORS:
        raise Unreadable(f"its estimator {stored.estimator!r} is unknown")
    cls = ESTIMATORS[stored.estimator]
    for name in stored.parameters.keys() - cls().get_params(deep=False).keys():
        raise Unreadable(f"a {stored.estimator} has no option {name!r}")
    lost = [name for name, content in stored.parameters.items() if content == LOST]
    if lost:
        warn_user(
            f"the file does not contain the option {', '.join(lost)}; set it before you fit again or write a report"
        )
    # Options that are newer than the file keep their defaults.
    options: dict[str, Any] = dict.fromkeys(lost)
    options |= {name: read_value(content, arrays) for name, content in stored.parameters.items() if name not in lost}
    model = cls(**options)
    preprocessing = predictor_state.read_preprocessing(stored.preprocessing, arrays)
    if any(model.target_kind == ("classes" if target.is_numeric else "numbers") for target in preprocessing.targets):
        raise Unreadable(f"a {stored.estimator} cannot predict its targets")
    networks = predictor_state.read_networks(stored.networks, preprocessing, arrays)
    if networks.has_all_nodes != (stored.graph is not None):
        raise Unreadable("its graph does not match its networks")
    if isinstance(model, CrossValidated) != (stored.cross_validation is not None):
        raise Unreadable(f"its cross-validation does not match a {stored.estimator}")
    if not set(stored.engine.split(", ")) <= _ENGINES:
        raise Unreadable(f"its engine {stored.engine!r} is unknown")
    model.model_ = FittedModel(
        networks,
        pd.DataFrame(read_value(stored.history, arrays)),
        np.nan if stored.validation_loss is None else stored.validation_loss,
        None if stored.graph is None else result_state.read_graph(stored.graph, networks.layout.n_nodes, arrays),
        None if stored.cross_validation is None else result_state.read_folds(stored.cross_validation, networks, arrays),
        blend=None if stored.blend is None else predictor_state.read_blend(stored.blend, networks, arrays),
        selected=_selected(stored.selected, len(preprocessing.schema)),
        stored_importances=_importances(len(preprocessing.schema), arrays) if stored.importances else None,
        engine=stored.engine,
    )
    model.n_features_in_ = len(preprocessing.schema)
    if stored.named:
        model.feature_names_in_ = np.array([column.name for column in preprocessing.schema], object)
    arrays.finish()
    return model


def _selected(content: list[int] | None, n_columns: int) -> tuple[int, ...] | None:
    if content is not None and not set(content) <= set(range(n_columns)):
        raise Unreadable(f"it selects columns that do not exist; it has {n_columns} columns")
    return None if content is None else tuple(content)


def _importances(n_columns: int, arrays: StoredArrays) -> NDArray[np.float64]:
    return arrays.take("importances", np.float64, (n_columns,), finite=True)
