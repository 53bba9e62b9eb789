"""Threads that train when Python ends."""

from __future__ import annotations

import threading

import pytest

from castlereg.training import ending, train
from tests.training.cases import members, plan, table


def test_a_fit_ends_with_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "_ending", threading.Event())
    with ending.stopped_at_exit():
        assert threading.get_ident() in ending._running
        ending.stop_if_ending()
    assert threading.get_ident() not in ending._running
    ending._ending.set()
    with pytest.raises(SystemExit):
        train(table(), members(1), plan((5,)))
    assert not ending._running
