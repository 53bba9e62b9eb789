"""Every random stream by its purpose: what is drawn for one purpose never depends on what is drawn for another.

A fit has one seed. Its streams decide which rows are held out, how folds are cut, and the seed of every network. The
streams of a network decide its starting weights, the order of its batches and what its regularizers draw.
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
    FILE_ORDER = 6
    GRAPH = 7


class OfNetwork(IntEnum):
    """Purposes of the streams of a network."""

    SUB_NETWORK = 0  # starting weights of one node's own layers
    SHARED_LAYERS = 1
    BATCHES = 2
    FEATURES_PER_STEP = 3
    REGULARIZER_DRAWS = 4
    REGULARIZER_START = 5
    EPOCH = 6  # of training that goes on: the seed of all that one epoch draws


def fit_stream(seed: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """Return the seed of a stream of a fit: a purpose, and a number where there are several."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))


def network_stream(seed: np.random.SeedSequence, *key: int) -> np.random.Generator:
    """Return a stream of the network with this seed: a purpose, and a number where there are several."""
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key)))


def named_stream(seed: np.random.SeedSequence, purpose: int, name: str) -> np.random.Generator:
    """Return a network's stream for something with a name, such as a regularizer, whatever others are beside it."""
    return network_stream(seed, purpose, zlib.crc32(name.encode()))
