"""Native training of small networks: the engine that castlereg uses for the plans that it supports.

castlereg is the only caller of this package; :mod:`castlereg.training.engines.native` documents the arrays.
"""

from castlereg_kernels._kernels import instruction_set, train

__version__ = "0.1.0"
__all__ = ["instruction_set", "train"]
