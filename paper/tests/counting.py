"""An experiment that takes no time, for tests of what surrounds experiments."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import pandas as pd

from castlereg_paper.framework import Experiment, Record, Scale, Settings, Verdict


@dataclass(frozen=True)
class Counting(Experiment):
    """Squares of numbers."""

    name = "counting"
    title = "Squares"
    shown_in = "Table 0"
    count: int = 4
    seconds: float = 0.0
    fails_at: int = -1

    def units(self, scale: Scale) -> list[Settings]:
        return [{"n": n, "scale": scale} for n in range(self.count)]

    def measure(self, settings: Settings) -> list[Record]:
        n = int(settings["n"])
        time.sleep(self.seconds)
        if n == self.fails_at:
            raise FileNotFoundError(f"no table {n}")
        return [{"square": n * n / 7, "text": "a|b"}]

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        return results[["n", "square", "text"]]

    def draw(self, results: pd.DataFrame) -> None:
        return

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        return [Verdict("squares grow", "reproduced", f"up to {results['square'].max():.3f}")]


class Doubling(Counting):
    """Another one, which reads the first."""

    name = "doubling"
    sources = (Counting,)


class Locating(Counting):
    """Tells which process ran it."""

    def measure(self, settings: Settings) -> list[Record]:
        return [{"process": os.getpid()}]
