"""The commands, from a table with text and missing values to predictions and the graph."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import castlereg
from castlereg.cli import app
from castlereg.cli.console import as_json, one_line, reason
from castlereg.cli.fit import held_out_labels
from castlereg.table.files import TableFile
from tests.fitted_models import short_pools

RUN = CliRunner()


@pytest.fixture(scope="module")
def homes() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    area = rng.normal(80, 20, 60)
    city = rng.choice(["Oslo", "Bergen", "Tromsø"], 60)
    price = 3 * area + np.where(city == "Oslo", 80, 0) + rng.normal(0, 20, 60)
    frame = pd.DataFrame({"area, m²": area, "city": city, "price": price, "sold": np.where(price > 260, "yes", "no")})
    frame.loc[::7, "city"] = None
    frame.loc[3, "price"] = None
    return frame


@pytest.fixture(scope="module")
def folder(homes: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models and what fitting them printed."""
    folder = tmp_path_factory.mktemp("homes")
    homes.to_csv(folder / "homes.csv", index=False)
    table = str(folder / "homes.csv")
    options = ["--epochs", "2", "--folds", "2", "--json"]
    price = RUN.invoke(
        app, ["fit", table, "-t", "price", "--drop", "sold", "-o", str(folder / "price.castle"), *options]
    )
    assert price.exit_code == 0, price.output
    (folder / "price.json").write_text(price.stdout)
    options = ["--beta", "0.1", "--members", "1", "--epochs", "2"]
    sold = RUN.invoke(app, ["fit", table, "-t", "sold", "--drop", "price", "-o", str(folder / "sold.castle"), *options])
    assert sold.exit_code == 0, sold.output
    (folder / "sold.txt").write_text(sold.stdout)
    return folder


def run(*arguments: Any, stdin: str | None = None) -> Any:
    return RUN.invoke(app, [str(argument) for argument in arguments], input=stdin)


def test_fit_prints_json_for_scripts(folder: Path, homes: pd.DataFrame) -> None:
    facts = json.loads((folder / "price.json").read_text())
    assert (facts["rows"], facts["rows_without_target"], facts["missing_values"]) == (
        59,
        1,
        homes["city"][homes["price"].notna()].isna().sum(),
    )
    assert facts["task"] == "regression"
    assert facts["chosen_by_folds"] is True
    model = castlereg.load(folder / "price.castle")
    assert facts["reg_beta"] == model.reg_beta_
    assert facts["held_out_loss"] == model.validation_loss_
    assert (facts["held_out"]["rows"], facts["held_out"]["by_folds"]) == (59, True)
    assert [score["measure"] for score in facts["held_out"]["scores"]] == ["R2", "RMSE", "MAE"]


def test_fit_prints_lines_for_people(folder: Path) -> None:
    printed = (folder / "sold.txt").read_text()
    assert "sold: 2 classes, so classification (override with --task)" in printed
    assert "do not prove causes" in printed
    assert "beta           0.1\n" in printed
    scores = next(line for line in printed.splitlines() if line.startswith("scores"))
    assert scores == "scores         6 validation rows are too few to score"


def test_fit_searches_a_pool(folder: Path, homes: pd.DataFrame, tmp_path: Path) -> None:
    arguments = ["-t", "price", "--drop", "sold", "--search", "fast", "--folds", "2", "--time-limit", "60", "--json"]
    with short_pools():
        run = RUN.invoke(app, ["fit", str(folder / "homes.csv"), *arguments, "-o", str(tmp_path / "pool.castle")])
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["chosen_by_folds"]
    model = castlereg.load(tmp_path / "pool.castle")
    assert model.search == "fast" and len(model.search_results_) > 10
    predicted = RUN.invoke(app, ["predict", str(tmp_path / "pool.castle"), str(folder / "homes.csv")])
    values = pd.read_csv(io.StringIO(predicted.stdout))["price"]
    np.testing.assert_allclose(values, model.predict(homes[["area, m²", "city"]]))


def test_predict_writes_what_the_model_says(folder: Path, homes: pd.DataFrame) -> None:
    result = run("predict", folder / "price.castle", folder / "homes.csv", "--interval", 0.5)
    assert result.exit_code == 0, result.output
    assert "ignoring columns that the model does not use: sold\n" in result.stderr
    written = pd.read_csv(io.StringIO(result.stdout))
    model = castlereg.load(folder / "price.castle")
    X = pd.read_csv(folder / "homes.csv")[["area, m²", "city"]]
    np.testing.assert_array_equal(written["price"], model.predict(X))
    np.testing.assert_array_equal(written[["lower", "upper"]], model.predict_interval(X, coverage=0.5))


def test_predict_in_a_pipe_with_probabilities(folder: Path, homes: pd.DataFrame) -> None:
    rows = homes[["city", "area, m²"]].head(4).assign(city=["Oslo", "Paris", None, "Bergen"])  # one is new
    result = run("predict", folder / "sold.castle", "-", "--proba", "--json", "--quiet", stdin=rows.to_csv(index=False))
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [set(line) for line in lines] == [{"sold", "P(no)", "P(yes)"}] * 4
    for line in lines:
        assert abs(line["P(no)"] + line["P(yes)"] - 1) < 1e-9
        assert (line["sold"] == "yes") == (line["P(yes)"] > line["P(no)"])


def test_json_on_standard_output_is_that_of_a_file(folder: Path, homes: pd.DataFrame, tmp_path: Path) -> None:
    dated = homes.head(3).assign(day=pd.to_datetime(["2024-01-01", "2024-01-02", None]), exact=0.1 + 0.2)
    dated.to_parquet(tmp_path / "dated.parquet")
    arguments = ["predict", folder / "price.castle", tmp_path / "dated.parquet", "--keep", "--json"]
    printed = run(*arguments).stdout
    assert run(*arguments, "-o", tmp_path / "out.jsonl").exit_code == 0
    assert printed == (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    first = json.loads(printed.splitlines()[0])
    assert (first["day"][:10], first["exact"]) == ("2024-01-01", 0.1 + 0.2)


def test_predict_keeps_columns_and_writes_tsv(folder: Path, homes: pd.DataFrame, tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    result = run("predict", folder / "sold.castle", folder / "homes.csv", "--keep", "-o", out)
    assert result.exit_code == 0, result.output
    written = pd.read_csv(out, sep="\t")
    assert list(written) == ["area, m²", "city", "price", "sold", "sold_predicted"]
    assert written["sold"].equals(homes["sold"])


@pytest.mark.parametrize("name", ["out.parquet", "out.feather", "out.jsonl", "out.csv.gz"])
def test_the_suffix_chooses_the_format_of_predictions(
    folder: Path, homes: pd.DataFrame, tmp_path: Path, name: str
) -> None:
    arguments = ["--quiet", "--interval", 0.99]  # of so few rows infinite
    result = run("predict", folder / "price.castle", folder / "homes.csv", *arguments, "-o", tmp_path / name)
    assert result.exit_code == 0, result.output
    written = TableFile.open(tmp_path / name).read()
    expected = castlereg.load(folder / "price.castle").predict(homes[["area, m²", "city"]])
    np.testing.assert_allclose(written["price"], expected, rtol=1e-12)


def test_no_two_columns_of_predictions_have_the_same_name(folder: Path, homes: pd.DataFrame) -> None:
    rows = homes.rename(columns={"sold": "lower"}).assign(price_predicted=0)
    arguments = ["predict", folder / "price.castle", "-", "--keep", "--interval", 0.5]
    result = run(*arguments, stdin=rows.to_csv(index=False))
    assert result.exit_code == 0, result.output
    added = ["price_predicted_2", "lower_predicted", "upper"]
    assert list(pd.read_csv(io.StringIO(result.stdout))) == [*rows.columns, *added]


def test_evaluate_prints_the_scores_of_the_model(folder: Path, homes: pd.DataFrame) -> None:
    result = run("evaluate", folder / "price.castle", folder / "homes.csv", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["rows"], facts["rows_without_target"]) == (59, 1)
    known = homes[homes["price"].notna()]
    expected = castlereg.evaluate(castlereg.load(folder / "price.castle"), known[["area, m²", "city"]], known["price"])
    assert [score["score"] for score in facts["scores"]] == pytest.approx(expected.to_frame()["score"].tolist())
    assert facts["scores"][-1]["constant"] is None  # the coverage of intervals
    printed = run("evaluate", folder / "sold.castle", folder / "homes.csv").stdout
    assert printed.startswith("60 rows\n\nsold, classification")


def test_report_writes_the_page_of_a_saved_model(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["report", folder / "price.castle", folder / "homes.csv", "--no-evaluate"]
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["report"] == "price.html"
    assert "price in homes.csv" in (tmp_path / "price.html").read_text()
    again = run(*arguments)
    assert again.exit_code == 2
    assert "price.html exists: pass --output price.html to replace it" in again.stderr


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("svg", "<svg"),
        ("dot", "digraph"),
        ("json", "{"),
        ("gml", "graph ["),
        ("csv", "cause,effect"),
        ("text", "3 nodes"),
    ],
)
def test_graph_in_every_form(folder: Path, form: str, begins: str) -> None:
    result = run("graph", folder / "price.castle", "--format", form, "--threshold", 0)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(begins)
    assert "city" in result.stdout


def test_graph_as_a_picture_by_the_suffix(folder: Path, tmp_path: Path) -> None:
    result = run("graph", folder / "price.castle", "-o", tmp_path / "graph.png")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "{homes}", "-t", "pirce"], "has no column 'pirce'; did you mean 'price'?"),
        (["fit", "{homes}", "-t", "price", "--drop", "Sold"], "has no column 'Sold'; did you mean 'sold'?"),
        (["fit", "{homes}", "-t", "price", "--categorical", "ctiy"], "has no column 'ctiy'; did you mean 'city'?"),
        (["fit", "{homes}", "-t", "sold", "--stream", "--categorical", "ctiy"], "did you mean 'city'?"),
        (["compare", "{homes}", "-t", "price", "--categorical", "ctiy"], "did you mean 'city'?"),
        (["fit", "{folder}/homs.csv", "-t", "price"], "homs.csv' does not exist; did you mean 'homes.csv'?"),
        (["fit", "{folder}/price.castle", "-t", "price"], "has the suffix '.castle'"),
        (["fit", "{homes}", "-t", "price", "-o", "{folder}/nowhere/model"], "nowhere first"),
        (["fit", "{homes}", "-t", "price", "-o", "{folder}"], "is a folder; name a file in it"),
        (
            ["fit", "{homes}", "-t", "city", "--task", "regression"],
            "--task regression needs a numeric target: city has",
        ),
        (["fit", "{homes}", "-t", "price", "--task", "regresion"], "did you mean 'regression'?"),
        (["fit", "{homes}", "-t", "price", "--search", "quick"], "--search quick is not one of paper, fast, best"),
        (
            ["fit", "{homes}", "-t", "price", "--search", "paper", "--time-limit", "9"],
            "--time-limit has no effect with --search paper",
        ),
        (
            ["fit", "{homes}", "-t", "price", "--beta", "0.1", "--time-limit", "9"],
            "--time-limit has no effect here",
        ),
        (
            ["fit", "{homes}", "-t", "price", "--epochs", "2", "--time-limit", "9"],
            "--time-limit cannot be combined with --epochs",
        ),
        (
            ["fit", "{homes}", "-t", "price", "--stream", "--time-limit", "9"],
            "--time-limit has no effect with --stream",
        ),
        (["fit", "{homes}", "-t", "price", "--search", "fast", "--epochs", "9"], "--epochs has no effect with"),
        (["fit", "{homes}", "-t", "price", "--search", "fast", "--beta", "1"], "--search has no effect here"),
        (["fit", "{homes}", "-t", "price", "--members", "1"], "--members has no effect on a search by folds"),
        (["fit", "{homes}", "-t", "price", "--folds", "3", "--beta", "1"], "--folds has no effect here"),
        (["fit", "{homes}", "-t", "price", "-t", "city", "--folds", "3"], "--folds has no effect here"),
        (["fit", "{homes}", "-t", "price", "--drop", "price"], "--drop price: this column is the target"),
        (["fit", "{homes}", "-t", "price", "-t", "price"], "--target price is duplicated"),
        (
            ["fit", "{homes}", "-t", "price", "-t", "sold", "--task", "regression"],
            "--task regression is for one target",
        ),
        (["fit", "{homes}", "-t", "price", "-o", "{homes}"], "would overwrite the table"),
        (["fit", "{homes}", "-t", "price", "-o", "m", "--report", "./m"], "--output and --report are the same file"),
        (["fit", "{homes}", "-t", "price", "-o", "m.csv"], "end it in .castle"),
        (["predict", "{folder}/price.castle", "{homes}", "-o", "{homes}"], "would overwrite the table"),
        (["predict", "{folder}/price.castle", "{homes}", "-o", "{folder}/price.castle"], "would overwrite the model"),
        (["predict", "{folder}/price.castle", "{homes}", "-o", "x.doc"], "cannot write a table to 'x.doc'"),
        (["predict", "{folder}/price.castle", "{homes}", "-o", "x.csv", "--json"], "--json contradicts --output x.csv"),
        (["predict", "{folder}/price.castle", "{homes}", "--interval", "1"], "must be between 0 and 1"),
        (["predict", "{homes}", "{homes}"], "homes.csv"),
        (["evaluate", "{folder}/price.castle", "{folder}/features.csv"], "has no column 'price', the model's target"),
        (["report", "{folder}/price.castle", "{homes}", "-o", "{homes}"], "would overwrite the table"),
        (["graph", "{folder}/price.castle", "-o", "{folder}/price.castle", "-f", "svg"], "would overwrite the model"),
        (["graph", "{folder}/price.castle", "-o", "graph.svg", "--json"], "contradicts the format"),
        (["graph", "{folder}/price.castle", "-o", "graph"], "has no suffix"),
        (["datasets", "--variant", "default"], "--variant needs the name of a table"),
        (["datasets", "-o", "x.csv"], "--output needs the name of a table"),
        (["datasets", "diabetes", "-o", "x.doc"], "cannot write a table"),
        (["experiment", "--all", "ablation"], "drop one of them"),
        (["predict", "{folder}/price.castle", "{folder}/empty.csv"], "cannot be read as a table"),
        (["predict", "{folder}/price.castle", "{homes}", "--proba"], "--proba is for a classifier"),
        (["predict", "{folder}/sold.castle", "{homes}", "--interval", "0.9"], "--interval is for numeric targets"),
        (["graph", "{folder}/price.castle", "--format", "pgn"], "did you mean 'png'?"),
        (["compare", "{homes}", "-t", "price", "-t", "sold"], "compare takes one --target"),
        (["datasets", "boston_hosing"], "did you mean 'boston_housing'?"),
    ],
)
def test_errors_are_one_line_with_the_fix(folder: Path, arguments: list[str], message: str) -> None:
    (folder / "empty.csv").write_text("")
    (folder / "features.csv").write_text("area,city\n80,Oslo\n")
    result = run(*(a.format(folder=folder, homes=folder / "homes.csv") for a in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    lines = [line for line in result.stderr.splitlines() if not line.startswith("castlereg: note: ")]
    assert len(lines) == 1
    assert lines[0].startswith("castlereg: ")


def test_errors_that_nobody_has_thought_of_are_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As libraries raise them when there is no memory left."""
    for error, said in (
        (SystemError("error return"), "unexpected SystemError: error return; pass --debug to see the traceback"),
        (RuntimeError("RESOURCE_EXHAUSTED: 8 GB"), "not enough memory: use fewer rows"),
    ):
        monkeypatch.setattr("castlereg.table.files.TableFile.read", _raising(error))
        result = run("fit", folder / "homes.csv", "-t", "price")
        assert result.exit_code == 2
        assert result.stderr.startswith(f"castlereg: {said}")
        assert result.stderr.count("\n") == 1


def test_a_read_error_is_not_blamed_on_standard_output() -> None:
    assert reason(OSError(errno.EIO, "Input/output error")) == "Input/output error"
    assert reason(OSError(errno.ENOSPC, "No space left")) == "standard output: No space left"
    assert reason(OSError(errno.EIO, "Input/output error", "a.csv")) == "a.csv: Input/output error"


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_columns_of_codes_are_passed_on(folder: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **options: Any) -> None:
        raise ValueError(f"codes in {options['categorical_features']}")

    monkeypatch.setattr(castlereg, "CastleRegressorCV" if command == "fit" else "compare", fail)
    result = run(command, folder / "homes.csv", "-t", "price", "--categorical", "city", "--categorical", "sold")
    assert "codes in ['city', 'sold']" in result.stderr


def test_few_held_out_rows_are_not_scored() -> None:
    held_out = {
        "rows": 10,
        "by_folds": False,
        "scores": [{"target": "y", "measure": "R2", "score": 0.5}],
        "verdicts": {},
    }
    assert held_out_labels(held_out) == {"scores": "R2 0.5 on 10 validation rows"}
    assert held_out_labels(held_out | {"rows": 9}) == {"scores": "9 validation rows are too few to score"}
    assert held_out_labels(held_out | {"rows": 1}) == {"scores": "1 validation row is too few to score"}


def _raising(error: Exception) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


def test_debug_shows_the_traceback(folder: Path) -> None:
    result = run("fit", folder / "homes.csv", "-t", "pirce", "--debug")
    assert isinstance(result.exception, ValueError)


def test_compare_prints_the_methods(folder: Path) -> None:
    arguments = [
        "-t",
        "price",
        "--drop",
        "sold",
        "--method",
        "CASTLE",
        "--method",
        "Baseline",
        "--method",
        "Deep Lasso",
        "--folds",
        2,
        "--epochs",
        2,
    ]
    result = run("compare", folder / "homes.csv", *arguments, "--json")
    assert result.exit_code == 0, result.output
    methods = json.loads(result.stdout)["methods"]
    assert {row["method"] for row in methods} == {"CASTLE", "Baseline", "Deep Lasso"}


def test_datasets_are_listed_and_written(tmp_path: Path) -> None:
    listed = json.loads(run("datasets", "--json").stdout)["tables"]
    assert {"boston_housing", "diabetes"} <= {row["name"] for row in listed}
    lines = run("datasets").stdout.splitlines()
    for row in listed:
        assert any(line.startswith(f"{row['name']} ") and line.endswith(row["title"]) for line in lines)
    result = run("datasets", "diabetes", "-o", tmp_path / "diabetes.csv")
    assert result.exit_code == 0, result.output
    assert pd.read_csv(tmp_path / "diabetes.csv").shape == (442, 11)


def test_a_failure_leaves_the_older_file(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "graph.csv"
    out.write_text("older")
    monkeypatch.setattr(castlereg.CausalGraph, "edges", _fail)
    assert run("graph", folder / "price.castle", "-o", out).exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["graph.csv"] and out.read_text() == "older"


def _fail(*_: Any) -> None:
    raise ValueError("no edges today")


def test_groups_and_times_decide_what_is_held_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.normal(size=60), "year": rng.integers(2000, 2020, 60), "rent": rng.normal(size=60)})
    rows["street"] = rows["year"] // 4
    rows.to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["-t", "rent", "--beta", 0.1, "--epochs", 1, "-o", tmp_path / "model"]
    result = run("fit", tmp_path / "rows.csv", *arguments, "--groups", "street", "--time", "year")
    assert result.exit_code == 0, result.output
    expected = castlereg.CastleRegressor(0.1, max_epochs=1, random_state=0)
    X = rows[["age", "year"]]
    expected.fit(X, rows["rent"], groups=rows["street"], time_column="year")
    np.testing.assert_array_equal(castlereg.load(tmp_path / "model").predict(X), expected.predict(X))
    for options, message in (
        (["--groups", "stret"], "did you mean 'street'?"),
        (["--time", "rent"], "has no column 'rent'"),
        (["--groups", "street", "--report", "page.html"], "--report scores the model on random folds"),
        (["--time", "year", "--stream"], "--groups and --time need the whole table in memory"),
    ):
        result = run("fit", tmp_path / "rows.csv", *arguments, *options)
        assert result.exit_code == 2
        assert message in result.stderr


@pytest.fixture(scope="module")
def streamed(folder: Path, homes: pd.DataFrame) -> Path:
    homes.dropna(subset="price").to_csv(folder / "complete.csv", index=False)
    return folder / "complete.csv"


def test_a_streamed_table_gives_the_model_of_fit_file(streamed: Path, tmp_path: Path) -> None:
    arguments = ["-t", "price", "--drop", "sold", "--stream", "--epochs", 2, "--members", 2]
    result = run("fit", streamed, *arguments, "-o", tmp_path / "model", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["task"], facts["reg_beta"], facts["chosen_by_folds"]) == ("regression", 0.01, False)
    assert facts["missing_values"] == pd.read_csv(streamed)["city"].isna().sum()
    columns = ["area, m²", "city"]
    expected = castlereg.CastleRegressor(0.01, n_members=2, max_epochs=2, random_state=0)
    expected.fit_file(streamed, "price", columns=columns)
    X = pd.read_csv(streamed)[columns]
    np.testing.assert_array_equal(castlereg.load(tmp_path / "model").predict(X), expected.predict(X))


def test_a_streamed_table_of_classes(streamed: Path) -> None:
    result = run("fit", streamed, "-t", "sold", "--stream", "--epochs", 1, "--beta", 0.1)
    assert result.exit_code == 0, result.output
    assert "sold: 2 classes, so classification" in result.stdout
    assert "read in pieces, 3 columns, 9 missing values" in result.stdout
    assert "beta           0.1\n" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{table}", "-t", "price", "--folds", "5"], "--folds has no effect with --stream"),
        (["{table}", "-t", "price", "--report", "page.html"], "--report needs the whole table in memory"),
        (["{table}", "-t", "price", "-t", "sold"], "--stream takes one --target"),
        (["-", "-t", "price"], "but standard input can be read only once"),
        (["{table}", "-t", "city", "--task", "regression"], "--task regression needs a numeric target: city has"),
        (["{table}", "-t", "pirce"], "did you mean 'price'?"),
    ],
)
def test_what_streaming_cannot_do_is_rejected(streamed: Path, arguments: list[str], message: str) -> None:
    result = run("fit", *(a.format(table=streamed) for a in arguments), "--stream")
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_version_says_which_engines_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "castlereg_kernels", None)
    assert run("--version").stdout.endswith("; engine: jax; castlereg-kernels is not installed)\n")
    kernels = SimpleNamespace(instruction_set=lambda: "AVX-512")
    monkeypatch.setitem(sys.modules, "castlereg_kernels", kernels)
    assert run("--version").stdout.endswith("; engines: native AVX-512, jax)\n")


def test_help_and_typos_wait_for_no_heavy_package() -> None:
    code = """
import sys
from castlereg.__main__ import main
typos = [["fti"], ["fit", "--tarket", "y", "x.csv"], ["fit", "nowhere.csv", "-t", "y"]]
for arguments in [["--version"], ["--help"], ["fit", "--help"], *typos]:
    sys.argv = ["castlereg", *arguments]
    try:
        main()
    except SystemExit as end:
        print(end.code)
print(sorted({"jax", "numpy", "pandas", "sklearn", "networkx", "matplotlib"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"castlereg {castlereg.__version__} (Python ")
    assert done.stdout.splitlines()[-4:] == ["2", "2", "2", "[]"]
    for hint in ("Did you mean 'fit'?", "--target", "file 'nowhere.csv' does not exist"):
        assert hint in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_ctrl_c_leaves_the_older_file_and_nothing_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noise = pd.DataFrame(rng.normal(size=(4000, 3)), columns=["a", "b", "y"]).assign(constant=1)
    noise.to_csv(tmp_path / "noise.csv", index=False)
    (tmp_path / "model").write_text("older")
    arguments = ["fit", "noise.csv", "-t", "y", "-o", "model", "--epochs", "10000"]
    command = [sys.executable, "-m", "castlereg", *arguments]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert "constant" in process.stderr.readline()  # a note, just before training
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert said.splitlines()[-1] == "castlereg: stopped"
    assert "Traceback" not in said
    assert (tmp_path / "model").read_text() == "older"
    assert {path.name for path in tmp_path.iterdir()} == {"noise.csv", "model"}


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert one_line("a\x1b[31mb\nc") == "a\\x1b[31mb c"


def test_json_has_neither_nan_nor_infinity() -> None:
    facts = {"a": np.float64("nan"), "b": [np.int64(3), float("inf")], "c": np.bool_(True)}
    assert as_json(facts) == {"a": None, "b": [3, None], "c": True}


def test_a_reader_that_closes_the_pipe_is_no_error(folder: Path) -> None:
    command = f"{sys.executable} -m castlereg graph {folder / 'price.castle'} --format svg | head -c 5"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=os.environ, check=False)
    assert done.stdout == "<svg "
    assert "Traceback" not in done.stderr
