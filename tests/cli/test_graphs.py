"""``graph`` and ``what-if``: the same graph as in Python, and what the user knows about it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import castlereg
from castlereg import CastleClassifier, CastleRegressor, CausalGraph, EdgeConstraints, NetworkRegressor
from castlereg.cli.graphs import _assignments, _given_value, _written, typed
from castlereg.cli.options import Knowledge, listed
from tests.cli import check_rejected, done

ROWS = 120


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    area = rng.normal(80, 20, ROWS).round(1)
    kind = rng.choice(["new=yes", "new=no", "a, b"], ROWS)
    frame = pd.DataFrame(
        {"area": area, "area=m²": rng.normal(size=ROWS), "kind": kind, "rooms": rng.choice([1, 2], ROWS)}
    )
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, ROWS), unit="D")
    frame["price"] = 3 * area + 40 * (kind == "new=yes") + rng.normal(0, 9, ROWS)
    frame["sold"] = np.where(frame["price"] > 250, "yes", "no")
    frame.loc[5, "price"] = np.nan
    return frame


@pytest.fixture(scope="module")
def models(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("what_if")
    table.to_csv(folder / "homes.csv", index=False)
    table.drop(columns="price").to_csv(folder / "features.csv", index=False)
    known, options = table.dropna(), {"max_epochs": 2, "random_state": 0}
    X = known.drop(columns=["price", "sold"])
    rules = EdgeConstraints(required=[("area", "price"), ("kind", "price")], sinks=["price"])
    both = known[["price", "area"]]
    fitted: dict[str, Any] = {
        "price": CastleRegressor(constraints=rules, n_members=2, **options).fit(X, known["price"]),
        "sold": CastleClassifier(**options).fit(X, known["sold"]),
        "both": CastleRegressor(**options).fit(X.drop(columns="area"), both),
        "plain": NetworkRegressor(**options).fit(X, known["price"]),
    }
    for name, model in fitted.items():
        castlereg.save(model, folder / f"{name}.castle")
    return folder


# --- graph ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        *(("svg", "<svg"), ("dot", "digraph"), ("json", "{"), ("gml", "graph ["), ("csv", "cause,effect")),
        *(("text", "4 "), ("dagitty", "dag {")),
    ],
)
def test_graph_in_every_format(models: Path, form: str, begins: str) -> None:
    printed = done("graph", models / "homes.csv", "-t", "price", "--drop", "day", "--drop", "sold", "-f", form).stdout
    assert printed.startswith(begins if form != "text" else "5 nodes")
    assert "kind" in printed


def test_a_model_and_its_commands_have_the_same_graph(models: Path, tmp_path: Path) -> None:
    found = castlereg.load(models / "price.castle").graph_
    assert done("graph", models / "price.castle", "--json").stdout.rstrip() == found.to_json().rstrip()
    edges = pd.read_csv(io.StringIO(done("graph", models / "price.castle", "-f", "csv").stdout))
    assert edges[["cause", "effect"]].equals(found.edges()[["cause", "effect"]])
    done("graph", models / "price.castle", "-o", tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")


def discovered(models: Path, *arguments: Any) -> CausalGraph:
    of_table = ["-t", "price", "-t", "sold", "--drop", "day"]
    return CausalGraph.from_json(done("graph", models / "homes.csv", *of_table, *arguments, "--json").stdout)


def test_the_graph_of_a_table_needs_no_networks(models: Path) -> None:
    found = discovered(models, "--sink", "price", "--sink", "sold")
    assert found.targets == ("price", "sold")
    edges = found.edges()
    probable = edges[(edges["effect"] == "price") & (edges["confidence"] > 0.5)]  # unlikely ones are shown as such
    assert set(probable["cause"]) == {"area", "kind"}
    assert found.confidence.loc["area", "price"] > 0.9
    assert discovered(models, "--sink", "price", "--sink", "sold", "--confidence", 1).edges().empty


@pytest.mark.parametrize(
    ("options", "has", "lacks"),
    [
        (["--forbid", "area->price"], None, ("area", "price")),
        (["--require", "area=m²->price"], ("area=m²", "price"), None),
        (["--source", "price"], None, ("area", "price")),
        (["--tier", "price", "--tier", "area,kind,sold"], ("price", "area"), ("area", "price")),
    ],
)
def test_the_graph_obeys_what_is_known(models: Path, options: list[str], has: Any, lacks: Any) -> None:
    edges = set(discovered(models, *options).edges()[["cause", "effect"]].itertuples(index=False, name=None))
    assert has is None or has in edges
    assert lacks not in edges


def test_knowledge_adds_to_that_of_the_fit() -> None:
    before = EdgeConstraints(required=[("a", "b")], sources=["a"], tiers=[["a"], ["b"]])
    names = ["a", "b", "c", "x->y"]
    assert Knowledge().constraints(names, before) is before and Knowledge().constraints(names) is None
    known = Knowledge(sink=["c"], forbid=["b -> c", "a->x->y"]).constraints(names, before)
    expected = EdgeConstraints([("a", "b")], [("b", "c"), ("a", "x->y")], [["a"], ["b"]], ["c"], ["a"])
    assert known == expected
    tiers = Knowledge(tier=["a,c", '"b"']).constraints(names, before)
    assert tiers is not None and tiers.tiers == (("a", "c"), ("b",))


def test_beliefs_are_read_from_a_file(models: Path, tmp_path: Path) -> None:
    path, names = tmp_path / "beliefs.csv", ["a", "7", "c"]
    path.write_text("cause,effect,probability,source\na,7,0.8,a paper\n7,c,0.3,\n")
    known = Knowledge(beliefs=path).constraints(names, EdgeConstraints(beliefs=[("a", "c", 0.4)]))
    expected = [("a", "c", 0.4), ("a", "7", 0.8, "a paper"), ("7", "c", 0.3)]
    assert known == EdgeConstraints(beliefs=expected)
    path.write_text("cause,effect,probability\narea,price,0.99\n")
    done("graph", models / "homes.csv", "-t", "price", "--drop", "day", "--beliefs", path)
    path.write_text("cause,effect,probability\narea,price,1\n")
    check_rejected("use required for 1", "graph", models / "homes.csv", "-t", "price", "--beliefs", path)
    path.write_text("cause,probability\narea,0.5\n")
    check_rejected("the beliefs have no column 'effect'", "graph", models / "price.castle", "--beliefs", path)
    check_rejected("nowhere.csv", "graph", models / "price.castle", "--beliefs", tmp_path / "nowhere.csv")


def test_text_has_questions_and_lavaan_needs_plain_names(models: Path, tmp_path: Path) -> None:
    unknown = np.array([[np.nan, 0.6], [0.4, np.nan]])
    hidden = np.array([[np.nan, 0.8], [0.8, np.nan]])
    weights, joined = np.array([[0.0, 0.5], [0.0, 0.0]]), np.full((2, 2), 0.9)
    text = _written(CausalGraph(("age", "pay"), ("pay",), weights, joined, unknown, hidden_array=hidden), "text")
    assert "Questions worth asking:\nDoes age cause pay, or pay age?" in str(text)
    assert "Suspected hidden common causes:" in str(text)
    assert "confidence  direction  hidden\n" in str(text)  # without columns of which nothing is known
    empty = _written(CausalGraph.from_weights(np.zeros((2, 2)), ["a", "b"], target="b"), "text")
    assert "Questions" not in str(empty)
    check_rejected("lavaan has no form for the name 'area=m²'", "graph", models / "price.castle", "-f", "lavaan")


def test_a_failure_leaves_the_older_file(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("no picture today")

    (tmp_path / "graph.svg").write_text("older")
    monkeypatch.setattr(CausalGraph, "to_svg", fail)
    check_rejected("no picture today", "graph", models / "price.castle", "-o", tmp_path / "graph.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["graph.svg"]
    assert (tmp_path / "graph.svg").read_text() == "older"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("{m}/price.castle -o {m}/price.castle -f svg", "would overwrite the model"),
        ("{m}/price.castle -o graph.svg --json", "contradicts the format 'svg'"),
        ("{m}/price.castle -o graph", "has no suffix"),
        ("{m}/price.castle --format pgn", "did you mean 'png'?"),
        ("{m}/price.castle --drop area", "are for a table: pass its --target"),
        ("{m}/price.castle --source aera", "unknown node 'aera' in the sources; did you mean 'area'?"),
        ("{m}/price.castle --source price", "the edge 'area' -> 'price' is required, but 'price' is a source"),
        ("{m}/homes.csv", "homes.csv is a table: pass its --target, or a model"),
        ("{m}/homes.csv -t pirce", "did you mean 'price'?"),
        ("{m}/homes.csv -t price --require price", "must have the form 'cause->effect'"),
        ("{m}/homes.csv -t price -t sold --require price->sold", "a target is never an input for another"),
    ],
)
def test_errors_of_graph(models: Path, arguments: str, message: str) -> None:
    check_rejected(message, "graph", *arguments.format(m=models).split(" "))


# --- what-if --------------------------------------------------------------------------------------


def asked(models: Path, *arguments: Any, model: str = "price", table: str = "homes.csv") -> list[Any]:
    return ["what-if", models / f"{model}.castle", models / table, *arguments, "--draws", 6]


@pytest.fixture(scope="module")
def world(models: Path, table: pd.DataFrame) -> Any:
    known, model = table.dropna(), castlereg.load(models / "price.castle")
    return model.structural_model(X=known.drop(columns=["price", "sold"]), y=known["price"], n_draws=6, random_state=0)


def test_the_summary_is_that_of_the_model(models: Path, world: Any) -> None:
    arguments = ["--do", "area=90", "--do", "kind=new=yes", "--outcome", "price", "--coverage", 0.8]
    expected = world.what_if({"area": 90.0, "kind": "new=yes"}, "price", coverage=0.8)
    assert done(*asked(models, *arguments)).stdout == expected.summary() + "\n"


def test_json_has_the_numbers_and_the_target_is_the_outcome(models: Path, world: Any) -> None:
    among = ["--given", "area=40:120", "--given", "kind=a, b"]
    facts = json.loads(done(*asked(models, "--do", "area=m²=1", "--do", "rooms=2", *among, "--json")).stdout)
    expected = world.what_if({"area=m²": 1.0, "rooms": 2}, "price", given={"area": (40, 120), "kind": "a, b"})
    assert facts["do"] == {"area=m²": 1.0, "rooms": 2.0} and facts["outcome"] == "price"
    assert (facts["rows"], facts["rows_without_target"]) == (ROWS - 1, 1)
    assert facts["before"] == pytest.approx(expected.before)
    for name in ("after", "change"):
        assert facts[name] == pytest.approx(expected.to_frame().loc[name].to_dict())
    assert facts["graphs_with_a_path"] == expected.direction.forward
    assert facts["direction_is_known"] is expected.direction.is_known


def test_the_effect_is_a_table_and_a_picture(models: Path, world: Any, tmp_path: Path) -> None:
    arguments = ["--effect-of", "area", "--values", "60, 80,100", "--plot", tmp_path / "effect.png"]
    lines = done(*asked(models, *arguments)).stdout.splitlines()
    effect = world.effect("area", "price", values=[60.0, 80.0, 100.0])
    first = lines.index("The mean of price, if area is set:") + 1
    assert lines[first].split() == ["area", "caused", "low", "high", "associated"]
    for line, value, estimate in zip(lines[first + 1 :], effect.values, effect.estimate, strict=False):
        assert [float(cell) for cell in line.split()][:2] == pytest.approx([value, estimate], rel=1e-3)
    assert lines[-len(effect.notes) :] == list(effect.notes)
    assert (tmp_path / "effect.png").read_bytes().startswith(b"\x89PNG")
    facts = json.loads(done(*asked(models, *arguments, "--json")).stdout)
    assert [row["estimate"] for row in facts["values"]] == pytest.approx(effect.estimate.tolist())
    assert facts["plot"].endswith("effect.png")


def test_what_is_known_changes_the_answer(models: Path) -> None:
    question = [*asked(models, "--do", "area=120", model="sold"), "--json"]
    known = json.loads(done(*question, "--require", "area->sold").stdout)
    assert known["graphs_with_a_path"] == 1 and known["direction_is_known"] is True
    assert known["change"]["estimate"] > 0.2
    reverse = json.loads(done(*question, "--source", "area", "--sink", "area").stdout)
    assert reverse["graphs_with_a_path"] == 0 and reverse["change"]["estimate"] == 0


def test_without_values_the_effect_is_over_all_levels_or_the_range(models: Path) -> None:
    facts = json.loads(done(*asked(models, "--effect-of", "kind", "--json")).stdout)
    assert [row["value"] for row in facts["values"]] == ["a, b", "new=no", "new=yes"]
    some = json.loads(done(*asked(models, "--effect-of", "kind", "--values", 'new=no,"a, b"', "--json")).stdout)
    assert [row["value"] for row in some["values"]] == ["new=no", "a, b"]
    facts = json.loads(done(*asked(models, "--effect-of", "day", "--json")).stdout)
    assert len(facts["values"]) == 20 and facts["values"][0]["value"].startswith("2024-01")


def test_probabilities_and_several_targets(models: Path) -> None:
    facts = json.loads(done(*asked(models, "--do", "area=90", "--level", "no", "--json", model="sold")).stdout)
    assert facts["level"] == "no" and 0 <= facts["after"]["low"] <= facts["after"]["high"] <= 1
    assert facts["quantiles_after"] == [None] * 5
    done(*asked(models, "--do", "rooms=2", "--outcome", "area", model="both"))
    message = "--outcome is missing: the model has several targets; choose from price, area"
    check_rejected(message, *asked(models, "--do", "rooms=2", model="both"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to estimate: pass --do column=value or --effect-of column"),
        (["--do", "area=9", "--effect-of", "kind"], "cannot be combined: pass one of them"),
        (["--do", "area=9", "--values", "1,2"], "--values has no effect with --do"),
        (["--do", "area=9", "--plot", "x.png"], "--plot has no effect with --do"),
        (["--effect-of", "area", "--plot", "x.csv"], "--plot x.csv: the name of a plot must end in .png, .svg or .pdf"),
        (["--effect-of", "aera"], "--effect-of aera: the model has no such column; did you mean 'area'?"),
        (["--do", "aera=9"], "--do aera: the model has no such column; did you mean 'area'?"),
        (["--do", "area"], "--do area must have the form column=value"),
        (["--do", "area=big"], "the value of 'area' must be a number, got 'big'"),
        (["--do", "kind=new"], "'kind' has no level 'new'; its levels are 'a, b', 'new=no', 'new=yes'"),
        (["--do", "area=1", "--do", "area=2"], "--do area is duplicated"),
        (["--do", "price=9"], "'price' is the outcome: it cannot be set as well"),
        (["--do", "area=9", "--outcome", "prize"], "no such column; did you mean 'price'?"),
        (["--do", "area=9", "--given", "area=9"], "--given area=9: the column is numeric, so pass a range low:high"),
        (["--do", "area=9", "--given", "area=1:2"], "only 0 rows fulfil the conditions in given"),
        (["--do", "area=9", "--level", "yes"], "needs an outcome with levels, but 'price' is numeric"),
        (["--do", "area=9", "--coverage", "90"], "--coverage 90 must be between 0 and 1, such as 0.9"),
        (["--do", "day=soon"], "the value of 'day' must be"),
    ],
)
def test_errors_are_one_line_with_the_fix(models: Path, arguments: list[str], message: str) -> None:
    check_rejected(message, *asked(models, *arguments))


def test_a_table_without_the_target_is_an_error(models: Path) -> None:
    message = "has no column 'price', the model's target"
    check_rejected(message, *asked(models, "--do", "area=9", table="features.csv"))


def variable(levels: Any = None, holds: str = "numbers") -> Any:
    return SimpleNamespace(name="x", levels=levels, holds=holds)


def test_texts_become_values_of_the_column() -> None:
    assert typed(variable(), "40") == 40.0 and typed(variable((1.0, 2.0)), "2") == 2.0
    assert typed(variable(("1", "2")), "2") == "2"
    assert typed(variable((True, False)), "True") == "True"  # found by its name
    assert typed(variable(), "x") == "x"
    assert typed(variable(holds="dates"), "20240101") == "20240101"
    assert typed(variable(holds="durations"), "2") == 2.0
    times = "2024-01-01 10:00", "2024-01-02 11:30"
    assert _given_value(variable(holds="dates"), ":".join(times)) == times
    assert _given_value(variable(), "20:40") == (20.0, 40.0)
    assert _given_value(variable(("1:2", "2:1")), "1:2") == "1:2"
    with pytest.raises(ValueError, match="pass a range low:high"):
        _given_value(variable(), "1:2:3")
    assert listed("-1, 2.5") == ["-1", "2.5"]
    assert _assignments("--do", ["a=1", "a=b=2"], ["a", "a=b", "a=b=c"]) == {"a": "1", "a=b": "2"}
    with pytest.raises(ValueError, match="no such column; its columns are a, b"):
        _assignments("--do", ["something=1"], ["a", "b"])
