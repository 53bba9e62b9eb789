"""L1: penalize the absolute values of all weights."""

from __future__ import annotations

from dataclasses import dataclass

from jax import Array

from castlereg.network import absolute
from castlereg.options import check_number
from castlereg.regularizers.norms import weight_norm
from castlereg.regularizers.protocol import Own, Pass, Regularizer


@dataclass(frozen=True)
class L1(Regularizer):
    """Add ``strength`` times the sum of the absolute weights of every dense layer to the loss, without biases.

    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([L1(0.01)], max_epochs=2, random_state=0).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
    >>> "l1" in model.history_
    True
    """

    strength: float = 0.01  # the paper tries 0.1, 0.01 and 0.001

    terms = ("l1",)

    def __post_init__(self) -> None:
        check_number("L1's strength", self.strength, least=0)

    def penalty(self, seen: Pass, own: Own) -> tuple[Array, dict[str, Array]]:
        """Return the weighted norm and the norm."""
        norm = weight_norm(seen.parameters, absolute, seen.node_share)
        return self.strength * norm, {"l1": norm}
