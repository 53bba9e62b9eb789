"""Which rows and which sub-networks each step sees, drawn on the host with NumPy.

Random numbers inside a compiled program triple its compile time; index arrays do not. Shapes are rounded up to a few
sizes, so that tables of different length run the same program.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.random_streams import OfNetwork, network_stream
from castlereg.regularizers import Regularizer
from castlereg.training.plan import Batches, Member, Plan


@dataclass
class BatchStream:
    """The batches of one member.

    Parameters
    ----------
    rows : array of int
        Training rows, as indices into the table.
    batch_size : int
    seed : SeedSequence
    batches : {"shuffle", "independent"}
        An epoch goes once through the rows in random order, the last batch being what is left; or it is
        ``rows // batch_size`` batches drawn independently.
    """

    rows: NDArray[np.int32]
    batch_size: int
    seed: np.random.SeedSequence
    batches: Batches = "shuffle"
    _row_rng: np.random.Generator = field(init=False)
    _feature_rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._row_rng = network_stream(self.seed, OfNetwork.BATCHES)
        self._feature_rng = network_stream(self.seed, OfNetwork.FEATURES_PER_STEP)

    @property
    def steps(self) -> int:
        """Steps in an epoch."""
        if self.batches == "independent":
            return max(1, len(self.rows) // self.batch_size)
        return -(-len(self.rows) // self.batch_size)

    def fill_rows(self, epochs: NDArray[np.int32]) -> None:
        """Draw the rows of the next epochs into an array of shape (epochs, steps, batch_size).

        Entries beyond the rows of an epoch are left as they are.
        """
        for epoch in epochs.reshape(len(epochs), -1):
            if self.batches == "shuffle":
                epoch[: len(self.rows)] = self._row_rng.permutation(self.rows)
                continue
            for start in range(0, self.steps * self.batch_size, self.batch_size):
                drawn = self._row_rng.permutation(self.rows)[: self.batch_size]
                epoch[start : start + len(drawn)] = drawn

    def fill_features(self, epochs: NDArray[np.int32], n_features: int) -> None:
        """Draw the features of each step, ascending, into an array of shape (epochs, steps, features per step)."""
        chosen = epochs.shape[-1]
        order = np.argsort(self._feature_rng.random((len(epochs) * self.steps, n_features)), axis=1)[:, :chosen]
        epochs[:, : self.steps] = np.sort(order, axis=1).reshape(len(epochs), self.steps, chosen)


@dataclass
class Draws:
    """What the members of a stack draw for the next epochs: rows, features, and the regularizers' random numbers.

    Parameters
    ----------
    members : sequence of Member
    plan : Plan
    layout : Layout
    n_sampled : int, optional
        Sub-networks that each step trains, the targets' included; None for all.
    empty_row : int
        Fills up batches.
    """

    members: Sequence[Member]
    plan: Plan
    layout: Layout
    n_sampled: int | None
    empty_row: int
    streams: list[BatchStream] = field(init=False)
    _regularizer_rngs: list[list[np.random.Generator]] = field(init=False)
    _numbers: Any = ()  # of all members, those that have finished keep their last

    def __post_init__(self) -> None:
        self.streams = [
            BatchStream(m.train_rows.astype(np.int32, copy=False), self.plan.batch_size, m.seed, self.plan.batches)
            for m in self.members
        ]
        self._regularizer_rngs = [
            [regularizer_stream(m.seed, OfNetwork.REGULARIZER_DRAWS, r) for r in m.regularizers] for m in self.members
        ]

    @property
    def steps(self) -> NDArray[np.int32]:
        """Steps in an epoch of every member."""
        return np.array([stream.steps for stream in self.streams], np.int32)

    def draw(
        self, active: NDArray[np.bool_], epochs: int, room: tuple[int, int]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32] | None, Any]:
        """Draw the next epochs for the members that still train: rows, sub-networks to train, random numbers.

        The arrays have room for some epochs and steps, at least as many as are drawn.
        """
        shape = (len(self.members), *room)
        batches = np.full((*shape, self.plan.batch_size), self.empty_row, np.int32)
        sampled = None
        if self.n_sampled is not None:
            sampled = np.zeros((*shape, self.n_sampled), np.int32)
            sampled[..., -len(self.layout.targets) :] = self.layout.targets
        for i in np.flatnonzero(active):
            self.streams[i].fill_rows(batches[i, :epochs])
            if sampled is not None:
                features = sampled[i, :epochs, :, : -len(self.layout.targets)]
                self.streams[i].fill_features(features, self.layout.n_features)
            drawn = self._drawn_by_regularizers(int(i), epochs, room)
            if not jax.tree.leaves(self._numbers):
                self._numbers = jax.tree.map(lambda a: np.zeros((len(self.members), *a.shape), a.dtype), drawn)
            jax.tree.map(lambda of_all, its, i=i: of_all.__setitem__(i, its), self._numbers, drawn)
        return batches, sampled, self._numbers

    def _drawn_by_regularizers(self, i: int, epochs: int, room: tuple[int, int]) -> Any:
        """Draw a member's random numbers, shape (epochs, steps, ...) with room."""
        steps, sizes = self.streams[i].steps, self.plan.hidden_layer_sizes
        pairs = list(zip(self.members[i].regularizers, self._regularizer_rngs[i], strict=True))
        by_epoch = [tuple(r.draw(rng, steps, sizes) for r, rng in pairs) for _ in range(epochs)]

        def padded(*drawn: NDArray[Any]) -> NDArray[Any]:
            out = np.zeros((*room, *drawn[0].shape[1:]), drawn[0].dtype)
            out[:epochs, :steps] = drawn
            return out

        return jax.tree.map(padded, *by_epoch)


def regularizer_stream(seed: np.random.SeedSequence, purpose: int, regularizer: Regularizer) -> np.random.Generator:
    """Return a member's random stream for a regularizer, whatever others are beside it."""
    return network_stream(seed, purpose, zlib.crc32(type(regularizer).__name__.encode()))
