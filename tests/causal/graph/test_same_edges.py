"""One fitted graph with weak edges: every list, picture, file and count has the same edges."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import FancyArrowPatch
from typer.testing import CliRunner

import castlereg
from castlereg import CausalGraph
from castlereg.causal.graph.drawing.picture import picture, shown_of, strongest_edges
from castlereg.cli import app
from castlereg.cli.fit import used_columns
from castlereg.report.graph_view import graph_content
from tests.fitted_models import fitted

# Of pydot, which calls its parser by old names.
pytestmark = [
    pytest.mark.xdist_group("model files"),
    pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning"),
]
Edges = set[tuple[str, str]]


def listed(graph: CausalGraph) -> Edges:
    return set(graph.edges()[["cause", "effect"]].itertuples(index=False, name=None))


def in_svg(svg: str) -> Edges:
    titles = ("".join(title.itertext()) for title in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}title"))
    return {(edge[1], edge[2]) for title in titles if (edge := re.match(r"(.+) -> (.+), weight", title))}


@pytest.fixture(scope="module", params=["as learned", "all weights"])
def graph(request: pytest.FixtureRequest) -> CausalGraph:
    learned: CausalGraph = fitted("CastleClassifier").model.graph_
    return learned if request.param == "as learned" else learned.above(0)


def test_lists_files_and_counts_have_the_same_edges(graph: CausalGraph) -> None:
    edges = listed(graph)
    assert edges < set(map(tuple, np.array(graph.nodes)[np.argwhere(graph.learned_array)].tolist()))  # some were cut
    assert edges == {(graph.names[j], graph.names[k]) for j, k in np.argwhere(graph.edge_array)}
    assert edges == {(cause, effect) for effect in graph.nodes for cause in graph.parents(effect)}
    assert edges == {(cause, effect) for cause in graph.nodes for effect in graph.children(cause)}
    assert edges == set(graph.to_networkx().edges)
    for again in (
        CausalGraph.from_gml(graph.to_gml()),
        CausalGraph.from_dot(graph.to_dot()),
        CausalGraph.from_json(graph.to_json()),
    ):
        assert listed(again) == edges
    assert {(edge.cause, edge.effect) for edge in graph_content(graph).edges} == edges
    assert f", {len(edges)} edges" in graph.summary().splitlines()[0] and f" {len(edges)} edges" in repr(graph)
    joined = {*graph.parents(graph.target), *graph.children(graph.target)}
    assert {*graph.parents(graph.target)} <= {*used_columns(graph, graph.target)} <= joined


def test_pictures_have_the_same_edges_or_say_how_many(graph: CausalGraph) -> None:
    mpl.use("agg")
    import matplotlib.pyplot as plt

    edges = listed(graph)
    assert in_svg(graph.to_svg(max_edges=99)) == edges
    assert sum(isinstance(patch, FancyArrowPatch) for patch in graph.plot(max_edges=99).patches) == len(edges)
    plt.close("all")
    shown = in_svg(graph.to_svg(max_edges=3))
    assert shown < edges and len(shown) == 3
    said = f"Shown: the 3 strongest of {len(edges)} edges."
    assert shown_of(graph, 3) == said and said in graph.to_svg(max_edges=3)
    assert said in picture(graph, strongest_edges(graph, graph.nodes, 3), graph.nodes).caption
    assert "Shown:" not in graph.to_svg(max_edges=99)
    assert f"Shown: 2 of {len(graph.nodes)} nodes, " in graph.to_svg(nodes=graph.nodes[:2])


def test_the_command_line_has_the_same_edges(tmp_path: Path) -> None:
    model = fitted("CastleClassifier").model
    castlereg.save(model, tmp_path / "m.castle")

    def printed(form: str) -> str:
        result = CliRunner().invoke(app, ["graph", str(tmp_path / "m.castle"), "--format", form])
        assert result.exit_code == 0, result.output
        return result.stdout

    edges = listed(model.graph_)
    table = pd.read_csv(io.StringIO(printed("csv")))
    assert set(table[["cause", "effect"]].itertuples(index=False, name=None)) == edges
    assert table[["confidence", "direction"]].isna().all(axis=None)
    assert listed(CausalGraph.from_json(printed("json"))) == edges
    assert listed(CausalGraph.from_gml(printed("gml"))) == edges
    summary, _, rows = printed("text").partition("\n\n")
    assert {(line.split()[0], line.split()[1]) for line in rows.splitlines()[1:]} == edges
    assert summary == model.graph_.summary()
