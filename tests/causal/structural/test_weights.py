"""Rows with weights: a structural model draws what heavy rows have more often."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg import CausalGraph
from castlereg.causal.structural import FittedWorld
from castlereg.causal.structural.variables import Variable


def test_samples_have_the_weighted_distribution() -> None:
    rng = np.random.default_rng(0)
    cause = np.r_[rng.normal(0, 1, 1000), rng.normal(5, 1, 1000)]
    effect = cause + np.r_[rng.normal(0, 0.2, 1000), rng.normal(0, 2, 1000)]
    weight = np.repeat([1.0, 9.0], 1000)
    graph = CausalGraph.from_weights(np.array([[0.0, 1.0], [0.0, 0.0]]), ["a", "b"], target="b")
    variables = [Variable("a"), Variable("b")]
    world = FittedWorld.fit(variables, np.stack([cause, effect]), graph, weight=weight, is_graph_given=True, n_draws=0)
    rows = world.sample(50_000, random_state=0)
    for name, values in (("a", cause), ("b", effect)):
        assert rows[name].mean() == pytest.approx(np.average(values, weights=weight), abs=0.1)
        assert rows[name].std() == pytest.approx(np.sqrt(np.cov(values, aweights=weight)), rel=0.05)
    explained = world.to_frame().set_index("column")["explained"]["b"]
    assert explained == pytest.approx(1 - 3.604 / float(np.cov(effect, aweights=weight)), abs=0.05)
