"""Our searches in pytabkit's benchmark; runs where ``pytabkit`` is installed."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pytabkit")

import torch
from pytabkit.bench.data.paths import Paths
from pytabkit.bench.data.tasks import Task, TaskDescription, TaskInfo, TaskPackage
from pytabkit.bench.scheduling.resources import NodeResources
from pytabkit.models.alg_interfaces.base import InterfaceResources, SplitIdxs
from pytabkit.models.data.conversion import ToDictDatasetConverter
from pytabkit.models.data.data import DictDataset, TensorInfo
from pytabkit.models.training.logging import StdoutLogger

from castlereg.integrations.pytabkit import Castle_Classifier, Castle_Regressor
from castlereg.integrations.pytabkit_benchmark import CastleInterfaceWrapper, CastleSubSplitInterface

pytestmark = pytest.mark.filterwarnings("default")  # those of torch
ROWS, LITTLE = 90, 1e-3  # so little time that only the linear forms and the first epochs of CASTLE are trained
CLASSES = [0, 3]  # none is a regression


def dataset(n_classes: int) -> DictDataset:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"area": rng.normal(size=ROWS), "city": rng.choice(["Lima", "Oslo", "Rome"], ROWS)})
    value = frame["area"] + (frame["city"] == "Oslo")
    features = ToDictDatasetConverter().fit_transform(frame.astype({"city": "category"}))
    if n_classes:
        y = torch.as_tensor(pd.qcut(value, n_classes, labels=False).to_numpy(), dtype=torch.long)
        info = TensorInfo(cat_sizes=[n_classes])
    else:
        y, info = torch.as_tensor(value.to_numpy(), dtype=torch.float32), TensorInfo(feat_shape=[1])
    return DictDataset.join(features, DictDataset(tensors={"y": y[:, None]}, tensor_infos={"y": info}))


@pytest.mark.parametrize("n_classes", CLASSES)
def test_an_interface_fits_what_the_estimator_fits(n_classes: int) -> None:
    """On the rows of the split, with its seed, categories and time; classes are predicted as logits."""
    ds = dataset(n_classes)
    rows = torch.randperm(ROWS, generator=torch.Generator().manual_seed(0))
    train, held, test = rows[:50], rows[50:70], rows[70:]
    split = SplitIdxs(train[None], held[None], test, split_seed=3, sub_split_seeds=[11], split_id=0)
    interface = CastleSubSplitInterface(search="fast")
    resources = InterfaceResources(n_threads=1, gpu_devices=[], time_in_seconds=LITTLE)
    interface.fit(ds, [split], resources, StdoutLogger(verbosity_level=0), [None], "CASTLE")
    got = interface.predict(ds)[0].numpy()

    frame = ds.without_labels().to_df()
    y = ds.tensors["y"][:, 0].numpy()
    order = torch.cat([train, held]).numpy()
    make: Any = Castle_Classifier if n_classes else Castle_Regressor
    by_hand = make(n_cv=2, random_state=11, n_threads=1).fit(
        frame.iloc[order].reset_index(drop=True),
        y[order],
        val_idxs=np.arange(50, 70),
        cat_col_names=list(frame.select_dtypes("category")),
        time_to_fit_in_seconds=LITTLE,
    )
    if n_classes:
        np.testing.assert_allclose(torch.softmax(torch.as_tensor(got), dim=1), by_hand.predict_proba(frame), rtol=1e-4)
    else:
        np.testing.assert_allclose(got[:, 0], by_hand.predict(frame), rtol=1e-5)


@pytest.mark.parametrize("n_classes", CLASSES)
def test_the_benchmark_runs_it(n_classes: int, tmp_path: Path) -> None:
    """Stored task, two train-validation splits, metrics of the test rows."""
    paths = Paths(str(tmp_path))
    info = TaskInfo.from_ds(TaskDescription("own", "flats"), dataset(n_classes))
    Task(info, dataset(n_classes)).save(paths)
    wrapper = pickle.loads(pickle.dumps(CastleInterfaceWrapper(search="fast")))
    rules = {"n_cv": 2, "n_refit": 0, "rerun": False, "alg_name": "CASTLE", "save_y_pred": False}
    package = TaskPackage(info, info.get_random_splits(1), paths=paths, **rules)
    required = wrapper.get_required_resources(package)
    assert required.time_s > 0
    assert required.cpu_ram_gb > 0.5
    node = NodeResources(0, 1.0, 4.0, np.zeros(0), np.zeros(0), np.zeros(1))
    (managers,) = wrapper.run(package, StdoutLogger(verbosity_level=0), node, [tmp_path / "scratch"]).values()
    scores = managers[0].metrics_dict["cv"]["test"]["2"]["0"]
    assert (scores["class_error"] < 0.5) if n_classes else (scores["nrmse"] < 0.7)
