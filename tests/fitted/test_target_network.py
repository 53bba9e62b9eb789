"""Products of rows and weights give a row the same bits wherever it stands, with the kernels of several processors."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PRODUCTS = """
import numpy as np
from castlereg.fitted.target_network import ROWS_OF_A_PRODUCT

rng = np.random.default_rng(0)
for dtype in (np.float32, np.float64):
    for n_inputs in (1, 3, 9, 10, 27, 64, 100, 128, 300):
        for n_outputs in (1, 2, 3, 8, 11, 33, 64, 128, 256):
            if n_outputs == 1 and dtype == np.float32:
                continue  # the last layer, which is in float64
            weights = rng.standard_normal((n_inputs, n_outputs)).astype(dtype)
            rows = rng.standard_normal((ROWS_OF_A_PRODUCT, n_inputs)).astype(dtype)
            moved = [(np.roll(rows, shift, axis=0) @ weights)[shift] for shift in range(len(rows))]
            assert (np.array(moved) == moved[0]).all(), (dtype, n_inputs, n_outputs)
"""


@pytest.mark.parametrize("processor", [None, "Haswell", "Nehalem"])
def test_products_do_not_depend_on_the_position_of_a_row(processor: str | None) -> None:
    """OpenBLAS reads the kind of processor when it is loaded; other libraries ignore the variable."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    if processor is not None:
        environment["OPENBLAS_CORETYPE"] = processor
    subprocess.run([sys.executable, "-c", _PRODUCTS], check=True, env=environment, timeout=120)
