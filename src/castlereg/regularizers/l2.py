"""L2: the squares of all weights."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from castlereg.objective import Pass, weight_norm
from castlereg.options import check_number
from castlereg.regularizers.protocol import Regularizer


@dataclass(frozen=True)
class L2(Regularizer):
    """Add ``strength`` times the sum of the squared weights of every dense layer to the loss.

    Biases are free. In CASTLE the sub-networks of all columns are dense layers too.

    Parameters
    ----------
    strength : float
        The paper tries 0.1, 0.01 and 0.001.

    Examples
    --------
    Beside CASTLE:

    >>> from castlereg import CastleRegressor
    >>> from castlereg.regularizers import L2
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> CastleRegressor(regularizers=[L2(0.01)], max_epochs=20, random_state=0).fit(X, y).predict(X).shape
    (442,)
    """

    strength: float = 0.01

    def __post_init__(self) -> None:
        check_number("L2's strength", self.strength, least=0)

    @property
    def rows_are_independent(self) -> bool:
        """Whether devices may each take some rows of a batch."""
        return True

    @property
    def terms(self) -> tuple[str, ...]:
        """Name of the term."""
        return ("l2",)

    def penalty(self, seen: Pass, heads: tuple[()]) -> tuple[Array, dict[str, Array]]:
        """Return the weighted norm and the norm."""
        norm = weight_norm(seen.parameters, jnp.square, seen.node_share)
        return self.strength * norm, {"l2": norm}
