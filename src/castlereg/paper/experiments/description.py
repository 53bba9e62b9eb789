"""Interface of an experiment: units of work that run anywhere and in any order, and summaries of their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scale = Literal["quick", "standard", "paper"]
SCALES: Final[tuple[Scale, ...]] = ("quick", "standard", "paper")
Settings = Mapping[str, str | int | float]
Record = dict[str, Any]
Judgement = Literal["reproduced", "partly", "not reproduced", "cannot be met", "not in the paper"]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim of the paper.

    Parameters
    ----------
    claim : str
        The claim in our words.
    judgement : {"reproduced", "partly", "not reproduced", "cannot be met", "not in the paper"}
    reason : str
        The reason, with the deciding figures.
    """

    claim: str
    judgement: Judgement
    reason: str


@dataclass(frozen=True)
class Experiment(ABC):
    """One table or figure of the paper, or an experiment beyond it.

    A *unit* is a flat mapping of all settings that its result depends on: the same settings give the same records, in
    any process and on any machine of the same kind. Results are therefore stored by the settings of the unit, and all
    scales share them.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    shown_in: ClassVar[str]  # table or figure of the paper
    revision: ClassVar[int] = 1  # increase it when the same settings give other records
    sources: ClassVar[tuple[str, ...]] = ()  # experiments whose results this one also reads
    timed: ClassVar[bool] = False  # whether it measures seconds, so its units must not run in parallel

    @abstractmethod
    def units(self, scale: Scale) -> list[Settings]:
        """List the units of a scale."""

    @abstractmethod
    def measure(self, settings: Settings) -> list[Record]:
        """Run a unit; return records of plain numbers and text."""

    @abstractmethod
    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Summarize the records of all units, with their settings as columns, in a readable table."""

    @abstractmethod
    def draw(self, results: pd.DataFrame) -> Figure | None:
        """Draw the figure, in the form of the paper if it has one."""

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge the paper's claims."""
        return []

    def cost(self, settings: Settings) -> float:
        """Estimate the seconds of a unit on one core."""
        return 1.0

    def notes(self) -> str:
        """Return notes for readers of the table."""
        return ""

    def item(self, settings: Settings) -> dict[str, Any]:
        """Return a unit as a work item, with everything that its results depend on."""
        return {"experiment": self.name, "revision": self.revision, "settings": dict(settings)}


def table_of(units: list[Settings], records: list[list[Record]]) -> pd.DataFrame:
    """Join units with their records, in the order of the units.

    Examples
    --------
    >>> table_of([{"n": 1}, {"n": 2}], [[{"score": 0.5}], [{"score": 0.25}]])
       n  score
    0  1   0.50
    1  2   0.25
    """
    return pd.DataFrame(
        [{**unit, **record} for unit, of_unit in zip(units, records, strict=True) for record in of_unit]
    )
