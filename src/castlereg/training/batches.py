"""Which rows and which sub-networks each step sees, drawn on the host with NumPy.

Random numbers inside a compiled program triple its compile time; index arrays do not. Shapes
are rounded up to a few sizes, so that tables of different length run the same program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Draws = Literal["shuffle", "independent"]


@dataclass
class BatchPlan:
    """The stream of batches of one member.

    Parameters
    ----------
    rows : array of int
        Training rows, as indices into the table.
    batch_size : int
    seed : SeedSequence
        Rows and features have a stream each, so that what is drawn does not depend on how epochs are cut into calls.
    draws : {"shuffle", "independent"}
        An epoch goes once through the rows in random order, the last batch being what is left; or it is
        ``rows // batch_size`` batches drawn independently, as in the released code.
    """

    rows: NDArray[np.int32]
    batch_size: int
    seed: np.random.SeedSequence
    draws: Draws = "shuffle"

    def __post_init__(self) -> None:
        rows, features = (
            np.random.SeedSequence(self.seed.entropy, spawn_key=(*self.seed.spawn_key, k)) for k in (2, 3)
        )
        self._row_rng, self._feature_rng = np.random.default_rng(rows), np.random.default_rng(features)

    @property
    def steps(self) -> int:
        """Steps in an epoch."""
        if self.draws == "independent":
            return max(1, len(self.rows) // self.batch_size)
        return -(-len(self.rows) // self.batch_size)

    def fill(self, batches: NDArray[np.int32], sampled: NDArray[np.int32] | None, n_features: int) -> None:
        """Draw the next epochs.

        Parameters
        ----------
        batches : array of shape (epochs, steps, batch_size)
            Written in place; places beyond the rows of an epoch are left as they are.
        sampled : array of shape (epochs, steps, nodes), optional
            Written in place: features to reconstruct in each step, ascending, in front of the targets.
        n_features : int
        """
        flat = batches.reshape(len(batches), -1)
        for epoch in flat:
            if self.draws == "shuffle":
                epoch[: len(self.rows)] = self._row_rng.permutation(self.rows)
            else:
                for start in range(0, self.steps * self.batch_size, self.batch_size):
                    drawn = self._row_rng.permutation(self.rows)[: self.batch_size]
                    epoch[start : start + len(drawn)] = drawn
        if sampled is not None:
            n_targets = _targets_at_the_end(sampled, n_features)
            chosen = sampled.shape[-1] - n_targets
            steps = sampled[:, : self.steps].reshape(-1, sampled.shape[-1])
            order = np.argsort(self._feature_rng.random((len(steps), n_features)), axis=1)[:, :chosen]
            steps[:, :chosen] = np.sort(order, axis=1)
            sampled[:, : self.steps] = steps.reshape(len(sampled), self.steps, -1)


def _targets_at_the_end(sampled: NDArray[np.int32], n_features: int) -> int:
    return int(np.count_nonzero(sampled[0, 0] >= n_features))
