"""``fit``, ``evaluate``, ``predict`` and ``report``, from a table with text and missing values."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import castlereg
from castlereg.cli.models import _held_out_labels
from castlereg.losses import Quantiles
from castlereg.table.files import TableFile
from tests.cli import check_rejected, done, run
from tests.fitted_models import short_pools

FEATURES = ["area, m²", "city"]

# --- fit ------------------------------------------------------------------------------------------


def test_fit_prints_json_for_scripts(folder: Path, homes: pd.DataFrame) -> None:
    facts = json.loads((folder / "price.json").read_text())
    n_missing = homes["city"][homes["price"].notna()].isna().sum()
    assert (facts["rows"], facts["rows_without_target"], facts["missing_values"]) == (59, 1, n_missing)
    assert (facts["task"], facts["search"]) == ("regression", "paper")
    model = castlereg.load(folder / "price.castle")
    assert facts["reg_beta"] == model.reg_beta_
    assert facts["held_out_loss"] == model.validation_loss_
    assert (facts["held_out"]["rows"], facts["held_out"]["by_folds"]) == (59, True)
    assert [score["measure"] for score in facts["held_out"]["scores"]] == ["R2", "RMSE", "MAE"]


def test_fit_prints_lines_for_people(folder: Path) -> None:
    printed = (folder / "sold.txt").read_text()
    assert "sold: 2 classes, so classification (override with --task)" in printed
    assert "beta           0.1\n" in printed
    assert "scores         6 validation rows are too few to score" in printed


def test_fit_searches_a_pool_within_a_time_limit(folder: Path, homes: pd.DataFrame, tmp_path: Path) -> None:
    options = ["--search", "fast", "--folds", 2, "--time-limit", 60, "--sink", "price", "--json"]
    with short_pools():
        arguments = ["-t", "price", "--drop", "sold", "-o", tmp_path / "pool.castle", *options]
        result = done("fit", folder / "homes.csv", *arguments)
    facts = json.loads(result.stdout)
    assert (facts["search"], facts["reg_beta"]) == ("fast", None)
    model = castlereg.load(tmp_path / "pool.castle")
    assert model.search == "fast" and model.constraints.sinks == ("price",)
    predicted = done("predict", tmp_path / "pool.castle", folder / "homes.csv")
    values = pd.read_csv(io.StringIO(predicted.stdout))["price"]
    np.testing.assert_allclose(values, model.predict(homes[FEATURES]))


def test_several_targets_of_one_task_are_one_model(folder: Path, tmp_path: Path) -> None:
    table = ["fit", folder / "homes.csv", "-t", "price", "-o", tmp_path / "both.castle", "--epochs", 1]
    done(*table, "-t", "area, m²", "--drop", "sold")
    predicted = pd.read_csv(io.StringIO(done("predict", tmp_path / "both.castle", folder / "homes.csv").stdout))
    assert list(predicted) == ["price", "area, m²"] and np.isfinite(predicted).all(axis=None)
    check_rejected("different tasks (price: regression, sold: classification)", *table, "-t", "sold")


def test_few_held_out_rows_are_not_scored() -> None:
    held_out: dict[str, Any] = {"rows": 10, "by_folds": False, "verdicts": {"y": "no better than a constant"}}
    held_out["scores"] = [{"target": "y", "measure": "R2", "score": 0.5}]
    assert _held_out_labels(held_out) == {"scores": "R2 0.5 on 10 validation rows; no better than a constant"}
    assert _held_out_labels(held_out | {"rows": 1}) == {"scores": "1 validation row is too few to score"}


def test_columns_of_codes_are_passed_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **options: Any) -> None:
        raise ValueError(f"codes in {options['categorical_features']}")

    monkeypatch.setattr(castlereg, "CastleRegressorCV", fail)
    arguments = ["-t", "price", "--categorical", "city", "--categorical", "sold"]
    check_rejected("codes in ['city', 'sold']", "fit", folder / "homes.csv", *arguments)


def test_groups_and_times_decide_what_is_held_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.normal(size=60), "year": rng.integers(2000, 2020, 60), "rent": rng.normal(size=60)})
    rows["street"] = rows["year"] // 4
    rows.to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["fit", tmp_path / "rows.csv", "-t", "rent", "--beta", 0.1, "--epochs", 1, "-o", tmp_path / "model"]
    done(*arguments, "--groups", "street", "--time", "year")
    X = rows[["age", "year"]]
    expected = castlereg.CastleRegressor(0.1, max_epochs=1, random_state=0)
    expected.fit(X, rows["rent"], groups=rows["street"], time_column="year")
    np.testing.assert_array_equal(castlereg.load(tmp_path / "model").predict(X), expected.predict(X))
    check_rejected("did you mean 'street'?", *arguments, "--groups", "stret")
    check_rejected("has no column 'rent'", *arguments, "--time", "rent")
    check_rejected("on random folds", *arguments, "--groups", "street", "--report", "page.html")
    check_rejected("--groups and --time need the whole table in memory", *arguments, "--time", "year", "--stream")


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(20, 80, 80), "dose": rng.normal(size=80)})
    frame["visits"] = rng.poisson(np.exp(frame["age"] / 40))
    path = tmp_path_factory.mktemp("visits") / "visits.csv"
    frame.to_csv(path, index=False)
    return path


def test_quantiles_and_directions_from_fit_to_predict(visits: Path, tmp_path: Path) -> None:
    model, options = tmp_path / "visits.castle", ["--search", "paper", "--epochs", 3, "--folds", 2]
    done("fit", visits, "-t", "visits", "-o", model, "--loss", "0.2,0.8", "--rises", "age", "--falls", "dose", *options)
    fitted = castlereg.load(model)
    assert (fitted.loss, fitted.monotone) == (Quantiles((0.2, 0.8)), {"age": 1, "dose": -1})
    frame = pd.read_csv(io.StringIO(done("predict", model, visits).stdout))
    assert list(frame) == ["visits", "visits_0.2", "visits_0.8"]
    rows = pd.read_csv(visits)[["age", "dose"]]
    np.testing.assert_allclose(frame.iloc[:, 1:], fitted.predict_quantiles(rows), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--loss", "hubber"], "loss='hubber' must be one of"),
        (["--loss", "0.9,0.1"], "levels=(0.9, 0.1) must be in ascending order"),
        (["--loss", "huber", "--task", "classification"], "--loss is for numeric targets"),
        (["--rises", "aeg"], "did you mean 'age'"),
        (["--rises", "age", "--falls", "age"], "contradict each other"),
        (["--source", "aeg"], "unknown node 'aeg' in the sources; did you mean 'age'?"),
        (["--forbid", "age"], "--forbid age must have the form 'cause->effect'"),
        (["--require", "age->dose", "--sink", "age"], "required, but 'age' is a sink"),
    ],
)
def test_options_of_targets_and_edges_are_checked(visits: Path, arguments: list[str], message: str) -> None:
    check_rejected(message, "fit", visits, "-t", "visits", *arguments)


# --- streamed tables ------------------------------------------------------------------------------


def test_a_streamed_table_gives_the_model_of_fit_file(visits: Path, tmp_path: Path) -> None:
    arguments = ["-t", "visits", "--loss", "poisson", "--stream", "--epochs", 2, "--members", 2, "--drop", "dose"]
    facts = json.loads(done("fit", visits, *arguments, "-o", tmp_path / "model", "--json").stdout)
    assert (facts["task"], facts["reg_beta"], facts["search"], facts["rows"]) == ("regression", 0.01, None, None)
    expected = castlereg.CastleRegressor(loss="poisson", n_members=2, max_epochs=2, random_state=0)
    expected.fit_file(visits, "visits", columns=["age"])
    X = pd.read_csv(visits)[["age"]]
    np.testing.assert_array_equal(castlereg.load(tmp_path / "model").predict(X), expected.predict(X))


def test_a_streamed_table_of_classes(folder: Path) -> None:
    printed = done("fit", folder / "homes.csv", "-t", "sold", "--drop", "price", "--stream", "--epochs", 1).stdout
    assert "sold: 2 classes, so classification" in printed
    assert "read in pieces, 2 columns, 9 missing values" in printed


# --- wrong usage ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fit {homes} -t pirce", "has no column 'pirce'; did you mean 'price'?"),
        ("fit {homes} -t pirce --stream", "did you mean 'price'?"),
        ("fit {homes} -t price --drop Sold", "has no column 'Sold'; did you mean 'sold'?"),
        ("fit {homes} -t price --categorical ctiy", "has no column 'ctiy'; did you mean 'city'?"),
        ("fit {homes} -t sold --stream --categorical ctiy", "did you mean 'city'?"),
        ("fit {folder}/homs.csv -t price", "homs.csv' does not exist; did you mean 'homes.csv'?"),
        ("fit {folder}/price.castle -t price", "has the suffix '.castle'"),
        ("fit {homes} -t price -o {folder}/nowhere/model", "nowhere first"),
        ("fit {homes} -t price -o {folder}", "is a folder; name a file in it"),
        ("fit {homes} -t city --task regression", "--task regression needs a numeric target: city has"),
        ("fit {homes} -t price --task regresion", "did you mean 'regression'?"),
        ("fit {homes} -t price --search quick", "--search='quick' is not one of 'fast', 'best', 'paper'"),
        ("fit {homes} -t price --search fast --beta 1", "--search and --folds have no effect with --beta"),
        ("fit {homes} -t price --members 1", "--members has no effect on a search"),
        ("fit {homes} -t price --drop price", "--drop price: this column is the target"),
        ("fit {homes} -t price -t price", "--target price is duplicated"),
        ("fit {homes} -t price -o {homes}", "would overwrite the table"),
        ("fit {homes} -t price -o m --report ./m", "--output and --report are the same file"),
        ("fit {homes} -t price -o m.csv", "end it in .castle"),
        ("fit {homes} -t price --stream --report page.html", "--report needs the whole table in memory"),
        ("fit {homes} -t price -t sold --stream", "--stream takes one --target"),
        ("fit - -t price --stream", "write standard input to a file first"),
        ("predict {folder}/price.castle {homes} -o {homes}", "would overwrite the table"),
        ("predict {folder}/price.castle {homes} -o {folder}/price.castle", "would overwrite the model"),
        ("predict {folder}/price.castle {homes} -o x.doc", "cannot write a table to 'x.doc'"),
        ("predict {folder}/price.castle {homes} -o x.csv --json", "--json contradicts --output x.csv"),
        ("predict {folder}/price.castle {homes} --interval 1", "must be between 0 and 1"),
        ("predict {folder}/price.castle {folder}/empty.csv", "cannot be read as a table"),
        ("predict {folder}/price.castle {homes} --proba", "--proba is for a classifier"),
        ("predict {folder}/sold.castle {homes} --interval 0.9", "--interval is for numeric targets"),
        ("predict {homes} {homes}", "homes.csv"),
        ("evaluate {folder}/price.castle {folder}/features.csv", "has no column 'price', the model's target"),
        ("report {folder}/price.castle {homes} -o {homes}", "would overwrite the table"),
    ],
)
def test_errors_are_one_line_with_the_fix(folder: Path, arguments: str, message: str) -> None:
    check_rejected(message, *arguments.format(folder=folder, homes=folder / "homes.csv").split(" "))


# --- predict, evaluate, report --------------------------------------------------------------------


def test_predict_writes_what_the_model_says(folder: Path) -> None:
    result = done("predict", folder / "price.castle", folder / "homes.csv", "--interval", 0.5)
    assert "ignoring columns that the model does not use: sold\n" in result.stderr
    written = pd.read_csv(io.StringIO(result.stdout))
    model = castlereg.load(folder / "price.castle")
    X = pd.read_csv(folder / "homes.csv")[FEATURES]
    np.testing.assert_array_equal(written["price"], model.predict(X))
    np.testing.assert_array_equal(written[["lower", "upper"]], model.predict_interval(X, coverage=0.5))


def test_predict_in_a_pipe_with_probabilities(folder: Path, homes: pd.DataFrame) -> None:
    rows = homes[["city", "area, m²"]].head(4).assign(city=["Oslo", "Paris", None, "Bergen"])  # one is new
    arguments = ["predict", folder / "sold.castle", "-", "--proba", "--json", "--quiet"]
    lines = [json.loads(line) for line in done(*arguments, stdin=rows.to_csv(index=False)).stdout.splitlines()]
    assert [set(line) for line in lines] == [{"sold", "P(no)", "P(yes)"}] * 4
    for line in lines:
        assert abs(line["P(no)"] + line["P(yes)"] - 1) < 1e-9
        assert (line["sold"] == "yes") == (line["P(yes)"] > line["P(no)"])


def test_json_on_standard_output_keeps_dates_and_digits(folder: Path, homes: pd.DataFrame, tmp_path: Path) -> None:
    dated = homes.head(3).assign(day=pd.to_datetime(["2024-01-01", "2024-01-02", None]), exact=0.1 + 0.2)
    dated.to_parquet(tmp_path / "dated.parquet")
    arguments = ["predict", folder / "price.castle", tmp_path / "dated.parquet", "--keep", "--json"]
    printed = done(*arguments).stdout
    done(*arguments, "-o", tmp_path / "out.jsonl")
    assert printed == (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    first = json.loads(printed.splitlines()[0])
    assert (first["day"][:10], first["exact"]) == ("2024-01-01", 0.1 + 0.2)


@pytest.mark.parametrize("name", ["out.tsv", "out.parquet", "out.feather", "out.jsonl", "out.csv.gz"])
def test_the_suffix_chooses_the_format_of_predictions(
    folder: Path, homes: pd.DataFrame, tmp_path: Path, name: str
) -> None:
    arguments = ["--quiet", "--keep", "--interval", 0.99, "-o", tmp_path / name]  # of so few rows infinite
    done("predict", folder / "price.castle", folder / "homes.csv", *arguments)
    written = TableFile.open(tmp_path / name).read()
    assert list(written) == ["area, m²", "city", "price", "sold", "price_predicted", "lower", "upper"]
    expected = castlereg.load(folder / "price.castle").predict(homes[FEATURES])
    np.testing.assert_allclose(written["price_predicted"], expected, rtol=1e-12)


def test_no_two_columns_of_predictions_have_the_same_name(folder: Path, homes: pd.DataFrame) -> None:
    rows = homes.rename(columns={"sold": "lower"}).assign(price_predicted=0)
    arguments = ["predict", folder / "price.castle", "-", "--keep", "--interval", 0.5]
    result = done(*arguments, stdin=rows.to_csv(index=False))
    added = ["price_predicted_2", "lower_predicted", "upper"]
    assert list(pd.read_csv(io.StringIO(result.stdout))) == [*rows.columns, *added]


def test_evaluate_prints_the_scores_of_the_model(folder: Path, homes: pd.DataFrame) -> None:
    facts = json.loads(done("evaluate", folder / "price.castle", folder / "homes.csv", "--json").stdout)
    assert (facts["rows"], facts["rows_without_target"]) == (59, 1)
    known = homes[homes["price"].notna()]
    expected = castlereg.evaluate(castlereg.load(folder / "price.castle"), known[FEATURES], known["price"])
    assert [score["score"] for score in facts["scores"]] == pytest.approx(expected.to_frame()["score"].tolist())
    assert facts["scores"][-1]["constant"] is None  # the coverage of intervals
    printed = done("evaluate", folder / "sold.castle", folder / "homes.csv").stdout
    assert printed.startswith("60 rows\n\nsold, classification")


def test_report_writes_the_page_of_a_saved_model(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["report", folder / "price.castle", folder / "homes.csv", "--no-evaluate"]
    assert json.loads(done(*arguments, "--json").stdout)["report"] == "price.html"
    assert "price in homes.csv" in (tmp_path / "price.html").read_text()
    check_rejected("price.html exists: pass --output price.html to replace it", *arguments)


def test_debug_shows_the_traceback(folder: Path) -> None:
    assert isinstance(run("fit", folder / "homes.csv", "-t", "pirce", "--debug").exception, ValueError)
