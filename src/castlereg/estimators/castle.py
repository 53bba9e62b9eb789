"""Options of the CASTLE estimators: the paper's regularizer, and additional ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

from numpy.typing import ArrayLike

from castlereg.causal.graph.constraints import EdgeConstraints
from castlereg.estimators.base import Ensemble, NetworkEstimator
from castlereg.regularizers import Castle, Regularizer
from castlereg.regularizers.castle import castle_beside
from castlereg.training.callbacks import Callback
from castlereg.training.loop import OnInterrupt

if TYPE_CHECKING:
    from castlereg.causal.graph import CausalGraph

Objective = Literal["prediction", "graph"]


@dataclass(eq=False, repr=False)
class CastleOptions(NetworkEstimator):
    """A network with the regularizer :class:`castlereg.regularizers.Castle`, and optionally others."""

    castle: Castle | Sequence[Castle] | None = field(default=None, kw_only=True)
    regularizers: Sequence[Regularizer] = field(default=(), kw_only=True)
    constraints: EdgeConstraints | None = field(default=None, kw_only=True)


@dataclass(eq=False, repr=False)
class CastleEstimator(Ensemble, CastleOptions):
    """CASTLE with fixed strengths."""

    reg_beta: float = 0.01
    reg_lambda: float = 1.0
    objective: Objective = field(default="prediction", kw_only=True)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        time_column: str | int | None = None,
        graph: CausalGraph | None = None,
        callbacks: Sequence[Callback] = (),
        on_interrupt: OnInterrupt = "raise",
    ) -> Self:
        """Train the network.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array-like of shape (rows, features)
            Numbers, text, categories, booleans and dates, with missing values. Each column is one node, whatever its
            type; ``schema_`` shows how it was read.
        y : array-like of shape (rows,) or (rows, targets)
            One or several targets, without missing values.
        sample_weight : array-like of shape (rows,), optional
            Weights of rows. An integer n is equivalent to n copies of the row; other weights multiply the row's loss.
        X_val, y_val : array-like, optional
            Validation rows for early stopping. By default a random tenth of the rows is held out, see
            :class:`castlereg.Recipe`.
        groups : array-like of shape (rows,), optional
            Labels of rows that belong together, such as the visits of one patient. No group is then in both the
            training and the validation rows.
        time_column : str or int, optional
            Name or index of a column of ``X`` with numbers or dates. The validation rows are then the latest rows,
            later than every training row. With ``groups`` they are also whole groups; groups that span all times raise.
        graph : CausalGraph, optional
            Train with only the edges of this graph, such as a learned graph that was edited. Sparsity does not act on
            these edges.
        callbacks : sequence of callable
            Functions called after epochs with an :class:`castlereg.callbacks.Epoch`; they can stop networks. See
            :class:`castlereg.callbacks.Callback`.
        on_interrupt : {"raise", "keep"}
            Effect of Ctrl-C: raise KeyboardInterrupt and leave the estimator unchanged, or end training with a warning
            and keep the best networks so far.
        """
        return self._fit(
            X,
            y,
            sample_weight,
            X_val=X_val,
            y_val=y_val,
            groups=groups,
            time_column=time_column,
            graph=graph,
            callbacks=callbacks,
            on_interrupt=on_interrupt,
        )

    def _candidates(self) -> list[tuple[Regularizer, ...]]:
        if not isinstance(self.castle, Castle | None):
            raise ValueError(f"castle={self.castle!r} must be Castle(...) or None")
        strengths = {"reg_beta": self.reg_beta, "reg_lambda": self.reg_lambda}
        return [castle_beside(self, self.castle or Castle(), objective=self.objective, **strengths)]
