"""Tables as problems: tasks, targets, variants, types; and networks that learn from them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from castlereg import CastleClassifier, CastleRegressor
from castlereg.paper.datasets import Dataset, catalogue, load
from castlereg.paper.datasets.catalogue import TABLES
from castlereg.table.reading import read_columns
from castlereg.table.schema import infer_schema

STORED = [name for name, entry in TABLES.items() if entry.place == "file"]
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
    with pytest.raises(ValueError, match=r"own\.csv' has no column 'visit'; did you mean 'visits'"):
        load(name, path=path, target="visit")
    with pytest.raises(FileNotFoundError, match=r"none\.csv' does not exist"):
        load(name, path=tmp_path / "none.csv", target="visits")


@pytest.mark.parametrize("name", [*STORED, *BUNDLED])
def test_networks_take_every_column_for_what_the_catalogue_says(name: str, request: pytest.FixtureRequest) -> None:
    table = of_folder(name, "default", request)
    schema = infer_schema(read_columns(table.X), [False] * table.X.shape[1])
    kinds = {kind: {one.name for one in schema if one.kind == kind} for kind in ("binary", "categorical", "ordinal")}
    assert kinds["binary"] - {"B02[C-N]"} == set(table.entry.binary)
    assert kinds["categorical"] == set(table.entry.nominal)
    assert not any(one.constant for one in schema)


@pytest.mark.parametrize("name", ["facebook_metrics", "iris"])
def test_a_network_learns_from_gaps_levels_and_classes(name: str, request: pytest.FixtureRequest) -> None:
    table = of_folder(name, "default", request)
    model = (CastleRegressor if table.task == "regression" else CastleClassifier)(max_epochs=2, random_state=0)
    assert len(model.fit(table.X, table.y).predict(table.X[:5])) == 5
