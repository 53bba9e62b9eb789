"""The layered picture as SVG."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from castlereg import CausalGraph
from castlereg.causal.graph.drawing.svg import notebook_html, to_svg

SVG = "{http://www.w3.org/2000/svg}"


def chain(names: list[str], target: str) -> CausalGraph:
    return CausalGraph.from_weights(np.diag(np.linspace(0.9, 0.5, len(names) - 1), k=1), names, target=target)


def titles(svg: str) -> list[str]:
    return ["".join(title.itertext()) for title in ET.fromstring(svg).iter(f"{SVG}title")]


def labels(svg: str) -> set[str]:
    return {text.text or "" for text in ET.fromstring(svg).iter(f"{SVG}text") if text.get("class") != "caption"}


def test_edges_and_nodes_tell_what_they_are() -> None:
    networks = np.zeros((10, 2, 2))
    networks[:9, 0, 1] = 0.53 * 10 / 9
    told = titles(to_svg(CausalGraph.from_members(networks, ["age", "income"], target="income")))
    assert told == ["age -> income, weight 0.53, confidence 0.9", "age", "income, target"]
    assert titles(to_svg(chain(["age", "income"], target="income")))[0] == (
        "age -> income, weight 0.9, confidence not known: fit with n_members=20, bootstrap=True, or by cross-validation"
    )


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", 'a & "b"', "]]><g onload='x'>", "&lt;", "größe (m²)"])
def test_names_are_text_and_nothing_else(name: str) -> None:
    graph = chain([name, "other"], target=name)
    svg = to_svg(graph)
    elements = {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()}
    assert elements <= {"svg", "desc", "style", "g", "title", "path", "polygon", "rect", "text"}
    assert f"{name}, target" in titles(svg)
    assert "<script" not in svg + notebook_html(graph)
    attributes = {attribute for element in ET.fromstring(svg).iter() for attribute in element.attrib}
    assert not any(attribute.startswith("on") for attribute in attributes)


def test_characters_that_xml_cannot_hold_are_replaced() -> None:
    svg = to_svg(chain(["null \x00 and \ud800", "b\x0b"], target="b\x0b"))
    assert "null \ufffd and \ufffd" in titles(svg)
    svg.encode()


def test_the_picture_scales_and_describes_itself() -> None:
    root = ET.fromstring(to_svg(chain(["a", "b", "c"], target="c")))
    left, top, width, height = map(float, (root.get("viewBox") or "").split())
    assert float(root.get("width") or 0) / float(root.get("height") or 1) == pytest.approx(width / height, rel=0.01)
    for box in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(box.get(key) or "nan") for key in ("x", "y", "width", "height"))
        assert left <= x and x + w <= left + width and top <= y and y + h <= top + height
    assert root.get("role") == "img"
    assert root.get("aria-label") == "Graph of 3 nodes and 2 edges, target c"
    description = root.find(f"{SVG}desc")
    assert description is not None and "a -> b, weight 0.9" in (description.text or "")
    assert not [element for element in root.iter() if element.get("id")]  # ids of two pictures in a page would clash


def test_lines_without_agreed_direction_are_dashed_without_head() -> None:
    networks = np.zeros((4, 3, 3))
    networks[:2, [0, 1], [1, 2]] = 1.0
    networks[2:, [0, 2], [1, 1]] = 0.8
    root = ET.fromstring(to_svg(CausalGraph.from_members(networks, ["a", "b", "c"], target="c")))
    at_odds, sure = (group for group in root.iter(f"{SVG}g") if "edge" in (group.get("class") or ""))
    assert [path.get("stroke-dasharray") is None for path in at_odds.iter(f"{SVG}path")] == [True, False]
    assert at_odds.find(f"{SVG}polygon") is None
    assert at_odds[0].text is not None and at_odds[0].text.endswith("this direction in 50% of networks that join them")
    assert sure.find(f"{SVG}polygon") is not None
    assert "Dashed: the direction is unknown." in "".join(root.itertext())


def test_edges_and_nodes_can_be_limited() -> None:
    graph = chain(list("abcdef"), target="f")
    assert to_svg(graph, max_edges=2).count("<polygon") == 2
    some = to_svg(graph, nodes=["c", "a", "b"])
    assert labels(some) == set("abc")
    assert some.count("<polygon") == 2
    with pytest.raises(KeyError, match="unknown node 'z'"):
        to_svg(graph, nodes=["a", "z"])


def test_svg_needs_no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, module, None)
    assert to_svg(chain(["a", "b"], target="b")).startswith("<svg")


def test_a_notebook_shows_small_graphs_whole() -> None:
    shown = notebook_html(chain(list("abcdef"), target="f"))
    assert "0% of the learned weight was cut to remove cycles." in shown
    assert "Shown:" not in shown
    assert shown.count("A prediction aid, not proof of cause.") == 2  # for the eye, and in the description
    assert "neighbourhood" not in shown
    ET.fromstring(shown)


def test_a_notebook_shows_the_neighbourhood_in_large_graphs() -> None:
    names = [f"n{i}" for i in range(50)]
    names[25] = "<b>"
    shown = notebook_html(chain(names, target="<b>"))
    assert "this is the neighbourhood of &lt;b&gt;." in shown
    assert "Shown: 5 of 50 nodes, 4 of 49 edges." in shown
    assert labels(shown) == {"n23", "n24", "<b>", "n26", "n27"}
