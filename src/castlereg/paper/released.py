"""CASTLE as the authors' released code has it, which departs from the paper.

Beside its objective, :class:`ReleasedCastle`, the released code has

- ``reg_beta`` 5, and two hidden layers of width 32;
- a start of its own: all input layers alike, output layers normal with standard deviation 1
  (``released=True`` of :func:`castlereg.network.initialize`);
- checkpoints and patience from epoch 50 on (``warmup=50`` of the schedule);
- batches that are drawn independently (``draws="independent"`` of the schedule).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from castlereg.acyclicity import AcyclicityFunction
from castlereg.objective import Pass, Sparsity
from castlereg.paper.acyclicity import truncated_series
from castlereg.regularizers import Castle


@dataclass(frozen=True)
class ReleasedCastle(Castle):
    """The objective of the authors' released code.

    The reconstruction is summed over the rows of a batch where the supervised loss is a mean, lambda multiplies
    the supervised loss, the acyclicity term is ``h + h**2 / 2`` with a series that stops at the ninth power, and the
    sparsity term is a group norm.

    Parameters
    ----------
    reg_beta : float
        Factor of the sparsity term; 5 in the released code.
    reg_lambda : float
        Factor of the supervised loss.
    reconstruction, acyclicity, sparsity, capacity, reconstruct
        As in :class:`castlereg.regularizers.Castle`.

    Examples
    --------
    >>> from castlereg import NetworkRegressor
    >>> from castlereg.paper import ReleasedCastle
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = NetworkRegressor([ReleasedCastle(5.0)], hidden_layer_sizes=(32, 32), max_epochs=5, random_state=0)
    >>> model.fit(X, y).predict(X).shape
    (442,)
    """

    acyclicity: str | AcyclicityFunction | None = truncated_series
    sparsity: Sparsity | None = "group"

    @property
    def rows_are_independent(self) -> bool:
        """Whether devices may each take some rows of a batch: no, the rows of a batch are counted."""
        return False

    def _total(self, terms: dict[str, Array], seen: Pass) -> Array:
        rows = jnp.sum(seen.batch.weight > 0)
        size = terms["sparsity"] + terms["capacity"]
        # The supervised loss is there already, once.
        supervised = (self.reg_lambda - 1) * seen.supervised
        return supervised + rows * terms["reconstruction"] + terms["acyclicity"] + self.reg_beta * size

    def _acyclicity_loss(self, seen: Pass, acyclicity: str | AcyclicityFunction) -> Array:
        h = self._cycles(seen, acyclicity)
        return h + 0.5 * h**2
