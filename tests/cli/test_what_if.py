"""``castlereg what-if``, against the structural model that it asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import castlereg
from castlereg import CastleClassifier, CastleMultiOutput, CastleRegressor, EdgeConstraints, NetworkRegressor
from castlereg.causal.structural import FittedWorld
from castlereg.causal.structural.variables import Variable
from castlereg.cli import app
from castlereg.cli.assignments import assignments, given_value, listed_values, split_assignment, typed

ROWS = 120
DRAWS = ["--draws", "6"]


@pytest.fixture(scope="module")
def homes() -> pd.DataFrame:
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
def folder(homes: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("what_if")
    homes.to_csv(folder / "homes.csv", index=False)
    homes.drop(columns="price").to_csv(folder / "features.csv", index=False)
    known, options = homes.dropna(), {"max_epochs": 2, "random_state": 0}
    X = known.drop(columns=["price", "sold"])
    rules = EdgeConstraints(required=[("area", "price"), ("kind", "price")], sinks=["price"])
    models: dict[str, Any] = {
        "price": CastleRegressor(constraints=rules, n_members=2, **options).fit(X, known["price"]),
        "sold": CastleClassifier(**options).fit(X, known["sold"]),
        "both": CastleMultiOutput(**options).fit(X, known[["price", "sold"]]),
        "plain": NetworkRegressor(**options).fit(X, known["price"]),
    }
    for name, model in models.items():
        castlereg.save(model, folder / f"{name}.castle")
    return folder


@pytest.fixture(scope="module")
def world(folder: Path, homes: pd.DataFrame) -> FittedWorld:
    known = homes.dropna()
    model = castlereg.load(folder / "price.castle")
    return model.structural_model(X=known.drop(columns=["price", "sold"]), y=known["price"], n_draws=6, random_state=0)


def ask(folder: Path, *arguments: Any, model: str = "price", table: str = "homes.csv") -> Any:
    texts = ["what-if", folder / f"{model}.castle", folder / table, *arguments]
    return CliRunner().invoke(app, [*map(str, texts), *DRAWS])


def test_the_summary_is_that_of_the_model(folder: Path, world: FittedWorld) -> None:
    result = ask(folder, "--do", "area=90", "--do", "kind=new=yes", "--outcome", "price", "--coverage", 0.8)
    assert result.exit_code == 0, result.output
    expected = world.what_if({"area": 90.0, "kind": "new=yes"}, "price", coverage=0.8)
    assert result.stdout == expected.summary() + "\n"


def test_json_has_the_numbers_and_the_target_is_the_outcome(folder: Path, world: FittedWorld) -> None:
    result = ask(
        folder, "--do", "area=m²=1", "--do", "rooms=2", "--given", "area=40:120", "--given", "kind=a, b", "--json"
    )
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    given = {"area": (40, 120), "kind": "a, b"}
    expected = world.what_if({"area=m²": 1.0, "rooms": 2}, "price", given=given)
    assert facts["do"] == {"area=m²": 1.0, "rooms": 2.0} and facts["outcome"] == "price"
    assert (facts["rows"], facts["rows_without_target"]) == (ROWS - 1, 1)
    assert facts["before"] == pytest.approx(expected.before)
    for name in ("after", "change"):
        assert facts[name] == pytest.approx(expected.to_frame().loc[name].to_dict())
    assert facts["graphs_with_a_path"] == expected.direction.forward
    assert facts["direction_is_known"] is expected.direction.is_known


def test_the_effect_is_a_table_and_a_picture(folder: Path, world: FittedWorld, tmp_path: Path) -> None:
    arguments = ["--effect-of", "area", "--values", "60, 80,100", "--plot", tmp_path / "effect.png"]
    result = ask(folder, *arguments)
    assert result.exit_code == 0, result.output
    effect = world.effect("area", "price", values=[60.0, 80.0, 100.0])
    lines = result.stdout.splitlines()
    first = lines.index("The mean of price, if area is set:") + 1
    assert lines[first].split() == ["area", "caused", "low", "high", "associated"]
    for line, value, estimate in zip(lines[first + 1 :], effect.values, effect.estimate, strict=False):
        assert [float(cell) for cell in line.split()][:2] == pytest.approx([value, estimate], rel=1e-3)
    assert lines[-len(effect.notes) :] == list(effect.notes)
    assert (tmp_path / "effect.png").read_bytes().startswith(b"\x89PNG")
    facts = json.loads(ask(folder, *arguments, "--json").stdout)
    assert [row["estimate"] for row in facts["values"]] == pytest.approx(effect.estimate.tolist())
    assert facts["plot"].endswith("effect.png")


def test_without_values_the_effect_is_over_all_levels_or_the_range(folder: Path) -> None:
    facts = json.loads(ask(folder, "--effect-of", "kind", "--json").stdout)
    assert [row["value"] for row in facts["values"]] == ["a, b", "new=no", "new=yes"]
    listed = json.loads(ask(folder, "--effect-of", "kind", "--values", 'new=no,"a, b"', "--json").stdout)
    assert [row["value"] for row in listed["values"]] == ["new=no", "a, b"]
    facts = json.loads(ask(folder, "--effect-of", "day", "--json").stdout)
    assert len(facts["values"]) == 20 and facts["values"][0]["value"].startswith("2024-01")


def test_probabilities_and_several_targets(folder: Path) -> None:
    facts = json.loads(ask(folder, "--do", "area=90", "--level", "no", "--json", model="sold").stdout)
    assert facts["level"] == "no" and 0 <= facts["after"]["low"] <= facts["after"]["high"] <= 1
    assert facts["quantiles_after"] == [None] * 5
    result = ask(folder, "--do", "area=90", "--outcome", "sold", model="both")
    assert result.exit_code == 0 and "probability that sold is yes" in result.stdout
    missing = ask(folder, "--do", "area=90", model="both")
    assert missing.exit_code == 2
    assert "--outcome is missing: the model has 2 targets; choose from price, sold" in missing.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to estimate: pass --do column=value or --effect-of column"),
        (["--do", "area=9", "--effect-of", "kind"], "cannot be combined: pass one of them"),
        (["--do", "area=9", "--values", "1,2"], "--values has no effect with --do"),
        (["--do", "area=9", "--plot", "x.png"], "--plot has no effect with --do"),
        (["--effect-of", "area", "--plot", "x.csv"], "--plot x.csv: the name of a plot must end in .png, .svg or .pdf"),
        (["--effect-of", "area", "--plot", "{folder}/homes.csv"], "the name of a plot must end in"),
        (["--effect-of", "aera"], "--effect-of aera: the model has no such column; did you mean 'area'?"),
        (["--do", "aera=9"], "--do aera: the model has no such column; did you mean 'area'?"),
        (["--do", "area"], "--do area must have the form column=value"),
        (["--do", "area=big"], "the value of 'area' must be a number, got 'big'"),
        (["--do", "kind=new"], "'kind' has no level 'new'; its levels are 'a, b', 'new=no', 'new=yes'"),
        (["--do", "area=1", "--do", "area=2"], "--do area is duplicated"),
        (["--do", "price=9"], "'price' is the outcome: it cannot be set as well"),
        (
            ["--do", "area=9", "--outcome", "prize"],
            "--outcome prize: the model has no such column; did you mean 'price'?",
        ),
        (["--do", "area=9", "--given", "area=9"], "--given area=9: the column is numeric, so pass a range low:high"),
        (["--do", "area=9", "--given", "area=1:2"], "only 0 rows fulfil the conditions in given"),
        (["--do", "area=9", "--level", "yes"], "needs an outcome with levels, but 'price' is numeric"),
        (["--do", "area=9", "--coverage", "90"], "--coverage 90 must be between 0 and 1, such as 0.9"),
        (["--do", "day=soon"], "the value of 'day' must be"),
    ],
)
def test_errors_are_one_line_with_the_fix(folder: Path, arguments: list[str], message: str) -> None:
    result = ask(folder, *(argument.format(folder=folder) for argument in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("castlereg: ")


def test_a_table_without_the_target_and_a_model_without_a_graph_are_errors(folder: Path) -> None:
    result = ask(folder, "--do", "area=9", table="features.csv")
    assert result.exit_code == 2 and "has no column 'price', the model's target" in result.stderr
    result = ask(folder, "--do", "area=9", model="plain")
    assert result.exit_code == 2 and "has no graph: it was fitted without CASTLE" in result.stderr


def test_the_longest_known_column_is_meant() -> None:
    names = ["a", "a=b", "a=b=c"]
    assert split_assignment("--do", "a=b=c=1", names) == ("a=b=c", "1")
    assert split_assignment("--do", "a=x", names) == ("a", "x")
    assert assignments("--do", ["a=1", "a=b=2"], names) == {"a": "1", "a=b": "2"}
    with pytest.raises(ValueError, match="no such column; its columns are a, a=b, a=b=c"):
        split_assignment("--do", "something=1", names)


def test_texts_become_values_of_the_column() -> None:
    assert typed(Variable("c", (True, False)), "True") == "True"  # found by its name
    assert typed(Variable("n"), "x") == "x"
    assert typed(Variable("d", None, "dates"), "20240101") == "20240101"
    assert typed(Variable("t", None, "durations"), "2") == 2.0
    times = Variable("t", None, "dates")
    assert given_value(times, "2024-01-01 10:00:2024-01-02 11:30") == ("2024-01-01 10:00", "2024-01-02 11:30")
    with pytest.raises(ValueError, match="pass a range low:high"):
        given_value(Variable("n"), "1:2:3")
    assert listed_values(Variable("n"), "-1, 2.5") == [-1.0, 2.5]
