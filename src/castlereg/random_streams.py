"""One random stream for each purpose, so draws for one purpose never depend on draws for another.

A fit has one seed. Its streams determine the held-out rows, the folds, and the seed of every network. The streams of a
network determine its starting weights, the order of its batches and the draws of its regularizers.
"""

from __future__ import annotations

import zlib
from enum import IntEnum

import numpy as np


class OfFit(IntEnum):
    """Purposes of the streams of a fit."""

    NETWORKS = 0
    HELD_OUT_ROWS = 1
    FOLD_ROWS = 2
    FOLD_SEEDS = 3
    BOOTSTRAP = 5
    GRAPH = 7


class OfNetwork(IntEnum):
    """Purposes of the streams of a network."""

    SUB_NETWORK = 0  # starting weights of one node's own layers
    SHARED_LAYERS = 1
    BATCHES = 2
    FEATURES_PER_STEP = 3
    REGULARIZER_DRAWS = 4
    REGULARIZER_START = 5


def fit_stream(seed: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """Return the seed of a stream of a fit, given its purpose and, if there are several, a number."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))


def network_stream(seed: np.random.SeedSequence, *key: int) -> np.random.Generator:
    """Return a stream of the network with this seed, given its purpose and, if there are several, a number."""
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key)))


def named_stream(seed: np.random.SeedSequence, purpose: int, name: str) -> np.random.Generator:
    """Return a network's stream for a named object, such as a regularizer, independent of other objects."""
    return network_stream(seed, purpose, zlib.crc32(name.encode()))
