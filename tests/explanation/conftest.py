"""Models whose explanations are tested."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from castlereg import CastleRegressorCV

QUICK: dict[str, Any] = {"hidden_layer_sizes": (8,), "max_epochs": 60, "learning_rate": 0.01, "random_state": 0}


def linear_table(rows: int, seed: int = 0) -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """Two columns that the target depends on, and one of noise: y = 2 a + b + noise."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["a", "b", "noise"])
    return X, np.asarray(2 * X["a"] + X["b"] + 0.3 * rng.normal(size=rows))


def mixed_table(rows: int = 150) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Text, dates, an ordered category, a small unit and missing values; targets of numbers and of classes."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "city": rng.choice(["Oslo", "Rome", "Lima"], rows),
            "built": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, rows), "D"),
            "grade": pd.Categorical(rng.choice(["low", "mid", "top"], rows), ["low", "mid", "top"], ordered=True),
            "tiny": 1e-9 * rng.normal(size=rows),
        }
    )
    size = np.where(X["city"] == "Oslo", 2.0, 0.0) + 1e9 * X["tiny"] + 0.2 * rng.normal(size=rows)
    X.loc[::6, "city"] = None
    X.loc[1::7, "built"] = pd.NaT
    X.loc[2::9, "tiny"] = np.nan
    kind = np.array(["small", "medium", "large"])[np.digitize(size, [0, 1.5])]
    return X, pd.DataFrame({"size": size, "kind": kind})


@pytest.fixture(scope="session")
def linear_model() -> CastleRegressorCV:
    """A good model of :func:`linear_table`."""
    return CastleRegressorCV((0.001,), cv=3, **QUICK).fit(*linear_table(900))
