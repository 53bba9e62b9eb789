"""Random numbers, and a made-up table that stands for one of the catalogue's, in folders of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from castlereg_paper.datasets import as_cells, figures_of, known_figures

# Before a test sets its own.
REAL_FOLDER = os.environ.get("CASTLEREG_DATA")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def real_folder() -> Path:
    if REAL_FOLDER is None:
        pytest.skip("CASTLEREG_DATA is not set")
    return Path(REAL_FOLDER)


@dataclass(frozen=True)
class MadeUp:
    """Folders to look in, and a maker of tables."""

    first: Path
    second: Path
    make: Callable[[str], pd.DataFrame]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Empty folders: that of ``CASTLEREG_DATA`` and the user's."""
    first, second = tmp_path / "first", tmp_path / "home" / "castlereg"
    first.mkdir()
    monkeypatch.setenv("CASTLEREG_DATA", str(first))
    monkeypatch.setattr("castlereg_paper.datasets.data_folder", lambda: second)
    return first, second


@pytest.fixture
def made_up(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> MadeUp:
    """``make(file)`` draws a small table with the columns of a file and makes it the one that belongs there."""
    figures = {}

    def make(file: str) -> pd.DataFrame:
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({name: rng.normal(size=6).round(3) for name in known_figures()[file].columns})
        figures[file] = figures_of(as_cells(frame))
        return frame

    monkeypatch.setattr("castlereg_paper.datasets.known_figures", lambda: figures)
    return MadeUp(*folders, make)
