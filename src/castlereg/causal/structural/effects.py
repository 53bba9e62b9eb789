"""Answers to what-if questions: an outcome when columns are set, and how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.causal.structural.answers import Answer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

AGREEMENT = 0.9  # share of the graphs that must agree for a direction to count as known
_DISAGREEMENT = 0.1  # not 1 - AGREEMENT, which is slightly less than 3 of 30
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of the outcome over rows


@dataclass(frozen=True)
class Direction:
    """Shares of the graphs that may be true with a path from the causes to the outcome, and from it to the causes.

    >>> Direction(forward=27 / 30, backward=3 / 30).is_known, Direction(forward=3 / 30, backward=0.0).is_known
    (True, True)
    """

    forward: float
    backward: float

    @property
    def is_known(self) -> bool:
        """Whether the graphs agree."""
        return not any(_DISAGREEMENT < share < AGREEMENT for share in (self.forward, self.backward))

    def remark(self, cause: str, outcome: str) -> str:
        """Return a remark if the direction is not known, otherwise an empty string."""
        if self.is_known:
            return ""
        leads = f"a path leads from {cause} to {outcome} in {self.forward:.0%} of the graphs that may be true"
        if not _DISAGREEMENT < self.backward < AGREEMENT:
            doubt = f"It is not known whether there is an effect: {leads}."
        else:
            doubt = f"The direction is not known: {leads}, and from {outcome} to {cause} in {self.backward:.0%}."
        return (
            f"{doubt} The average over these graphs mixes different answers; if you know the answer, state it with "
            "EdgeConstraints or structural_model(graph=...)."
        )


@dataclass(frozen=True, repr=False)
class Effect:
    """The outcome when a column is set to values, on average over rows.

    Attributes
    ----------
    cause, outcome : str
    level : object
        Level whose probability is estimated; None for a numeric outcome, whose mean is estimated.
    values : tuple
        Values of the cause; for an effect ``by`` some units, that number.
    answer : Answer
        ``estimate``, ``low``, ``high``, and the standard deviations ``within`` (from the rows, given a graph) and
        ``between`` (between graphs); arrays of shape (values,). Error bars of a known world are NaN.
    quantiles : array of shape (values, 5)
        Quantiles of the outcome over rows, at 5, 25, 50, 75 and 95 %, from the main graph; NaN for levels.
    associated : array of shape (values,)
        Mean of the outcome in the rows nearest to each value, without an intervention. NaN with ``by``.
    direction : Direction
        Shares of the graphs in which the cause affects the outcome, and the reverse.
    coverage : float
        Coverage of the band from low to high.
    notes : tuple of str
        What to keep in mind.
    """

    cause: str
    outcome: str
    level: Any
    values: tuple[Any, ...]
    answer: Answer
    quantiles: Array
    associated: Array
    direction: Direction
    coverage: float
    notes: tuple[str, ...]
    by: float | None = None

    @property
    def estimate(self) -> Array:
        """Mean of the outcome, or probability of its level, at every value; with ``by``, the change."""
        return self.answer.estimate

    @property
    def measured(self) -> str:
        """Description of the estimate, such as "mean of income"."""
        return measured(self.outcome, self.level)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each value."""
        figures = self.answer._asdict() | {"associated": self.associated}
        name = f"{self.cause} (set to)" if self.cause in figures else self.cause
        return pd.DataFrame({name: list(self.values)} | figures)

    def summary(self) -> str:
        """Describe the answer in a few lines."""
        if self.by is not None:
            lines = [f"{self.by:+g} in {self.cause} changes the {self.measured} by {shown(self.answer, 0)}."]
        else:
            lines = [f"Setting {self.cause}, the {self.measured} is"]
            ends = (0, int(np.argmin(self.estimate)), int(np.argmax(self.estimate)), len(self.values) - 1)
            lines += [f"  {shown(self.answer, i)} at {_value(self.values[i])}" for i in dict.fromkeys(ends)]
        remark = self.direction.remark(self.cause, self.outcome)
        return "\n".join([*([remark] if remark else []), *lines, *self.notes])

    def __repr__(self) -> str:
        return f"<Effect of {self.cause} on {self.outcome}: {len(self.values)} values>"

    def plot(self, ax: Axes | None = None, *, predicted: Array | None = None) -> Axes:
        """Draw the caused and the associated outcome, and the predictions of a model at the same values if passed.

        Parameters
        ----------
        ax : Axes, optional
            By default new axes.
        predicted : array of shape (values,), optional
            For example from :func:`castlereg.partial_dependence`.
        """
        from castlereg.causal.structural.plot import plot_effect

        return plot_effect(self, ax, predicted)


@dataclass(frozen=True, repr=False)
class WhatIf:
    """The outcome under an intervention on one or several columns.

    Attributes
    ----------
    do : dict
        Columns and their values.
    outcome : str
    level : object
        Level whose probability is estimated; None for a numeric outcome, whose mean is estimated.
    before : float
        Mean of the outcome, or share of the level, without the intervention.
    after, change : Answer
        The same under the intervention, and the difference, with error bars; arrays of shape (1,).
    quantiles_before, quantiles_after : array of shape (5,)
        Quantiles of the outcome over rows, at 5, 25, 50, 75 and 95 %; NaN for levels.
    direction : Direction
    coverage : float
    notes : tuple of str
    """

    do: dict[str, Any]
    outcome: str
    level: Any
    before: float
    after: Answer
    change: Answer
    quantiles_before: Array
    quantiles_after: Array
    direction: Direction
    coverage: float
    notes: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return two rows: after the intervention, and the change."""
        rows = [{name: float(values[0]) for name, values in a._asdict().items()} for a in (self.after, self.change)]
        return pd.DataFrame(rows, index=["after", "change"])

    def summary(self) -> str:
        """Describe the answer in a few lines."""
        settings = ", ".join(f"{name} = {_value(value)}" for name, value in self.do.items())
        lines = [
            f"With {settings}, the {measured(self.outcome, self.level)} is {shown(self.after, 0)}; "
            f"it is {self.before:.4g} now, a change of {shown(self.change, 0)}."
        ]
        remark = self.direction.remark(" and ".join(self.do), self.outcome)
        return "\n".join([*([remark] if remark else []), *lines, *self.notes])

    def __repr__(self) -> str:
        return f"<WhatIf: {self.outcome} given do({', '.join(f'{n}={v!r}' for n, v in self.do.items())})>"


def measured(outcome: str, level: Any) -> str:
    """Return a description of the estimate."""
    return f"mean of {outcome}" if level is None else f"probability that {outcome} is {level}"


def shown(answer: Answer, i: int) -> str:
    """Format one estimate with its band."""
    band = "" if np.isnan(answer.low[i]) else f" ({answer.low[i]:.4g} to {answer.high[i]:.4g})"
    return f"{answer.estimate[i]:.4g}{band}"


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
