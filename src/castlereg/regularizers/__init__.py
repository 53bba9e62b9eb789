"""Regularizers: strategies that share one protocol, and the engine that combines them.

An empty list is the paper's Baseline: only early stopping.
"""

from castlereg.regularizers.batch_norm import BatchNorm
from castlereg.regularizers.castle import Castle
from castlereg.regularizers.noise import Corruption, Dropout, InputNoise, MixUp
from castlereg.regularizers.penalties import L1, L2, Autoencoder, DeepLasso, Tangos
from castlereg.regularizers.protocol import Own, Regularizer

__all__ = [
    "L1",
    "L2",
    "Autoencoder",
    "BatchNorm",
    "Castle",
    "Corruption",
    "DeepLasso",
    "Dropout",
    "InputNoise",
    "MixUp",
    "Own",
    "Regularizer",
    "Tangos",
]
