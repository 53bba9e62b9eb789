"""castlereg's searches as a method of pytabkit's benchmark. Needs ``pytabkit``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pytabkit.bench.alg_wrappers.interface_wrappers import SubSplitInterfaceWrapper
from pytabkit.models.alg_interfaces.base import RequiredResources
from pytabkit.models.alg_interfaces.resource_computation import ResourcePredictor
from pytabkit.models.alg_interfaces.sub_split_interfaces import SklearnSubSplitInterface

from castlereg.integrations.pytabkit import Castle_Classifier, Castle_Regressor

_NETWORKS_OF_A_SPLIT = 2  # the fewest folds that a search takes
# Guesses by which the benchmark decides how many methods to run side by side.
_SECONDS = {"": 20.0, "n_samples": 5e-3, "n_samples*n_features": 2e-4}
_GIGABYTES = {"": 1.0, "ds_onehot_size_gb": 6.0}


class CastleSubSplitInterface(SklearnSubSplitInterface):
    """One split into training and validation rows: the search weights its candidates by the validation rows.

    Options: ``search``, and ``n_networks`` of each candidate.
    """

    def _create_sklearn_model(self, seed: int, n_threads: int, gpu_devices: list[str]) -> Any:
        make = Castle_Classifier if self.n_classes > 0 else Castle_Regressor
        n_networks = self.config.get("n_networks", _NETWORKS_OF_A_SPLIT)
        return make(search=self.config.get("search", "fast"), n_cv=n_networks, n_threads=n_threads, random_state=seed)

    def _fit_sklearn(
        self, x_df: pd.DataFrame, y: NDArray[Any], val_idxs: NDArray[np.int64], cat_col_names: list[str] | None = None
    ) -> None:
        self.model.fit(
            x_df,
            y,
            val_idxs=val_idxs if len(val_idxs) else None,
            cat_col_names=cat_col_names,
            time_to_fit_in_seconds=self.config["interface_resources"].time_in_seconds,
        )

    def get_required_resources(
        self, ds: Any, n_cv: int, n_refit: int, n_splits: int, split_seeds: list[int], n_train: int
    ) -> RequiredResources:
        """Estimate seconds and memory."""
        predictor = ResourcePredictor(config=self.config, time_params=_SECONDS, cpu_ram_params=_GIGABYTES)
        return predictor.get_required_resources(ds)


class CastleInterfaceWrapper(SubSplitInterfaceWrapper):
    """The method to pass to pytabkit's ``TabBenchJobManager``.

    Examples
    --------
    >>> CastleInterfaceWrapper(search="fast").config
    {'search': 'fast'}
    """

    def create_sub_split_interface(self, task_type: Any) -> CastleSubSplitInterface:
        """Return the interface of one split."""
        return CastleSubSplitInterface(**self.config)
