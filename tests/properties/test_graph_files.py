"""Graphs in files are the same when they are read again; damaged files give a graph without cycles or a clear error."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from castlereg import CausalGraph
from tests.properties import cases, mutated

LETTERS = st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])
ODD = st.sampled_from(["a b", '"', "\\", "a->b", "<b>", "&amp;", "1", "[", "};", "日本語", "x" * 500])
NAMES = st.text(LETTERS, min_size=1, max_size=8).filter(lambda name: name not in ("node", "edge", "graph")) | ODD
pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")  # of pydot


@st.composite
def graphs(draw: Any) -> CausalGraph:
    names = draw(st.lists(NAMES, min_size=2, max_size=6, unique=True))
    weights = np.zeros((len(names), len(names)))
    for j, k in zip(*np.triu_indices(len(names), 1), strict=True):
        weights[j, k] = draw(st.sampled_from([0.0, 0.0, 0.25, 1.0, 123.456]))
    order = draw(st.permutations(range(len(names))))
    return CausalGraph.from_weights(weights[np.ix_(order, order)], names, target=draw(st.sampled_from(names)))


def edges(graph: CausalGraph) -> dict[tuple[str, str], float]:
    return {(cause, effect): weight for cause, effect, weight in graph.edges().iloc[:, :3].itertuples(index=False)}


@pytest.mark.parametrize("form", ["json", "gml", "dot"])
@given(graph=graphs())
@cases(60)
def test_graphs_are_read_as_they_were_written(form: str, graph: CausalGraph) -> None:
    again = getattr(CausalGraph, f"from_{form}")(getattr(graph, f"to_{form}")())
    assert set(again.names) == set(graph.names) and again.targets == graph.targets
    assert edges(again) == pytest.approx(edges(graph))


@given(graph=graphs(), data=st.data())
@cases(100)
def test_damaged_graphs_have_no_cycles_or_are_rejected(graph: CausalGraph, data: Any) -> None:
    text = data.draw(mutated(graph.to_json().encode())).decode(errors="replace")
    try:
        again = CausalGraph.from_json(text)
    except ValueError as error:
        assert str(error)
    else:
        assert nx.is_directed_acyclic_graph(again.to_networkx())
