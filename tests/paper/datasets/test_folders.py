"""Where tables are looked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from castlereg.paper.datasets.folders import data_folder, folders


@pytest.mark.skipif(sys.platform != "linux", reason="platformdirs knows the other platforms")
def test_the_users_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "castlereg"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert data_folder() == Path.home() / ".local" / "share" / "castlereg"


def test_the_variable_comes_first_and_may_be_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASTLEREG_DATA", "somewhere")
    assert list(folders().values()) == [Path("somewhere"), data_folder()]
    for unset in (lambda: monkeypatch.setenv("CASTLEREG_DATA", ""), lambda: monkeypatch.delenv("CASTLEREG_DATA")):
        unset()
        assert list(folders().values()) == [data_folder()]
