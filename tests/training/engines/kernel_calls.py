"""Repeat recorded calls of the kernels: ``python -m tests.training.engines.kernel_calls FILE``, with nothing but NumPy.

A sanitizer watches the kernels this way, built with ``-DCASTLEREG_SANITIZE=address``, ``undefined`` or ``thread``;
``kernels/README.md`` shows the commands. Every call is made twice, with one thread and with four, for each instruction
set; the results must be the same bits.
"""

from __future__ import annotations

import os
import pickle
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import castlereg_kernels
import numpy as np

INSTRUCTION_SETS = ("AVX-512", "AVX2", "SSE2", "NEON", "portable")


def available() -> list[str]:
    """Return the instruction sets of this processor that the kernels are compiled for."""
    before, names = os.environ.get("CASTLEREG_INSTRUCTION_SET"), []
    for name in INSTRUCTION_SETS:
        os.environ["CASTLEREG_INSTRUCTION_SET"] = name
        try:
            names.append(castlereg_kernels.instruction_set())
        except RuntimeError:
            pass
    if before is None:
        del os.environ["CASTLEREG_INSTRUCTION_SET"]
    else:
        os.environ["CASTLEREG_INSTRUCTION_SET"] = before
    return names


def repeat(calls: list[tuple[dict[str, Any], str]], n_threads: int) -> list[dict[str, Any]]:
    """Make calls, and return the arrays after them."""
    after = []
    for arrays, dtype in calls:
        trained = deepcopy(arrays)
        castlereg_kernels.train(trained, dtype, n_threads)
        after.append(trained)
    return after


def main(path: Path) -> None:
    """Repeat the calls of a file."""
    calls = pickle.loads(path.read_bytes())
    for name in available():
        os.environ["CASTLEREG_INSTRUCTION_SET"] = name
        for one, other in zip(repeat(calls, 1), repeat(calls, 4), strict=True):
            for key, value in one.items():
                if isinstance(value, np.ndarray) and value.tobytes() != other[key].tobytes():
                    sys.exit(f"{name}: {key} differs between one thread and four")
        print(f"{name}: {2 * len(calls)} calls", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
