"""Notes of a command."""

from __future__ import annotations

import warnings

import pytest

from castlereg.cli.console import command


@command
def twice(quiet: bool = False) -> None:
    for text in ("rows are few", "rows are few", "a class is rare"):
        warnings.warn(text, stacklevel=1)


def test_a_note_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    twice(quiet=False)
    assert capsys.readouterr().err == "castlereg: note: rows are few\ncastlereg: note: a class is rare\n"
    twice(quiet=True)
    assert capsys.readouterr().err == ""
