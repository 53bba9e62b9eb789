"""A row has the same prediction wherever it is among the others, with the matrix products of several processors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from castlereg.fitted.target_network import ROWS_OF_A_PRODUCT, TargetNetwork
from tests.fitted.test_target_network import drawn


@pytest.mark.parametrize("processor", [None, "Haswell", "Nehalem"])
def test_predictions_do_not_depend_on_the_position_of_a_row(processor: str | None) -> None:
    """OpenBLAS reads the type of the processor when it is loaded; other libraries ignore the variable."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    if processor is not None:
        environment["OPENBLAS_CORETYPE"] = processor
    command = f"from {__name__} import check_positions; check_positions()"
    subprocess.run(
        [sys.executable, "-c", command], check=True, env=environment, cwd=Path(__file__).parents[2], timeout=240
    )


def check_positions() -> None:
    """Compare the outputs of networks on the same rows in other orders."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2 * ROWS_OF_A_PRODUCT, 3))
    for embedding in (0, 3, 8):
        for sizes in ((), (6,), (32,), (11, 11), (64, 64), (128,), (33, 100)):
            network = TargetNetwork.of(drawn(rng, embedding, sizes, "relu"))
            expected = network.outputs(x, {})
            for shift in range(1, len(x)):
                moved = np.roll(network.outputs(np.roll(x, shift, axis=0), {}), -shift, axis=0)
                np.testing.assert_array_equal(moved, expected, err_msg=f"{embedding=}, {sizes=}, {shift=}")
