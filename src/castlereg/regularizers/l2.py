"""L2: penalize the squares of all weights."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from castlereg.options import check_number
from castlereg.regularizers.norms import weight_norm
from castlereg.regularizers.protocol import Own, Pass, Regularizer


@dataclass(frozen=True)
class L2(Regularizer):
    """Add ``strength`` times the sum of the squared weights of every dense layer to the loss, without biases.

    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([L2(0.01)], max_epochs=2, random_state=0).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
    >>> "l2" in model.history_
    True
    """

    strength: float = 0.01  # the paper tries 0.1, 0.01 and 0.001

    terms = ("l2",)

    def __post_init__(self) -> None:
        check_number("L2's strength", self.strength, least=0)

    def penalty(self, seen: Pass, own: Own) -> tuple[Array, dict[str, Array]]:
        """Return the weighted norm and the norm."""
        norm = weight_norm(seen.parameters, jnp.square, seen.node_share)
        return self.strength * norm, {"l2": norm}
