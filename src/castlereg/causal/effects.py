"""Answers to what-if questions: an outcome when columns are set, with error bars for the rows and for the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t

from castlereg.causal.equations import Draw, System

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
_Outcomes = Callable[[System, NDArray[np.int64]], Array]  # outcomes of rows under a system, (questions, rows)

_AGREEMENT = 0.9  # share of the graphs that must agree for a direction to count as known
_DISAGREEMENT = 0.1  # not 1 - _AGREEMENT, which is slightly less than 3 of 30
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of the outcome over rows
_ROWS_OF_DRAWS = 2000  # number of rows on which draws are compared with the main equations
_BISECTIONS = 50
_COLORS = ("#555555", "#b35c00", "#0b6e99")  # of what is predicted, associated and caused


class Answer(NamedTuple):
    """Averages with error bars, each of shape (questions,)."""

    estimate: Array  # mean over the graphs
    low: Array
    high: Array
    within: Array  # standard deviation from the rows, given a graph
    between: Array  # standard deviation between graphs


def averaged(
    main: System, draws: Sequence[Draw], outcomes: _Outcomes, rows: NDArray[np.int64], weight: Array, coverage: float
) -> tuple[Answer, Array]:
    """Average the outcomes of rows; also return those under the main equations, shape (questions, rows).

    The spread within a graph is the deviation of averages of resampled rows, with equations fitted to these, from the
    average of all rows, with equations fitted to all. The spread between graphs is that of the latter averages. Low and
    high are quantiles of a mixture of t distributions, one around the average of each graph. For long tables, the
    equations of the draws are evaluated for some rows only: the difference from the main equations on these rows is
    added to the average of the main equations over all rows.
    """
    main_outcomes = outcomes(main, rows)
    share = weight[rows] / weight[rows].sum()
    estimate = main_outcomes @ share
    if not draws:
        nothing = np.full(len(estimate), np.nan)
        return Answer(estimate, nothing, nothing, nothing, nothing), main_outcomes
    at = np.sort(np.random.default_rng(0).permutation(len(rows))[:_ROWS_OF_DRAWS])
    some = rows[at]
    some_outcomes = main_outcomes if len(at) == len(rows) else outcomes(main, some)  # noise as for the draws
    by_graph, centers, apart = {id(main): some_outcomes}, list[Array](), list[Array]()
    for draw in draws:
        if id(draw.whole) not in by_graph:
            by_graph[id(draw.whole)] = outcomes(draw.whole, some)
        graph_outcomes = by_graph[id(draw.whole)]
        centers.append(estimate + (graph_outcomes - some_outcomes) @ _shares(share[at]))
        drawn = draw.weight[rows]
        if not drawn[at].any():
            continue
        differences = outcomes(draw.resampled, some) - some_outcomes
        apart.append(main_outcomes @ _shares(drawn) + differences @ _shares(drawn[at]) - centers[-1])
    within = np.sqrt(np.mean(np.square(apart), axis=0)) if apart else np.full(len(estimate), np.nan)
    graph_centers = np.array(centers)
    tails = (1 - coverage) / 2, (1 + coverage) / 2
    low, high = (_mixture_quantile(graph_centers, within, tail, len(apart)) for tail in tails)
    differences = graph_centers - estimate  # exactly zero if there is only one graph
    return Answer(estimate + differences.mean(axis=0), low, high, within, differences.std(axis=0)), main_outcomes


def _shares(weight: Array) -> Array:
    return weight / weight.sum()


def _mixture_quantile(centers: Array, scale: Array, share: float, freedom: int) -> Array:
    """Return a quantile of the mixture of t distributions around centers, shape (draws, questions)."""
    if np.ptp(centers, axis=0).max(initial=0.0) == 0:
        return np.asarray(centers[0] + t.ppf(share, freedom) * scale)
    width = np.maximum(scale, 1e-9 * (np.abs(centers).max(axis=0) + 1e-300))
    low, high = centers.min(axis=0) - 50 * width, centers.max(axis=0) + 50 * width
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = t.cdf((middle - centers) / width, freedom).mean(axis=0) < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


@dataclass(frozen=True)
class Direction:
    """Shares of the graphs that may be true with a path from the causes to the outcome, and from it to the causes.

    >>> Direction(forward=27 / 30, backward=3 / 30).is_known, Direction(forward=3 / 30, backward=0.0).is_known
    (True, True)
    """

    forward: float
    backward: float
    is_evidence: bool = True  # whether the graph is known, or drawn by its probabilities

    @property
    def is_known(self) -> bool:
        """Whether the graphs agree; a graph whose probabilities are not known does not say that an effect is zero."""
        agree = not any(_DISAGREEMENT < share < _AGREEMENT for share in (self.forward, self.backward))
        return agree and (self.is_evidence or self.forward > 0)

    def remark(self, cause: str, outcome: str) -> str:
        """Return a remark if the direction is not known, otherwise an empty string."""
        if self.is_known:
            return ""
        unknown = "It is not known whether there is an effect:"
        if not self.is_evidence and self.forward == 0:
            return (
                f"{unknown} the graph has no path from {cause} to {outcome}, but the probabilities of its edges are "
                "not known or not used."
            )
        leads = f"a path leads from {cause} to {outcome} in {self.forward:.0%} of the graphs that may be true"
        doubt = f"{unknown} {leads}."
        if _DISAGREEMENT < self.backward < _AGREEMENT:
            doubt = f"The direction is not known: {leads}, and from {outcome} to {cause} in {self.backward:.0%}."
        return (
            f"{doubt} The average over these graphs mixes different answers; if you know the answer, state it with "
            "EdgeConstraints or structural_model(graph=...)."
        )

    def joined(self, cause: str, outcome: str, lines: Sequence[str], notes: Sequence[str]) -> str:
        """Join the lines of an answer to a text, after a remark if the direction is not known."""
        remarks = [remark] if (remark := self.remark(cause, outcome)) else []
        return "\n".join([*remarks, *(lines if self.is_known or self.forward > 0 else []), *notes])


@dataclass(frozen=True, repr=False)
class Effect:
    """The outcome when a column is set to values, on average over rows."""

    cause: str
    outcome: str
    level: Any  # whose probability is estimated; None for a numeric outcome, whose mean is estimated
    values: tuple[Any, ...]  # of the cause; for an effect ``by`` some units, that number
    answer: Answer  # arrays of shape (values,); error bars of a known world are NaN
    quantiles: Array  # of the outcome over rows, (values, 5), at 5, 25, 50, 75 and 95 %; NaN for levels
    associated: Array  # mean outcome in the rows nearest to each value, without an intervention; NaN with ``by``
    direction: Direction
    coverage: float  # of the band from low to high
    notes: tuple[str, ...]  # what to keep in mind
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
            lines = [f"{self.by:+g} in {self.cause} changes the {self.measured} by {_shown(self.answer, 0)}."]
        else:
            lines = [f"Setting {self.cause}, the {self.measured} is"]
            ends = (0, int(np.argmin(self.estimate)), int(np.argmax(self.estimate)), len(self.values) - 1)
            lines += [f"  {_shown(self.answer, i)} at {shown_value(self.values[i])}" for i in dict.fromkeys(ends)]
        return self.direction.joined(self.cause, self.outcome, lines, self.notes)

    def __repr__(self) -> str:
        return f"<Effect of {self.cause} on {self.outcome}: {len(self.values)} values>"

    def plot(self, ax: Axes | None = None, *, predicted: Array | None = None) -> Axes:
        """Draw the caused and the associated outcome, and a model's predictions at the same values if passed."""
        import matplotlib.pyplot as plt

        if self.by is not None:
            raise ValueError("an effect with by=... is a single number; to plot one, pass values=[...] to effect()")
        if predicted is not None and len(predicted) != len(self.values):
            raise ValueError(
                f"predicted has {len(predicted)} values, but the effect has {len(self.values)}; pass one for each value"
            )
        if ax is None:
            _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
        is_number = all(isinstance(value, int | float | np.number) for value in self.values)
        x = np.array(self.values, dtype=float) if is_number else np.arange(len(self.values))
        answer, styles = self.answer, (":", "--", "-") if is_number else ("s", "D", "o")
        labels = (
            "predicted: the model, with only this column changed",
            "associated: rows with such values",
            "caused: every row set to the value",
        )
        curves = (predicted, self.associated, answer.estimate)
        for curve, style, color, label in zip(curves, styles, _COLORS, labels, strict=True):
            if curve is not None:
                ax.plot(x, curve, style, color=color, label=label)
        if is_number:
            ax.fill_between(x, answer.low, answer.high, color=_COLORS[-1], alpha=0.2, linewidth=0)
        else:
            ax.vlines(x, answer.low, answer.high, color=_COLORS[-1])
            ax.set_xticks(x, [str(value) for value in self.values])
            ax.set_xlim(-0.5, len(x) - 0.5)
        title = f"Effect of {self.cause} on {self.outcome}"
        ax.set_title(title if self.direction.is_known else f"{title}: direction not known", fontsize="medium")
        ax.set(xlabel=self.cause, ylabel=self.measured)
        ax.legend(fontsize="small", frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
        return ax


@dataclass(frozen=True, repr=False)
class WhatIf:
    """The outcome under an intervention on one or several columns, with the fields of an :class:`Effect`."""

    do: dict[str, Any]  # columns and their values
    outcome: str
    level: Any
    before: float  # mean of the outcome, or share of the level, without the intervention
    after: Answer  # the same under the intervention, arrays of shape (1,)
    change: Answer
    quantiles_before: Array  # of the outcome over rows, at 5, 25, 50, 75 and 95 %; NaN for levels
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
        settings = ", ".join(f"{name} = {shown_value(value)}" for name, value in self.do.items())
        lines = [
            f"With {settings}, the {measured(self.outcome, self.level)} is {_shown(self.after, 0)}; "
            f"it is {self.before:.4g} now, a change of {_shown(self.change, 0)}."
        ]
        return self.direction.joined(" and ".join(self.do), self.outcome, lines, self.notes)

    def __repr__(self) -> str:
        return f"<WhatIf: {self.outcome} given do({', '.join(f'{n}={v!r}' for n, v in self.do.items())})>"


def measured(outcome: str, level: Any) -> str:
    """Return a description of the estimate."""
    return f"mean of {outcome}" if level is None else f"probability that {outcome} is {level}"


def _shown(answer: Answer, i: int) -> str:
    """Format one estimate with its band."""
    band = "" if np.isnan(answer.low[i]) else f" ({answer.low[i]:.4g} to {answer.high[i]:.4g})"
    return f"{answer.estimate[i]:.4g}{band}"


def shown_value(value: Any) -> str:
    """Format a value, numbers with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
