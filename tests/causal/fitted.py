"""Small worlds with fitted structural models, shared by the tests."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from castlereg.causal import CausalGraph, FittedWorld, KnownWorld
from castlereg.causal.variables import Variables

CHAIN = pd.DataFrame(0.0, index=list("abcd"), columns=list("abcd"))
CHAIN.loc["a", "b"], CHAIN.loc["a", "c"], CHAIN.loc["b", "c"], CHAIN.loc["c", "d"] = 1.0, -1.0, 2.0, 0.5


def fitted_to(rows: pd.DataFrame, dag: pd.DataFrame, weight: Any = None, **options: Any) -> FittedWorld:
    graph = CausalGraph.from_weights((dag != 0).to_numpy().astype(float), list(dag), list(dag)[-1])
    table = Variables.of_frame(rows, weight=weight)
    return FittedWorld.fit(table, graph, **{"is_graph_given": True, "n_draws": 20} | options)


@lru_cache(maxsize=4)
def linear_world(n_rows: int = 1000) -> tuple[KnownWorld, pd.DataFrame, FittedWorld]:
    world = KnownWorld(CHAIN, function="linear", noise="laplace")
    rows = world.sample(n_rows, random_state=0)
    return world, rows, fitted_to(rows, CHAIN)


@lru_cache(maxsize=2)
def mixed_world() -> tuple[KnownWorld, pd.DataFrame, FittedWorld]:
    world = KnownWorld(1.5 * CHAIN, function="sine", categorical={"b": 3, "d": 2}, random_state=3)
    rows = world.sample(1500, random_state=1)
    return world, rows, fitted_to(rows, CHAIN)


def with_missing(rows: pd.DataFrame, share: float = 0.1) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return rows.mask(pd.DataFrame(rng.random(rows.shape) < share, rows.index, rows.columns))
