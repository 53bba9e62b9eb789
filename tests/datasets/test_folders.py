"""Where tables are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from castlereg.datasets.folders import data_folder, folders


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_DATA_HOME", "{base}/castlereg"),
        ("linux", None, "{home}/.local/share/castlereg"),
        ("darwin", None, "{home}/Library/Application Support/castlereg"),
        ("win32", "LOCALAPPDATA", "{base}/castlereg"),
        ("win32", None, "{home}/AppData/Local/castlereg"),
    ],
)
def test_the_users_folder_by_platform(
    platform: str, variable: str | None, expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable is not None:
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr("sys.platform", platform)
    assert data_folder() == Path(expected.format(base=tmp_path, home=Path.home()))


def test_the_variable_comes_first_and_may_be_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASTLEREG_DATA", "somewhere")
    assert list(folders().values()) == [Path("somewhere"), data_folder()]
    for unset in (lambda: monkeypatch.setenv("CASTLEREG_DATA", ""), lambda: monkeypatch.delenv("CASTLEREG_DATA")):
        unset()
        assert list(folders().values()) == [data_folder()]
