"""Models for TabArena: networks that it tunes and bags, and searches with their own validation. Needs ``tabarena``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import pandas as pd
from autogluon.common.space import Categorical, Int, Real
from tabarena.benchmark.exec_models import ExternalSystemModel
from tabarena.utils.config_utils import ConfigGenerator, SystemConfigGenerator

from castlereg.estimators import CastleClassifierCV, CastleRegressorCV
from castlereg.integrations.autogluon import CastleModel
from castlereg.integrations.cores import at_most
from castlereg.training.devices import prepare_jax

_SHARE_OF_TIME = 0.9  # the rest is for reading the table, the graph and the blend


class CastleSystem(ExternalSystemModel):
    """A search of :class:`castlereg.CastleRegressorCV` or :class:`castlereg.CastleClassifierCV`, as a TabArena system.

    It gets the raw table and does its own preprocessing, validation and blending. Its folds are random, so it is for
    tables whose rows are independent: those of TabArena-v0.1, not those with groups or time.

    Parameters
    ----------
    search : {"fast", "best"}
        The pool of candidates.
    **kwargs
        Arguments of ``ExternalSystemModel``.
    """

    def __init__(self, *, search: Literal["fast", "best"] = "best", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.search = search
        self.estimator: Any = None

    def _fit_system(
        self,
        X: pd.DataFrame,
        y: pd.Series,
        *,
        problem_type: str,
        num_cpus: int | None = None,
        time_limit: float | None = None,
        random_state: int | None = None,
        **context: Any,
    ) -> Self:
        make = CastleRegressorCV if problem_type == "regression" else CastleClassifierCV
        self.estimator = make(
            search=self.search,
            time_limit=None if time_limit is None else _SHARE_OF_TIME * time_limit,
            random_state=0 if random_state is None else random_state,
            unusable_columns="drop",
        )
        with at_most(num_cpus):
            self.estimator.fit(X, y)
        return self

    def _predict(self, X: pd.DataFrame) -> pd.Series:
        return pd.Series(self.estimator.predict(X), index=X.index)

    def _predict_proba(self, X: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(self.estimator.predict_proba(X), index=X.index, columns=self.estimator.classes_)

    @property
    def warmup_fn(self) -> Callable[[], None]:
        """Start JAX, which TabArena does not count as training."""
        return prepare_jax


def network_configs() -> Any:
    """Return TabArena's generator of configurations of :class:`castlereg.integrations.autogluon.CastleModel`.

    The first is the default; others are drawn from a space of strengths, sizes and details of training.

    Examples
    --------
    >>> [config["ag_args"]["name_suffix"] for config in network_configs().generate_all_configs_lst(2)]
    ['_c1', '_r1', '_r2']
    """
    space = {
        "reg_beta": Real(1e-4, 1.0, log=True),
        "reg_lambda": Real(0.01, 10.0, log=True),
        "learning_rate": Real(1e-3, 1e-2, log=True),
        "width": Categorical(32, 64, 128),
        "depth": Int(1, 3),
        "dropout": Real(0.0, 0.4),
        "embedding": Categorical(0, 4, 8),
        "input_init": Categorical("small", "glorot"),
        "activation": Categorical("relu", "silu"),
        "scaling": Categorical("standard", "robust"),
        "weight_decay": Real(1e-5, 0.1, log=True),
    }
    return ConfigGenerator(model_cls=CastleModel, manual_configs=[{}], search_space=space)


def system_configs() -> Any:
    """Return TabArena's generator of :class:`CastleSystem`: ``search="best"``, then ``"fast"``.

    Examples
    --------
    >>> [config.get("search") for config in system_configs().generate_all_configs_lst(0)]
    ['best', 'fast']
    """
    both: list[dict[str, Any]] = [{"search": "best"}, {"search": "fast"}]
    return SystemConfigGenerator(model_cls=CastleSystem, name="CASTLE search", manual_configs=both)
