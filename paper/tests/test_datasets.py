"""Files are read as text, checked and found in order; tables become problems; nothing of the user's is overwritten."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from castlereg import CastleClassifier, CastleRegressor
from castlereg_paper.catalogue import GRAPHS, TABLES, all_files
from castlereg_paper.datasets import (
    ColumnFigures,
    Dataset,
    as_cells,
    catalogue,
    data_folder,
    differences,
    figures_of,
    from_json,
    in_one_spelling,
    known_figures,
    load,
    load_graph_data,
    load_pairs,
    numbers_in,
    read_cells,
    to_json,
    typed,
    write_figures,
    write_whole,
)
from castlereg_paper.datasets import folders as search_folders
from conftest import MadeUp


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_nothing_is_interpreted_when_a_file_is_read(tmp_path: Path) -> None:
    cells = read_cells(written(tmp_path / "a.csv", 'n,n,t\n1.50,NA,"x, y"\n007,,null\n'))
    assert list(cells.columns) == ["n", "n", "t"]  # a name that occurs twice stays as it is
    assert cells.to_numpy().tolist() == [["1.50", "NA", "x, y"], ["007", "", "null"]]


def test_line_ends_and_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    plain = read_cells(written(tmp_path / "a.csv", "a,b\n1,2\n"))
    windows = read_cells(written(tmp_path / "b.csv", b"\xef\xbb\xbfa,b\r\n1,2\r\n"))
    pd.testing.assert_frame_equal(plain, windows)


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n1,2,3\n", b"\xff\xfe\x00a\x81", 'a,b\n"1,2\n'])
def test_what_is_not_a_table_raises_with_its_path(content: str | bytes, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a\.csv is not a comma-separated table"):
        read_cells(written(tmp_path / "a.csv", content))


def test_a_row_that_ends_early_has_empty_cells(tmp_path: Path) -> None:
    assert read_cells(written(tmp_path / "a.csv", "a,b,c\n1,2,3\n4\n")).iloc[1].tolist() == ["4", "", ""]


def test_spelling_survives_writing_and_reading_by_pandas(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    numbers = [f"{value:.6g}" for value in rng.lognormal(sigma=8, size=500)]
    path = written(tmp_path / "a.csv", "a\n" + "\n".join(numbers))
    by_pandas = as_cells(pd.read_csv(path))
    assert in_one_spelling(read_cells(path))["a"].tolist() == in_one_spelling(by_pandas)["a"].tolist()


@pytest.mark.parametrize("text", ["inf", "1_000", "1,5", "0x10", "\u0663", " 1", "1e", "."])
def test_only_plain_decimal_numbers_are_numbers(text: str) -> None:
    assert numbers_in(pd.Series(["1", text], dtype=object)) is None


def test_typed_columns() -> None:
    cells = {
        "whole": ["1.0", "2", "-3"],
        "some": ["1", "?", "3"],
        "marked": ["1", "NA", "nan"],
        "text": ["a", "?", "b"],
        "none": ["", "?", "NULL"],
    }
    table = typed(pd.DataFrame(cells, dtype=object))
    assert table["whole"].dtype == np.int64
    np.testing.assert_array_equal(table["some"], [1, np.nan, 3])
    np.testing.assert_array_equal(table["marked"], [1, np.nan, np.nan])
    assert table["text"].cat.categories.tolist() == ["a", "b"]
    assert table["text"].isna().tolist() == [False, True, False]
    assert table["none"].isna().all()


@pytest.fixture
def table(rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "size": rng.normal(10, 2, 30).round(2),
            "weight": rng.normal(70, 9, 30).round(1),
            "kind": rng.choice(["a", "b", "c"], 30),
            "code": rng.integers(0, 3, 30),
        }
    )


def remarks(changed: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    return differences(figures_of(as_cells(changed)), figures_of(as_cells(table)))


def test_the_same_table_in_another_order_of_rows_and_spelling_passes(table: pd.DataFrame) -> None:
    cells = as_cells(table.sample(frac=1, random_state=0))
    cells["weight"] = [f"{float(cell):.3f}" for cell in cells["weight"]]
    cells["code"] = [f"{float(cell):.1e}" for cell in cells["code"]]
    assert differences(figures_of(cells), figures_of(as_cells(table))) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.drop(index=7), ["29 rows instead of 30"]),
        (lambda t: pd.concat([t, t.iloc[:1]]), ["31 rows instead of 30"]),
        (lambda t: t[["weight", "size", "kind", "code"]], ["columns in another order: 'weight' instead of 'size'"]),
        (
            lambda t: t.assign(size=t["weight"], weight=t["size"]),
            ["column 'size' has mean 7.*", "column 'weight' has mean .*"],
        ),
        (lambda t: t.assign(size=t["size"].where(t.index != 3, t["size"] + 0.01)), ["column 'size' has mean .*"]),
        (
            lambda t: t.assign(size=t["size"].to_numpy()[::-1]),
            ["counts and means match, but some cells have other values or are in other rows"],
        ),
        (
            lambda t: t.assign(
                size=t["size"].where(t.index != 0),
                kind=t["kind"].where(t.index != 1, "d"),
                code=t["code"].astype(object).where(t.index != 2, "two"),
            ),
            [
                "column 'size' has 1 missing values instead of 0",
                "column 'kind' has other counts of its values",
                "column 'code' has text instead of numbers",
            ],
        ),
        (lambda t: t.rename(columns={"kind": "sort"}), ["no column 'kind'", "an unknown column 'sort'"]),
        (lambda t: t.drop(columns="kind"), ["3 columns instead of 4", "no column 'kind'"]),
    ],
)
def test_a_changed_table_is_told_from_its_figures(
    change: Callable[[pd.DataFrame], pd.DataFrame], expected: list[str], table: pd.DataFrame
) -> None:
    found = remarks(change(table), table)
    assert len(found) == len(expected)
    assert all(re.fullmatch(pattern, remark) for pattern, remark in zip(expected, found, strict=True)), found


def test_a_row_in_place_of_another_is_noticed(table: pd.DataFrame) -> None:
    assert remarks(table.iloc[[0, 0, *range(2, 30)]], table)


def test_of_many_differences_a_few_are_shown() -> None:
    table = pd.DataFrame({f"x{j}": [1.0, 2.0] for j in range(9)})
    found = remarks(table + 1, table)
    assert len(found) == 4
    assert found[-1] == "6 more columns differ"


def test_figures_survive_json(table: pd.DataFrame) -> None:
    table["centred"] = np.resize([-1, 1], len(table))  # with a mean of zero
    table.loc[4, "size"] = np.nan
    figures = figures_of(as_cells(table))
    assert figures.columns["centred"] == ColumnFigures(0, 0.0, {"-1": 15, "1": 15})
    assert from_json(json.loads(json.dumps(to_json(figures)))) == figures


def test_every_file_of_the_catalogue_has_figures_of_its_size() -> None:
    assert set(known_figures()) == all_files()
    for entry in TABLES.values():
        if entry.place == "file":
            figures = known_figures()[entry.file]
            assert (figures.rows, len(figures.columns)) == (entry.rows, entry.columns), entry.name


def test_figures_hold_no_rows() -> None:
    for file, figures in known_figures().items():
        for name, column in figures.columns.items():
            assert len(column.levels or ()) <= 10, (file, name)


FILE = "boston_housing.csv"


@pytest.fixture
def frame(made_up: MadeUp) -> pd.DataFrame:
    return made_up.make(FILE)


def test_the_first_folder_wins(made_up: MadeUp, frame: pd.DataFrame) -> None:
    write_whole(as_cells(frame), made_up.second / FILE)
    assert load("BH", download=False).source == str(made_up.second / FILE)
    write_whole(as_cells(frame), made_up.first / FILE)
    assert load("BH", download=False).source == str(made_up.first / FILE)
    assert load("BH", download=False, path=made_up.second / FILE).source == str(made_up.second / FILE)


def corrupted(frame: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Return contents of bad files and what should be said of them."""

    def text(changed: pd.DataFrame) -> str:
        return changed.to_csv(index=False)

    one_cell = frame.copy()
    one_cell.loc[2, "RM"] += 1
    swapped = list(frame.columns)
    swapped[3], swapped[5] = swapped[5], swapped[3]
    return {
        "a dropped row": (text(frame.iloc[1:]), "5 rows instead of 6"),
        "columns that changed places": (text(frame[swapped]), "columns in another order: 'RM' instead of 'CHAS'"),
        "headers that changed places": (text(frame.set_axis(swapped, axis=1)), "columns in another order"),
        "values that changed columns": (text(frame.assign(CHAS=frame["RM"], RM=frame["CHAS"])), "column 'CHAS' has"),
        "a changed cell": (text(one_cell), "column 'RM' has"),
        "a changed header": (
            text(frame.rename(columns={"MEDV": "price"})),
            "no column 'MEDV'; an unknown column 'price'",
        ),
        "no header": (frame.to_csv(index=False, header=False), "5 rows instead of 6"),
        "a truncated file": (text(frame)[:-10], "column "),
        "another separator": (frame.to_csv(index=False, sep=";"), "1 columns instead of 14"),
        "an HTML page": ("<!DOCTYPE html>\n<html><body>Not found</body></html>\n", "1 columns instead of 14"),
        "an HTML page with commas": ("<!DOCTYPE html>\n<a title='x, y, z'>\n", "is not a comma-separated table"),
        "nothing": ("", "is not a comma-separated table"),
    }


def test_a_corrupted_file_is_refused_and_left_alone(
    made_up: MadeUp, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("castlereg_paper.catalogue.OpenMl.fetch", lambda _: pytest.fail("it must not be downloaded"))
    for folder in (made_up.first, made_up.second):
        path = folder / FILE
        path.parent.mkdir(exist_ok=True, parents=True)
        for what, (content, message) in corrupted(frame).items():
            path.write_text(content, encoding="utf-8")
            with pytest.raises(ValueError) as refused:
                load("BH")
            assert message in str(refused.value), what
            assert str(path) in str(refused.value)
            assert path.read_text(encoding="utf-8") == content
        path.unlink()


def test_a_refusal_says_what_to_do(made_up: MadeUp, frame: pd.DataFrame) -> None:
    path = made_up.first / FILE
    write_whole(as_cells(frame.iloc[1:]), path)
    with pytest.raises(ValueError) as refused:
        load("BH")
    assert str(refused.value) == (
        f"boston_housing.csv: 5 rows instead of 6. The file {path} is not the table of the catalogue: "
        "delete it, or replace it with a complete copy"
    )


def test_a_file_that_is_not_there_says_where_to_put_it(made_up: MadeUp, frame: pd.DataFrame) -> None:
    with pytest.raises(FileNotFoundError) as absent:
        load("BH", download=False)
    message = str(absent.value)
    for part in (
        f"{made_up.first} (CASTLEREG_DATA), {made_up.second} (the user's data folder)",
        "downloads are disabled",
        "Save it there as boston_housing.csv: comma-separated, 6 rows and 14 columns, with the header CRIM, ZN, ",
        "https://www.openml.org/d/531",
    ):
        assert part in message
    with pytest.raises(FileNotFoundError, match=r"path='nowhere\.csv' is not a file"):
        load("BH", path="nowhere.csv")


def test_writing_leaves_a_whole_file_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = pd.DataFrame({"a": ["1"]}, dtype=object)
    path = tmp_path / "new" / "a.csv"
    write_whole(cells, path)
    assert path.read_bytes() == b"a\n1\n"

    def fails(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fails)
    with pytest.raises(OSError, match="no space left"):
        write_whole(cells, path)
    assert [one.name for one in path.parent.iterdir()] == ["a.csv"]
    assert path.read_bytes() == b"a\n1\n"


@pytest.mark.skipif(sys.platform != "linux", reason="platformdirs knows the other platforms")
def test_the_users_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "castlereg"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert data_folder() == Path.home() / ".local" / "share" / "castlereg"


def test_the_variable_comes_first_and_may_be_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASTLEREG_DATA", "somewhere")
    assert list(search_folders().values()) == [Path("somewhere"), data_folder()]
    for unset in (lambda: monkeypatch.setenv("CASTLEREG_DATA", ""), lambda: monkeypatch.delenv("CASTLEREG_DATA")):
        unset()
        assert list(search_folders().values()) == [data_folder()]


STORED = [name for name, entry in TABLES.items() if entry.place == "file"]


@pytest.mark.parametrize("file", sorted(all_files()))
def test_every_file_passes_its_figures(file: str, real_folder: Path) -> None:
    cells = read_cells(real_folder / file)
    assert differences(figures_of(cells), known_figures()[file]) == []


@pytest.mark.parametrize("name", STORED)
def test_numbers_that_another_program_read_pass(name: str, real_folder: Path) -> None:
    """As an origin sends them: through pandas, whose parser may be off in the last digit."""
    frame = pd.read_csv(real_folder / TABLES[name].file)
    assert differences(figures_of(as_cells(frame)), known_figures()[TABLES[name].file]) == []


@pytest.mark.parametrize("name", STORED)
def test_a_dropped_row_and_swapped_columns_are_refused(
    name: str, real_folder: Path, folders: tuple[Path, Path]
) -> None:
    path = folders[0] / TABLES[name].file
    cells = read_cells(real_folder / path.name)
    write_whole(cells.drop(index=len(cells) // 2), path)
    with pytest.raises(ValueError, match=f"{len(cells) - 1} rows instead of {len(cells)}"):
        load(name)
    names = list(cells.columns)
    write_whole(cells[[*names[:-2], names[-1], names[-2]]], path)
    with pytest.raises(ValueError, match="columns in another order"):
        load(name)
    write_whole(cells[[*names[:-2], names[-1], names[-2]]].set_axis(names, axis=1), path)
    with pytest.raises(ValueError, match="is not the table of the catalogue"):
        load(name)


def test_the_figures_can_be_made_anew(real_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = ["boston_housing.csv", "facebook_metrics.csv", "sachs_edges.csv"]
    monkeypatch.setattr("castlereg_paper.datasets.all_files", lambda: set(some))
    write_figures(real_folder, tmp_path / "figures.json")
    made = json.loads((tmp_path / "figures.json").read_text())
    assert {file: from_json(content) for file, content in made.items()} == {
        file: known_figures()[file] for file in some
    }


BUNDLED = [name for name, entry in TABLES.items() if entry.place == "scikit-learn"]

# Rows, features of every variant, and gaps among them.
SHAPES = {
    ("boston_housing", "default"): (506, 13, 0),
    ("wine_quality_white", "default"): (4898, 11, 0),
    ("facebook_metrics", "default"): (500, 15, 1),
    ("facebook_metrics", "with_components"): (500, 18, 6),
    ("bioconcentration", "default"): (779, 9, 0),
    ("bioconcentration", "classification"): (779, 9, 0),
    ("bioconcentration", "binary"): (779, 9, 0),
    ("student_performance_por", "default"): (649, 32, 0),
    ("student_performance_por", "without_grades"): (649, 30, 0),
    ("communities_crime", "default"): (1994, 100, 1),
    ("communities_crime", "all_columns"): (1994, 122, 36851),
    ("contraceptive", "default"): (1473, 9, 0),
    ("contraceptive", "binary"): (1473, 9, 0),
    ("pima_diabetes", "default"): (768, 8, 0),
    ("pima_diabetes", "zeros_missing"): (768, 8, 5 + 35 + 227 + 374 + 11),
    ("las_vegas", "default"): (504, 19, 1),
    ("las_vegas", "binary"): (504, 19, 1),
    ("statlog_heart", "default"): (270, 13, 0),
    ("diabetic_retinopathy", "default"): (1151, 19, 0),
    ("diabetes", "default"): (442, 10, 0),
    ("iris", "default"): (150, 4, 0),
    ("wine", "default"): (178, 13, 0),
    ("breast_cancer", "default"): (569, 30, 0),
}

# Figures of the tables' manifest: means of numeric targets, counts of classes.
MEANS = {
    ("boston_housing", "default"): 22.5328,
    ("wine_quality_white", "default"): 5.877909,
    ("bioconcentration", "default"): 2.062773,
    ("student_performance_por", "default"): 11.906009,
    ("communities_crime", "default"): 0.237979,
}
CLASSES = {
    ("wine_quality_white", "default"): {3: 20, 4: 163, 5: 1457, 6: 2198, 7: 880, 8: 175, 9: 5},
    ("bioconcentration", "classification"): {1: 460, 2: 64, 3: 255},
    ("bioconcentration", "binary"): {0: 319, 1: 460},
    ("contraceptive", "default"): {1: 629, 2: 333, 3: 511},
    ("contraceptive", "binary"): {0: 629, 1: 844},
    ("pima_diabetes", "default"): {0: 500, 1: 268},
    ("las_vegas", "default"): {1: 11, 2: 30, 3: 72, 4: 164, 5: 227},
    ("las_vegas", "binary"): {0: 277, 1: 227},
    ("statlog_heart", "default"): {1: 150, 2: 120},
    ("diabetic_retinopathy", "default"): {0: 540, 1: 611},
}


@cache
def loaded(name: str, variant: str = "default") -> Dataset:
    return load(name, variant=variant, download=False)


def of_folder(name: str, variant: str, request: pytest.FixtureRequest) -> Dataset:
    if name in STORED:
        request.getfixturevalue("real_folder")
    return loaded(name, variant)


def test_every_variant_is_tested() -> None:
    variants = {(name, variant) for name in STORED + BUNDLED for variant in TABLES[name].variants}
    assert variants == set(SHAPES)


@pytest.mark.parametrize(("name", "variant"), list(SHAPES))
def test_every_variant_of_every_table(name: str, variant: str, request: pytest.FixtureRequest) -> None:
    table = of_folder(name, variant, request)
    rows, features, gaps = SHAPES[name, variant]
    assert table.X.shape == (rows, features)
    assert int(table.X.isna().sum().sum()) == gaps
    assert len(table.y) == rows
    assert not table.y.isna().any()
    assert table.y.name not in table.X
    chosen = TABLES[name].variants[variant]
    assert table.y.name == (chosen.target or TABLES[name].target)
    assert table.task == (chosen.task or TABLES[name].task)
    if (name, variant) in MEANS:
        assert table.y.mean() == pytest.approx(MEANS[name, variant], abs=5e-7 if name != "boston_housing" else 5e-5)
    if (name, variant) in CLASSES:
        assert table.y.value_counts().to_dict() == CLASSES[name, variant]


@pytest.mark.parametrize("name", STORED)
def test_text_and_nominal_codes_are_categories_and_the_rest_numbers(name: str, real_folder: Path) -> None:
    table = loaded(name)
    raw = pd.read_csv(real_folder / table.entry.file, na_values=["?"])
    text = {column for column in table.X if not pd.api.types.is_numeric_dtype(raw[column])}
    assert text <= {*table.entry.nominal, *table.entry.binary}
    assert {c for c in table.X if isinstance(table.X[c].dtype, pd.CategoricalDtype)} == text | set(table.entry.nominal)
    numbers = [column for column in table.X if column not in text and column not in table.entry.nominal]
    expected = raw[numbers].replace({"Member years": {-1806: np.nan}})
    np.testing.assert_array_equal(table.X[numbers].to_numpy(float), expected.to_numpy(float))


def test_other_figures_of_the_manifest(real_folder: Path) -> None:
    posts = load("FB", variant="with_components").X
    assert posts["Type"].value_counts().to_dict() == {"Photo": 426, "Status": 45, "Link": 22, "Video": 7}
    assert int(posts.notna().all(axis=1).sum()) == 495
    assert load("SP").X["school"].value_counts().to_dict() == {"GP": 423, "MS": 226}
    parts = posts[["comment", "like", "share"]].sum(axis=1)
    assert (parts == load("FB").y).all()


def test_kinds_of_the_catalogue_are_those_of_the_features() -> None:
    for (name, variant), (_, features, _) in SHAPES.items():
        if variant == "default":
            counted = sum(int(part.split()[0]) for part in catalogue().loc[name, "kinds"].split(", "))
            assert counted == features, name


def test_a_wrong_variant_names_those_there_are() -> None:
    with pytest.raises(ValueError, match="variant='binry' is not one of 'default', 'binary'; did you mean 'binary'"):
        load("CC", variant="binry")


def test_what_has_no_meaning_raises(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="target='RM': boston_housing has the fixed target 'MEDV'"):
        load("BH", target="RM")
    with pytest.raises(ValueError, match="iris is part of scikit-learn"):
        load("iris", path=tmp_path / "iris.csv")


@pytest.mark.parametrize(("name", "task"), [("ME", "regression"), ("MG", "classification")])
def test_tables_that_users_bring(name: str, task: str, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("age,region,visits\n30,north,2\n?,south,0\n50,,1\n")
    table = load(name, path=path, target="visits")
    assert (table.task, table.source, table.y.tolist()) == (task, str(path), [2, 0, 1])
    assert table.X.isna().sum().to_dict() == {"age": 1, "region": 1}
    assert table.X["region"].dtype == "category"
    for missing in ({}, {"path": path}, {"target": "visits"}):
        with pytest.raises(ValueError, match=rf'load\("{name}", path="the file", target="the column to predict"\)'):
            load(name, **missing)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"own\.csv has no column 'visit'; did you mean 'visits'"):
        load(name, path=path, target="visit")
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        load(name, path=tmp_path / "none.csv", target="visits")


@pytest.mark.parametrize("name", ["facebook_metrics", "iris"])
def test_a_network_learns_from_gaps_levels_and_classes(name: str, request: pytest.FixtureRequest) -> None:
    table = of_folder(name, "default", request)
    model = (CastleRegressor if table.task == "regression" else CastleClassifier)(max_epochs=2, random_state=0)
    assert len(model.fit(table.X, table.y).predict(table.X[:5])) == 5


@pytest.mark.parametrize(
    ("name", "variant", "shape", "edges"),
    [
        ("sachs", "default", (7466, 11), 17),
        ("sachs", "20_edges", (7466, 11), 20),
        ("sachs_observational", "default", (853, 11), 17),
        ("sachs_observational", "20_edges", (853, 11), 20),
        ("asia", "default", (5000, 8), 8),
        ("alarm", "default", (20000, 37), 46),
    ],
)
def test_the_graph_is_acyclic_and_over_the_tables_columns(
    name: str, variant: str, shape: tuple[int, int], edges: int, real_folder: Path
) -> None:
    data = load_graph_data(name, variant=variant)
    assert data.X.shape == shape == (GRAPHS[name].rows, GRAPHS[name].columns)
    assert list(data.dag.index) == list(data.dag.columns) == list(data.X.columns)
    assert int(data.dag.to_numpy().sum()) == edges
    assert nx.is_directed_acyclic_graph(nx.from_pandas_adjacency(data.dag, create_using=nx.DiGraph))


def test_edges_point_from_cause_to_effect(real_folder: Path) -> None:
    data = load_graph_data("sachs")
    assert data.dag.loc["Raf", "Mek"] == 1
    assert data.dag.loc["Mek", "Raf"] == 0
    assert data.X["Raf"].mean() == pytest.approx(124.07, abs=5e-3)
    assert data.X["PKA"].mean() == pytest.approx(625.76, abs=5e-3)
    one, other = data.dag, load_graph_data("sachs", variant="20_edges").dag
    assert int((one * other).to_numpy().sum()) == 16


def test_pairs(real_folder: Path) -> None:
    pairs = load_pairs()
    assert len(pairs) == 99
    for pair in pairs:
        assert len(pair.cause) == len(pair.effect) > 50
        assert np.isfinite(pair.cause).all()
        assert np.isfinite(pair.effect).all()


def test_a_corrupted_table_or_list_of_edges_is_refused(real_folder: Path, folders: tuple[Path, Path]) -> None:
    first, _ = folders
    for file in ("bnlearn_asia.csv", "bnlearn_asia_edges.csv"):
        shutil.copy(real_folder / file, first / file)
    for file, rows in (("bnlearn_asia_edges.csv", 8), ("bnlearn_asia.csv", 5000)):
        whole = (first / file).read_text()
        (first / file).write_text(whole[: whole.rstrip().rindex("\n") + 1])
        with pytest.raises(ValueError, match=f"{rows - 1} rows instead of {rows}"):
            load_graph_data("asia")
        (first / file).write_text(whole)
    reversed_edges = (first / "bnlearn_asia_edges.csv").read_text().replace("A,T", "T,A")
    (first / "bnlearn_asia_edges.csv").write_text(reversed_edges)
    with pytest.raises(ValueError, match=r"bnlearn_asia_edges\.csv: column 'cause' has other counts"):
        load_graph_data("asia")


def test_what_is_not_there_is_named(folders: tuple[Path, Path]) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"(?s)sachs\.csv is not in .*it has to be placed there by hand.*sachs05"
    ):
        load_graph_data("sachs")
    with pytest.raises(FileNotFoundError, match=r"tuebingen_pairs\.csv is not in "):
        load_pairs()
    with pytest.raises(ValueError, match="variant='18_edges' is not one of 'default', '20_edges'"):
        load_graph_data("sachs", variant="18_edges")
