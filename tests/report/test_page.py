"""The page, read as a browser's parser would."""

from __future__ import annotations

import base64
import builtins
import dataclasses
import hashlib
import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from castlereg import CausalGraph, write_report
from castlereg.evaluation import number
from castlereg.report import ReportContent, page, render
from castlereg.report.content import _graph_content

from .conftest import DATE, Fitted
from .handmade import HOSTILE, handmade

pytestmark = pytest.mark.xdist_group("report")  # one worker fits the model

UNTURNED = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
HANDLERS = re.compile(r"on\w+$")
VOID = {"meta", "input", "link", "img", "br", "hr"}


class Page(HTMLParser):
    """Elements with their attributes, and texts by the element they stand in."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def of(self, tag: str) -> list[str]:
        return [text for where, text in self.texts if where == tag]


@pytest.fixture(scope="module")
def hostile() -> ReportContent:
    return handmade(HOSTILE)


@pytest.fixture(scope="module")
def hostile_page(hostile: ReportContent) -> str:
    return render(hostile)


def test_hostile_names_are_shown_and_make_no_elements(hostile_page: str) -> None:
    read = Page(hostile_page)
    assert not read.open
    harmless = Page(render(handmade(tuple(f"name {k}" for k in range(len(HOSTILE))))))
    assert {tag for tag, _ in read.elements} == {tag for tag, _ in harmless.elements}
    assert not any(HANDLERS.match(name) for _, attributes in read.elements for name in attributes)
    shown = read.of("bdi")
    for name in HOSTILE:
        assert name in shown
    title, *of_nodes = read.of("title")
    assert title == f"What predicts {HOSTILE[-1]}"
    hidden = f"{HOSTILE[0]} <-> {HOSTILE[1]}: an unobserved common cause, probability 0.9"
    assert set(of_nodes) == {*HOSTILE[:-1], f"{HOSTILE[-1]}, target", hidden}
    assert sum(tag == "script" for tag, _ in read.elements) == 3


def test_names_reach_the_script_as_they_are(hostile: ReportContent, hostile_page: str) -> None:
    match = re.search(r'<script type="application/json" id="graph-data">(.*?)</script>', hostile_page, re.DOTALL)
    assert match is not None
    assert not set(match[1]) & set("<>&\u2028\u2029")
    data = json.loads(match[1])
    assert data["nodes"] == list(HOSTILE)
    assert hostile.graph is not None
    for row, edge in zip(data["edges"], hostile.graph.edges, strict=True):
        assert (HOSTILE[row[0]], HOSTILE[row[1]], *row[2:]) == edge


def test_levels_reach_the_what_if_script_as_they_are(hostile_page: str) -> None:
    match = re.search(r'<script type="application/json" id="what-if-data">(.*?)</script>', hostile_page, re.DOTALL)
    assert match is not None
    assert match[1].isascii() and not set(match[1]) & set("<>&")
    _, levels, _ = json.loads(match[1])["columns"]
    assert levels["values"] == list(HOSTILE)


def test_columns_levels_and_outcomes_of_the_panel_are_choices(hostile: ReportContent, hostile_page: str) -> None:
    options = Page(hostile_page).of("option")
    panel = hostile.what_if
    assert panel is not None
    expected = [column.name for column in panel.columns] + [outcome.text for outcome in panel.outcomes] + list(HOSTILE)
    assert options == expected


def test_the_panel_says_what_it_leaves_out_and_what_is_not_known(hostile: ReportContent, hostile_page: str) -> None:
    read = Page(hostile_page)
    panel = hostile.what_if
    assert panel is not None
    said = " ".join(" ".join(read.of("li")).split())
    assert "the 3 columns with the largest effects, of 30" in said
    assert "Shown are 2 of 9 targets and classes" in said
    assert "fitted to 50 of 100 rows" in said and "The 12 most frequent of 40 levels." in said
    assert all(caveat in said for caveat in panel.caveats)
    names = read.of("bdi")
    for column in panel.columns:
        for curve in column.curves:
            effect = curve.effect
            remark = effect.direction.remark(effect.cause, effect.outcome)
            assert all(UNTURNED.sub("", text) in names for text in [*effect.notes, *([remark] if remark else [])])
    assert said.count("A path leads from") == said.count("in 100% of the 30 graphs") == 4
    cells = read.of("td")
    assert cells.count("not known") == 4 and "1.00 (0.50 to 1.50)" in cells


def test_without_scripts_every_effect_has_a_picture_and_rows(hostile: ReportContent, hostile_page: str) -> None:
    elements = Page(hostile_page).elements
    figures = [a for tag, a in elements if tag == "figure" and "data-outcome" in a]
    assert len(figures) == 6
    assert [a["data-outcome"] for a in figures if "hidden" not in a] == ["0"] * 3
    assert sum(tag == "button" and "data-choose" in a for tag, a in elements) == 6
    assert not any("hidden" in a for tag, a in elements if tag == "tbody")


def test_without_a_panel_there_is_none_of_it(hostile: ReportContent) -> None:
    text = render(dataclasses.replace(hostile, what_if=None))
    assert 'href="#what-if"' not in text and 'id="what-if' not in text


def test_characters_that_html_cannot_hold_are_replaced(hostile: ReportContent) -> None:
    text = render(dataclasses.replace(hostile, title="null \x00 and \ud800"))
    assert "null \ufffd and \ufffd" in Page(text).of("title")
    text.encode()


def test_nothing_comes_from_elsewhere() -> None:
    text = render(handmade(tuple("abcdefg")))
    policy = next(a["content"] for tag, a in Page(text).elements if a.get("http-equiv") == "Content-Security-Policy")
    without_hash = text.replace(policy, "")
    for outside in ("http:", "https:", "//", "url(", "@import", "src=", "<link", "<iframe", "<object"):
        assert outside not in without_hash, outside
    assert all(a["href"].startswith("#") for _, a in Page(text).elements if "href" in a)


def test_the_policy_lets_the_one_script_run_and_nothing_else(hostile_page: str) -> None:
    read = Page(hostile_page)
    policy = next(a["content"] for _, a in read.elements if a.get("http-equiv") == "Content-Security-Policy")
    script = re.findall(r"<script>(.*?)</script>", hostile_page, re.DOTALL)[-1]
    expected = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{expected}'"
    assert rules["style-src"] == "'unsafe-inline'"
    assert rules["img-src"] == "data:"


def test_every_number_of_the_scores_is_on_the_page(content: ReportContent) -> None:
    text = render(content)
    read = Page(text)
    assert content.evaluation is not None
    scores = content.evaluation.targets[0]
    cells = [a["data-value"] for tag, a in read.elements if tag == "td" and "data-value" in a][:15]
    expected = [measure.scores[row].value for row in range(5) for measure in scores.measures]
    assert list(map(float, cells)) == expected
    shown = read.of("span")
    for measure in scores.measures:
        for score in measure.scores:
            assert number(score.value, measure.decimals) in shown
    for difference in scores.differences:
        assert number(difference.value, difference.decimals) in shown and difference.verdict in shown
    said = " ".join(read.of("p") + read.of("strong"))
    assert all(sentence in said for sentence in scores.verdict)
    assert sum(tag == "circle" and a.get("r") == "2.6" for tag, a in read.elements) == 60


def test_every_edge_is_a_row_and_its_lines_have_its_rank(content: ReportContent) -> None:
    read = Page(render(content))
    graph = content.graph
    assert graph is not None
    ranks = [int(a["data-rank"]) for tag, a in read.elements if tag == "tr" and "data-rank" in a]
    assert ranks == list(range(len(graph.edges)))
    drawn = [int(a["data-rank"]) for tag, a in read.elements if tag == "g" and "data-rank" in a]
    assert drawn == [rank for view in graph.views for rank in view.ranks]
    assert graph.not_proof in read.of("strong")
    assert all(line in read.of("bdi") for line in graph.summary)


def test_controls_have_names_and_regions_can_be_scrolled_by_keyboard(hostile_page: str) -> None:
    read = Page(hostile_page)
    labels = {a["for"] for tag, a in read.elements if tag == "label" and "for" in a}
    for tag, a in read.elements:
        if tag == "select" or (tag == "input" and a["type"] != "checkbox"):
            assert a["id"] in labels
        if tag == "svg":
            assert a["aria-label"]
        if "scroll" in a.get("class", "").split():
            assert a["tabindex"] == "0" and a["aria-label"]
    ids = [a["id"] for _, a in read.elements if "id" in a]
    assert len(ids) == len(set(ids))
    targets = {a["href"][1:] for tag, a in read.elements if tag == "a"}
    assert targets <= set(ids) and "main" in targets


def test_headings_tables_and_language_are_as_screen_readers_need_them(hostile_page: str) -> None:
    read = Page(hostile_page)
    assert next(a["lang"] for tag, a in read.elements if tag == "html") == "en"
    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all(a.get("scope") in ("col", "row") for tag, a in read.elements if tag == "th")
    labelled = {a["aria-labelledby"] for tag, a in read.elements if tag == "section"}
    assert labelled <= {a["id"] for tag, a in read.elements if tag == "h2"}
    assert all(a.get("type") == "button" for tag, a in read.elements if tag == "button")


def test_without_scripts_every_edge_can_be_read(hostile: ReportContent, hostile_page: str) -> None:
    assert hostile.graph is not None and hostile.graph.shown > 0
    content = dataclasses.replace(hostile, graph=hostile.graph._replace(shown=1))
    elements = Page(render(content)).elements
    rows = [a for tag, a in elements if tag == "tr" and "data-rank" in a]
    assert len(rows) == hostile.graph.n_edges and not any("hidden" in a for a in rows)
    assert not any("off" in a.get("class", "").split() for tag, a in elements if tag == "g")


def test_confidence_that_is_not_known_is_a_dash() -> None:
    weights = np.triu(np.arange(36.0).reshape(6, 6), 1)
    graph = _graph_content(CausalGraph.from_weights(weights, list("abcdef"), target="f"))
    text = render(dataclasses.replace(handmade(tuple("abcdef"), n_edges=8), graph=graph))
    assert "NaN" not in re.search(r'id="graph-data">(.*?)</script>', text)[1]  # type: ignore[index]
    edges = [a["aria-label"] for tag, a in Page(text).elements if tag == "g" and "data-rank" in a]
    assert edges and all(label.endswith("confidence not known") for label in edges)


def luminance(color: str) -> float:
    parts = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("least", "front", "backs"),
    [
        (4.5, "ink", ("paper", "card", "node", "target", "accent-soft", "faint")),
        (4.5, "soft", ("paper", "card")),
        (4.5, "accent", ("paper", "card")),
        (3.0, "slate", ("paper", "card")),
        (3.0, "found", ("paper", "card", "node")),
    ],
)
def test_colours_have_the_contrast_of_wcag_aa(scheme: int, least: float, front: str, backs: tuple[str, ...]) -> None:
    style = (Path(page.__file__).parent / "templates" / "page.css").read_text("utf-8")
    colours = {name: pair for name, *pair in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", style)}
    for back in backs:
        dark, bright = sorted(luminance(colours[name][scheme]) for name in (front, back))
        assert (bright + 0.05) / (dark + 0.05) >= least, back


def test_without_evaluation_or_graph_the_page_says_so(content: ReportContent) -> None:
    text = render(dataclasses.replace(content, evaluation=None, graph=None, what_if=None))
    assert "evaluate=False" in Page(text).of("code")
    assert "graph-data" not in text.split("<script>")[0]
    assert 'href="#graph"' not in text


def test_a_graph_without_edges_and_one_epoch_make_a_page(content: ReportContent) -> None:
    assert content.graph is not None
    empty = _graph_content(CausalGraph.from_weights(np.zeros((3, 3)), list("abc"), target="c"))
    line = ((1.0,), (0.5,))
    curves = tuple(c._replace(members=(line,), mean=line, best=line) for c in content.training.curves)
    training = content.training._replace(curves=curves)
    assert "0 edges" in render(dataclasses.replace(content, graph=empty, training=training))


def test_the_same_model_gives_the_same_bytes(fitted: Fitted, content: ReportContent, tmp_path: Path) -> None:
    path = write_report(*fitted, tmp_path / "new" / "report.html", cv=2, date=DATE, title="A & B")
    assert path.read_bytes() == render(dataclasses.replace(content, title="A & B")).encode()


def test_a_missing_extra_is_named_before_any_training(fitted: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_jinja(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "jinja2":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    page._template.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without_jinja)
    with pytest.raises(ImportError, match=r"pip install 'castlereg\[report\]'"):
        write_report(*fitted, "never.html")
