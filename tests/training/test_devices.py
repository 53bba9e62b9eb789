"""One device, several, rows over devices, and joined processes: the same networks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from castlereg import use_devices
from castlereg.training import mesh

PATIENCE = 300  # seconds, for a machine that is busy with much else
QUICK = {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}  # to compile, which is most of the time


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the same fits on one process with four devices and on two processes with one each."""
    results = tmp_path_factory.mktemp("results")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "tests.training.fits_on_devices", str(results)]
    running, said = [], [results / f"{i}.txt" for i in range(3)]
    for arguments, file in zip(((), (port, "0", "2"), (port, "1", "2")), said, strict=True):
        with file.open("w") as out:
            running.append(subprocess.Popen([*command, *arguments], stdout=out, stderr=subprocess.STDOUT, env=QUICK))
    try:
        for process, file in zip(running, said, strict=True):
            assert process.wait(timeout=PATIENCE) == 0, file.read_text()
    finally:
        for process in running:
            process.kill()
            process.wait()
    return results


@pytest.mark.parametrize(
    "where",
    [
        "5 members, 3 devices",
        "5 members, 2 x 2 devices",
        "5 members side by side, 4 devices of rows",
        "5 members, process 0",
        "5 members, process 1",
        "5 members, rows, process 0",
        "5 members, rows, process 1",
        "1 member, process 0",
        "1 member, process 1",
    ],
)
def test_networks_are_the_same_wherever_they_train(where: str, folder: Path) -> None:
    n_members = where.split(",")[0].removesuffix(" side by side")
    expected, result = np.load(folder / f"{n_members}, 1 device.npz"), np.load(folder / f"{where}.npz")
    for name in expected.files:
        np.testing.assert_allclose(result[name], expected[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_members_stop_at_different_epochs_here(folder: Path) -> None:
    """Otherwise none of them would leave early."""
    member = np.load(folder / "5 members, 1 device.npz")["history"][:, 0]
    assert len(set(np.bincount(member.astype(int)))) > 1


def test_joined_processes_end_with_the_same_bits(folder: Path) -> None:
    for name in ("5 members", "5 members, rows"):
        first, second = (np.load(folder / f"{name}, process {i}.npz") for i in range(2))
        for part in first.files:
            np.testing.assert_array_equal(first[part], second[part])


# --- which devices -------------------------------------------------------------------------------


@dataclass(frozen=True)
class FakeDevice:
    id: int
    platform: str = "gpu"
    process_index: int = 0


def laid_out(monkeypatch: pytest.MonkeyPatch, devices: list[FakeDevice], *stack: Any) -> list[list[int]]:
    """Ids of the devices of every group."""
    monkeypatch.setattr(mesh, "chosen_devices", lambda: tuple(devices))
    monkeypatch.setattr(mesh, "_mesh", lambda groups: groups)
    monkeypatch.setattr(mesh.jax, "process_count", lambda: 1 + max(d.process_index for d in devices))
    groups: Any = mesh.training_mesh(*stack)
    return [[device.id for device in group] for group in groups]


@pytest.mark.parametrize(
    ("n_members", "batch_size", "splits_rows", "groups"),
    [
        (9, 4096, True, [[0], [1], [2], [3], [4], [5]]),  # members first
        (4, 4096, True, [[0], [1], [2], [3]]),
        (2, 4096, True, [[0, 1, 2], [3, 4, 5]]),  # then rows
        (1, 4096, True, [[0, 1, 2, 3, 4, 5]]),
        (1, 1024, True, [[0, 1]]),  # as far as a share is worth a device
        (1, 32, True, [[0]]),
        (1, 4096, False, [[0]]),
    ],
)
def test_accelerators_take_members_first_then_rows_of_large_batches(
    n_members: int, batch_size: int, splits_rows: bool, groups: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = [FakeDevice(i) for i in range(6)]
    assert laid_out(monkeypatch, devices, n_members, batch_size, splits_rows) == groups


def test_cores_split_rows_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = [FakeDevice(i, "cpu") for i in range(5)]
    assert laid_out(monkeypatch, cores, 1, 10**6, True) == [[0]]
    with use_devices(rows=2):
        assert laid_out(monkeypatch, cores, 3, 32, True) == [[0, 1], [2, 3]]
        assert laid_out(monkeypatch, cores, 3, 32, False) == [[0], [1], [2]]
    with use_devices(rows=6), pytest.raises(ValueError, match=r"rows=6\), but there are 5 devices"):
        laid_out(monkeypatch, cores, 1, 32, True)


def test_members_go_to_the_processes_in_turn_and_every_process_has_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = [FakeDevice(i, "cpu", process_index=i // 3) for i in range(6)]
    assert laid_out(monkeypatch, devices, 2, 32, True) == [[0], [3], [1], [4], [2], [5]]
    with use_devices(rows=3):
        assert laid_out(monkeypatch, devices, 2, 32, True) == [[0, 1, 2], [3, 4, 5]]
    with use_devices(rows=5):
        assert laid_out(monkeypatch, devices, 2, 32, True) == [[0, 1, 2, 3, 4]]
        with pytest.raises(ValueError, match="leaves out process 2: choose a number that divides the 6 devices"):
            laid_out(monkeypatch, [*devices[:5], FakeDevice(5, process_index=2)], 2, 32, True)
    with pytest.raises(ValueError, match=r"belong to processes \[1\] of 2: choose devices of this process alone"):
        laid_out(monkeypatch, devices[3:], 2, 32, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"devices": 0}, "devices=0 must be a whole number of at least 1"),
        ({"devices": ["cpu"]}, "must be a number or some of jax.devices()"),
        ({"devices": []}, "must be a number or some of jax.devices()"),
        ({"rows": 1.5}, "rows=1.5 must be a whole number"),
    ],
)
def test_what_is_no_choice_of_devices_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message), use_devices(**arguments):
        pass


def test_more_devices_than_there_are_is_refused() -> None:
    with use_devices(10**6), pytest.raises(ValueError, match=r"use_devices\(1000000\), but JAX has"):
        mesh.chosen_devices()
