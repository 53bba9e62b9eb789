"""TensorBoard: event files, read back."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from castlereg.callbacks import TensorBoard
from tests.callbacks.cases import fit

Scalars = dict[str, dict[int, float]]


def scalars(folder: Path) -> Scalars:
    """Read the event files of a run: values by tag and step.

    A file is a row of records: length, checksum, an event, checksum.
    """
    event_pb2: Any = pytest.importorskip("tensorboardX.proto.event_pb2")
    values: Scalars = {}
    for path in folder.glob("events.out.tfevents.*"):
        content, at = path.read_bytes(), 0
        while at < len(content):
            (length,) = struct.unpack_from("<Q", content, at)
            event = event_pb2.Event.FromString(content[at + 12 : at + 12 + length])
            for value in event.summary.value:
                values.setdefault(value.tag, {})[event.step] = value.simple_value
            at += length + 16
    return values


def test_every_stage_is_a_run(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    model = fit(TensorBoard(tmp_path, each=True), refit=True)
    written = scalars(tmp_path / "training")
    means = model.history_.groupby("epoch").mean()
    for name in ("objective", "validation_loss", "acyclicity", "learning_rate"):
        np.testing.assert_allclose(list(written[name].values()), means[name], rtol=1e-6)
        assert list(written[name]) == [1, 2, 3]
    np.testing.assert_allclose(
        list(written["best_validation_loss"].values()),
        model.history_.groupby("epoch")["validation_loss"].min().cummin(),
        rtol=1e-6,
    )
    of_second = model.history_.query("member == 1")["validation_loss"]
    second = scalars(tmp_path / "training" / "network_1")["validation_loss"]
    np.testing.assert_allclose(list(second.values()), of_second, rtol=1e-6)
    assert list(scalars(tmp_path / "refit")["objective"]) == [1, 2, 3]
    final = scalars(tmp_path)
    assert final["edges"] == {3: len(model.graph_.edges())}
    assert final["final_validation_loss"][3] == pytest.approx(model.validation_loss_)


def test_means_only_and_every_second_epoch(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    fit(TensorBoard(tmp_path, every=2))
    assert list(scalars(tmp_path / "training")["objective"]) == [2, 3]
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["training"]
    assert not any(path.is_dir() for path in (tmp_path / "training").iterdir())


def test_without_the_package_a_fit_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match=r"pip install 'castlereg\[tensorboard\]'"):
        fit(TensorBoard(tmp_path))
