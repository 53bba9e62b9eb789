"""One device or several: the same networks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from castlereg import use_devices
from castlereg.training import devices, train
from tests.training.cases import assert_same, members, plan, table

PATIENCE = 300  # seconds, for a machine that is busy with much else
QUICK = {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}  # to compile, which is most of the time


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the same fits in a process with four devices."""
    results = tmp_path_factory.mktemp("results")
    command = [sys.executable, "-m", "tests.training.fits_on_devices", str(results)]
    done = subprocess.run(command, timeout=PATIENCE, env=QUICK, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return results


@pytest.mark.parametrize(
    "where",
    [
        "5 members, 3 devices",
        "5 members, 2 chosen devices",
        "5 members, 4 devices",
        "5 members side by side, 2 devices",
        "1 member, 4 devices",
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


# --- which devices -------------------------------------------------------------------------------


@pytest.fixture
def six_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_mesh", lambda chosen: chosen)
    monkeypatch.setattr(devices.jax, "local_devices", lambda backend=None: list("abcdef"))


@pytest.mark.usefixtures("six_devices")
def test_a_member_has_at_most_one_device() -> None:
    assert devices.training_mesh(9) == tuple("abcdef")
    assert devices.training_mesh(4) == tuple("abcd")
    assert devices.training_mesh(1) == ("a",)
    with use_devices(2):
        assert devices.training_mesh(9) == ("a", "b")
        with use_devices():
            assert devices.training_mesh(9) == tuple("abcdef")
    assert devices.training_mesh(9) == tuple("abcdef")


@pytest.mark.usefixtures("six_devices")
def test_chosen_devices_are_used_in_their_order() -> None:
    known = jax.devices()
    with use_devices(known[::-1]):
        assert devices.training_mesh(9) == tuple(known[::-1])
        assert devices.training_mesh(1) == (known[-1],)


@pytest.mark.usefixtures("six_devices")
def test_the_users_default_device_trains_unless_others_are_chosen() -> None:
    (first, *_) = jax.devices()
    with jax.default_device(first):
        assert devices.training_mesh(9) == (first,)
        with use_devices(2):
            assert devices.training_mesh(9) == ("a", "b")
    assert devices.training_mesh(9) == tuple("abcdef")


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (0, "devices=0 must be a whole number of at least 1"),
        (1.5, "devices=1.5 must be a whole number"),
        (["cpu"], r"must be a number, or a list of devices from jax.devices\(\)"),
        ([], r"must be a number, or a list of devices from jax.devices\(\)"),
    ],
)
def test_a_bad_choice_of_devices_is_named(chosen: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message), use_devices(chosen):
        pass


def test_more_devices_than_there_are_is_an_error() -> None:
    with (
        use_devices(10**6),
        pytest.raises(ValueError, match=r"use_devices\(1000000\) needs .* devices, but JAX has"),
    ):
        devices.training_mesh(1)


# --- settings of JAX -----------------------------------------------------------------------------


def test_checks_that_the_user_has_set_for_other_code_change_nothing() -> None:
    task = table(), members(2), plan((5,), epochs=3)
    usual = train(*task)
    with (
        jax.debug_nans(True),
        jax.debug_infs(True),
        jax.numpy_rank_promotion("raise"),
        jax.numpy_dtype_promotion("strict"),
        jax.transfer_guard("disallow"),
    ):
        assert_same(train(*task), usual)
        assert jax.config.jax_debug_nans, "they are as before"  # type: ignore[attr-defined]


def test_settings_are_the_users_until_the_first_fit_and_stay_where_given() -> None:
    script = """
import jax
before = dict(jax.config.values)
import castlereg.estimators
from castlereg.training import devices
assert jax.config.values == before, "importing changes nothing"
jax.config.update("jax_num_cpu_devices", 3)
jax.config.update("jax_compilation_cache_dir", "")  # no cache
given = dict(jax.config.values)
assert len(devices.training_mesh(9).devices) == 3
assert jax.config.values == given
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE)


def test_a_cache_folder_that_cannot_be_written_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "file")
    before = dict(jax.config.values)
    with pytest.warns(UserWarning, match=r"jax is not writable .* set JAX_COMPILATION_CACHE_DIR"):
        devices._use_own_cache()
    assert jax.config.values == before


@pytest.mark.skipif(sys.platform != "linux", reason="reads the size of the process from /proc")
def test_a_memory_limit_that_xla_would_not_survive_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    limits = {"most": 2**20}
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limits["most"],) * 2)
    with pytest.raises(MemoryError, match=r"\(ulimit -v\) of 0.0 GiB leaves 0.0 GiB, but XLA needs about 1 GiB"):
        devices._check_room()
    for most in (2**60, resource.RLIM_INFINITY):
        limits["most"] = most
        devices._check_room()
