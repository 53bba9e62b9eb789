"""Native training of small networks: the engine that castlereg takes where it covers a plan.

The package has one job, and castlereg is its only caller; :mod:`castlereg.training.engines.native` says what the arrays
hold.
"""

from castlereg_kernels._kernels import instruction_set, train

__version__ = "0.1.0"
__all__ = ["instruction_set", "train"]
