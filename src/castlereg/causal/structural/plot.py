"""Pictures of effects: caused and associated outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from castlereg.causal.structural.effects import Effect

_CAUSED, _ASSOCIATED, _PREDICTED = "#0b6e99", "#b35c00", "#555555"


def plot_effect(effect: Effect, ax: Axes | None = None, predicted: NDArray[np.float64] | None = None) -> Axes:
    """Draw the outcome when the cause is set, with its band, and the mean outcome of rows with such values.

    Parameters
    ----------
    effect : Effect
        An effect of ``values``, not ``by`` some units.
    ax : Axes, optional
        By default new axes.
    predicted : array of shape (values,), optional
        Predictions of a model at the values.
    """
    import matplotlib.pyplot as plt

    if effect.by is not None:
        raise ValueError("an effect with by=... is a single number; to plot one, pass values=[...] to effect()")
    if ax is None:
        _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    is_number = all(isinstance(value, int | float | np.number) for value in effect.values)
    x = np.array(effect.values, dtype=float) if is_number else np.arange(len(effect.values))
    answer = effect.answer
    if predicted is not None:
        if len(predicted) != len(x):
            raise ValueError(
                f"predicted has {len(predicted)} values, but the effect has {len(x)}; pass one for each value"
            )
        style = ":" if is_number else "s"
        ax.plot(x, predicted, style, color=_PREDICTED, label="predicted: the model, with only this column changed")
    if is_number:
        ax.plot(x, effect.associated, "--", color=_ASSOCIATED, label="associated: rows with such values")
        ax.plot(x, answer.estimate, color=_CAUSED, label="caused: every row set to the value")
        ax.fill_between(x, answer.low, answer.high, color=_CAUSED, alpha=0.2, linewidth=0)
    else:
        errors = np.abs(np.stack([answer.low, answer.high]) - answer.estimate)
        ax.plot(x, effect.associated, "D", color=_ASSOCIATED, label="associated: rows with such values")
        ax.errorbar(
            x, answer.estimate, None if np.isnan(errors).any() else errors, fmt="o", color=_CAUSED, capsize=4,
            label="caused: every row set to the value",
        )  # fmt: skip
        ax.set_xticks(x, [str(value) for value in effect.values])
        ax.set_xlim(-0.5, len(x) - 0.5)
    ax.set_xlabel(effect.cause)
    ax.set_ylabel(effect.measured)
    title = f"Effect of {effect.cause} on {effect.outcome}"
    ax.set_title(title if effect.direction.is_known else f"{title}: direction not known", fontsize="medium")
    ax.legend(fontsize="small", frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
