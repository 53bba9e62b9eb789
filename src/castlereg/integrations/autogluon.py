"""CASTLE as an AutoGluon model, also for TabArena's shared protocol. Needs ``autogluon.core`` 1.6."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from autogluon.common.utils.pandas_utils import get_approximate_df_mem_usage
from autogluon.core.models import AbstractModel
from numpy.typing import NDArray

from castlereg.estimators import CastleClassifier, CastleClassifierCV, CastleRegressor, CastleRegressorCV
from castlereg.integrations.cores import at_most
from castlereg.integrations.flat_options import estimator_options, usual_options
from castlereg.integrations.validation_rows import joined, splits_of
from castlereg.training.callbacks import TimeLimit
from castlereg.training.devices import prepare_jax

_NETWORKS_OF_A_SPLIT = 2  # the fewest folds that a search takes
_SHARE_OF_TIME = 0.9  # the rest is for preprocessing, the graph and the blend
_BYTES_OF_PROCESS, _COPIES_OF_TABLE = 9e8, 10  # a little above what fits of 1,000 to 200,000 rows took


class CastleModel(AbstractModel):
    """CASTLE as an AutoGluon model: one network, or a search.

    The hyperparameter ``search`` decides:

    - ``None``, the default: one network, with early stopping on AutoGluon's validation rows. Its hyperparameters are
      those of :func:`castlereg.integrations.flat_options.estimator_options`.
    - ``"fast"`` or ``"best"``: the pools of :class:`castlereg.CastleRegressorCV`, which weight their candidates by the
      validation rows, or by their own folds without validation rows. The score on these validation rows is then
      slightly optimistic.

    Both stop at the time limit.

    The fitted estimator is the attribute ``model``: ``model.graph_`` is its graph.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> options = {"max_epochs": 5, "reg_beta": 0.1}
    >>> model = CastleModel(name="CASTLE", path="", problem_type="regression", hyperparameters=options)
    >>> model.fit(X=X[:300], y=y[:300], X_val=X[300:], y_val=y[300:]).predict(X).shape
    (442,)
    >>> model.model.graph_.is_dag
    True
    """

    ag_key = "CASTLE"
    ag_name = "CASTLE"
    seed_name = "random_state"
    default_resources_physical_cores_only = True
    _supported_problem_types: ClassVar = ["binary", "multiclass", "regression"]
    _default_auxiliary_params_extra: ClassVar = {"valid_raw_types": ["bool", "int", "float", "category"]}

    def _fit(
        self,
        X: pd.DataFrame,
        y: pd.Series,
        X_val: pd.DataFrame | None = None,
        y_val: pd.Series | None = None,
        time_limit: float | None = None,
        sample_weight: Any = None,
        sample_weight_val: Any = None,
        num_cpus: int | None = None,
        **kwargs: Any,
    ) -> None:
        begun = time.monotonic()
        options = self._get_model_params()
        search = options.pop("search")
        X = self.preprocess(X, y=y, is_train=True)
        X_val = None if X_val is None else self.preprocess(X_val)
        if time_limit is not None:
            time_limit = max(_SHARE_OF_TIME * (time_limit - (time.monotonic() - begun)), 1e-3)
        with at_most(num_cpus):
            if search is None:
                make = CastleRegressor if self.problem_type == "regression" else CastleClassifier
                network = make(**estimator_options(usual_options(len(X)) | options))
                callbacks = [] if time_limit is None else [TimeLimit(time_limit)]
                self.model = network.fit(X, y, sample_weight, X_val=X_val, y_val=y_val, callbacks=callbacks)
                return
            if X_val is not None and "cv" not in options:
                held = np.arange(len(X), len(X) + len(X_val))
                options["cv"] = splits_of(len(X) + len(X_val), held, _NETWORKS_OF_A_SPLIT)
                sample_weight = _joined_weights(sample_weight, sample_weight_val, len(X), len(X_val))
                X, y = joined(X, X_val), joined(y, y_val)
            if time_limit is not None and search in ("fast", "best"):
                options["time_limit"] = time_limit
            make_search = CastleRegressorCV if self.problem_type == "regression" else CastleClassifierCV
            self.model = make_search(search=search, **estimator_options(options)).fit(X, y, sample_weight)

    def _predict_proba(self, X: pd.DataFrame, **kwargs: Any) -> NDArray[np.float64]:
        if self.problem_type == "regression":
            return self.model.predict(self.preprocess(X, **kwargs))
        known = self.model.predict_proba(self.preprocess(X, **kwargs))
        shares = np.zeros((len(known), self.num_classes))  # 0 for classes that are missing from the training rows
        shares[:, np.asarray(self.model.classes_, dtype=int)] = known
        return self._convert_proba_to_unified_form(shares)

    def _set_default_params(self) -> None:
        for name, value in {"search": None, "unusable_columns": "drop"}.items():
            self._set_default_param_value(name, value)

    @classmethod
    def _estimate_memory_usage_static(cls, *, X: pd.DataFrame, **kwargs: Any) -> int:
        return int(_BYTES_OF_PROCESS + _COPIES_OF_TABLE * get_approximate_df_mem_usage(X).sum())

    @classmethod
    def warmup(cls, **kwargs: Any) -> None:
        """Start JAX, which TabArena does not count as training."""
        prepare_jax()


def _joined_weights(of_training: Any, of_validation: Any, n_training: int, n_validation: int) -> Any:
    """Concatenate the weights of training and validation rows; missing weights are 1."""
    if of_training is None and of_validation is None:
        return None
    parts = ((of_training, n_training), (of_validation, n_validation))
    return np.concatenate([np.ones(n) if weights is None else np.asarray(weights, float) for weights, n in parts])
