"""Regularizers: one strategy per file, the protocol they share, and the engine that combines them.

An empty list is the paper's Baseline: only early stopping.
"""

from castlereg.regularizers.autoencoder import Autoencoder
from castlereg.regularizers.batch_norm import BatchNorm
from castlereg.regularizers.castle import Castle
from castlereg.regularizers.corruption import Corruption
from castlereg.regularizers.deep_lasso import DeepLasso
from castlereg.regularizers.dropout import Dropout
from castlereg.regularizers.input_noise import InputNoise
from castlereg.regularizers.l1 import L1
from castlereg.regularizers.l2 import L2
from castlereg.regularizers.mixup import MixUp
from castlereg.regularizers.protocol import Own, Regularizer
from castlereg.regularizers.tangos import Tangos

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
