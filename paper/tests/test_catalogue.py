"""The catalogue agrees with the paper, with the files and with itself; downloads from origins that are made up."""

from __future__ import annotations

import builtins
import io
import sys
import types
import urllib.error
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg_paper.catalogue import GRAPHS, TABLES, find_graph, find_table, with_columns
from castlereg_paper.datasets import as_cells, catalogue, figures_of, known_figures, load, read_cells
from conftest import MadeUp

# The paper's table of datasets: rows and features.
PAPER = {
    "BH": (506, 14),
    "WQ": (4894, 12),
    "FB": (500, 19),
    "BC": (779, 14),
    "SP": (649, 33),
    "CM": (1994, 128),
    "CC": (1472, 9),
    "PD": (768, 9),
    "LV": (504, 20),
    "SH": (270, 13),
    "RP": (1151, 20),
    "ME": (15786, 139),
    "MG": (40367, 33),
}


def test_the_papers_13_tables_are_there() -> None:
    assert {entry.abbreviation: entry.paper_size for entry in TABLES.values() if entry.abbreviation} == PAPER


def test_one_row_per_table_and_nothing_empty_that_matters() -> None:
    table = catalogue()
    assert list(table.index) == [*TABLES, *GRAPHS]
    assert table.index.is_unique
    assert (table[["title", "task", "page", "licence", "citation", "place"]] != "").all(axis=None)


def test_columns_that_entries_name_exist() -> None:
    for entry in TABLES.values():
        if entry.place != "file":
            continue
        columns = set(known_figures()[entry.file].columns)
        named = {entry.target, *entry.binary, *entry.nominal, *entry.ordinal}
        for variant in entry.variants.values():
            named |= {*variant.drop, *variant.missing_codes, variant.target or entry.target}
        assert named <= columns, entry.name
        assert len(entry.binary + entry.nominal + entry.ordinal) == len(
            {*entry.binary, *entry.nominal, *entry.ordinal}
        ), entry.name


def test_binary_columns_have_two_values_and_the_half_empty_ones_are_dropped() -> None:
    for entry in TABLES.values():
        if entry.place != "file":
            continue
        figures = known_figures()[entry.file]
        kept = set(figures.columns) - set(entry.variants["default"].drop)
        for name in kept:
            levels, missing = figures.columns[name].levels, figures.columns[name].missing
            assert (levels is not None and len(levels) == 2) == (name in entry.binary) or name in (
                "B02[C-N]",
                entry.target,
            )
            assert 2 * missing <= figures.rows


@pytest.mark.parametrize("name", ["BH", "bh", "boston_housing", "Boston_Housing"])
def test_names_in_any_case(name: str) -> None:
    assert find_table(name).abbreviation == "BH"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("bostn_housing", "did you mean 'boston_housing'"),
        ("heart", "did you mean 'statlog_heart'"),
        ("wine_quality", "'wine_quality_white'"),
        ("../boston_housing", "did you mean 'boston_housing'"),
        ("/etc/passwd", "choose from boston_housing, "),
        ("", "choose from boston_housing, "),
        (None, "choose from boston_housing, "),
        (["BH"], "choose from"),
        ("sachs", r"load_graph_data\('sachs'\)"),
        ("tuebingen_pairs", r"load_pairs\(\)"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(name: Any, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        find_table(name)


def test_unknown_graphs_are_refused() -> None:
    assert find_graph("Asia").name == "asia"
    with pytest.raises(ValueError, match="did you mean 'sachs_observational'"):
        find_graph("sachs_observation")
    with pytest.raises(ValueError, match="choose from sachs, sachs_observational, asia, alarm"):
        find_graph("tuebingen_pairs")


Answer = Callable[[], pd.DataFrame]


def uci(monkeypatch: pytest.MonkeyPatch, number: int, answer: Answer) -> None:
    """Put a module in the place of ucimlrepo."""

    def fetch_ucirepo(id: int) -> Any:
        assert id == number
        print("as chatty as the original")
        return types.SimpleNamespace(data=types.SimpleNamespace(original=answer()))

    module = types.ModuleType("ucimlrepo")
    module.fetch_ucirepo = fetch_ucirepo  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ucimlrepo", module)


def openml(monkeypatch: pytest.MonkeyPatch, number: int, answer: Answer) -> None:
    """Answer in the place of scikit-learn's fetch_openml."""

    def fetch_openml(data_id: int, **_: Any) -> Any:
        assert data_id == number
        return types.SimpleNamespace(frame=answer())

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)


def archive(monkeypatch: pytest.MonkeyPatch, address: str, member: str, content: str) -> None:
    """Answer in the place of UCI's web server."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        made.writestr(member, content)

    def urlopen(asked: str, timeout: float) -> io.BytesIO:
        assert asked == address
        return io.BytesIO(packed.getvalue())

    monkeypatch.setattr("urllib.request.urlopen", urlopen)


def no_network() -> pd.DataFrame:
    raise urllib.error.URLError("no route to host")


def kept(made_up: MadeUp, file: str) -> pd.DataFrame:
    assert [one.name for one in made_up.second.iterdir()] == [file]
    return read_cells(made_up.second / file)


def test_a_download_is_kept_and_read_from_there(
    made_up: MadeUp, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = made_up.make("wine_quality_white.csv")
    white = frame.rename(columns=lambda name: name.replace(" ", "_")).assign(color="white")
    uci(monkeypatch, 186, lambda: pd.concat([white.assign(color="red"), white], ignore_index=True))
    table = load("WQ")
    assert capsys.readouterr().out == ""
    assert list(table.X.columns) == list(frame.columns[:-1])
    np.testing.assert_array_equal(table.X.to_numpy(), frame.iloc[:, :-1].to_numpy())
    assert table.source == str(made_up.second / "wine_quality_white.csv")
    pd.testing.assert_frame_equal(kept(made_up, "wine_quality_white.csv"), as_cells(frame), check_column_type=False)
    uci(monkeypatch, 186, no_network)
    pd.testing.assert_frame_equal(load("WQ").X, table.X)


def test_retinopathys_doubled_name_is_the_fourth_exudate(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = made_up.make("diabetic_retinopathy.csv")
    uci(monkeypatch, 329, lambda: frame.rename(columns={"exudate4": "exudate3.1"}))
    assert load("RP").X["exudate4"].tolist() == frame["exudate4"].tolist()


def test_pima_from_openml_is_renamed_and_recoded(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = made_up.make("pima_diabetes.csv").assign(Outcome=[0, 1, 1, 0, 0, 1])
    monkeypatch.setattr(
        "castlereg_paper.datasets.known_figures", lambda: {"pima_diabetes.csv": figures_of(as_cells(frame))}
    )
    theirs = ["preg", "plas", "pres", "skin", "insu", "mass", "pedi", "age", "class"]
    outcome = pd.Categorical(np.where(frame["Outcome"] == 1, "tested_positive", "tested_negative"))
    openml(monkeypatch, 37, lambda: frame.assign(Outcome=outcome).set_axis(theirs, axis=1))
    table = load("PD")
    assert table.y.tolist() == [0, 1, 1, 0, 0, 1]
    assert list(table.X.columns) == list(frame.columns[:-1])


def test_boston_from_openml_has_codes_as_text(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = made_up.make("boston_housing.csv")
    openml(monkeypatch, 531, lambda: frame.assign(CHAS=pd.Categorical(frame["CHAS"].astype(str))))
    assert load("BH").X["CHAS"].tolist() == frame["CHAS"].tolist()


def test_las_vegas_from_its_archive(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = made_up.make("las_vegas.csv")
    address = "https://archive.ics.uci.edu/static/public/397/las+vegas+strip.zip"
    content = frame.to_csv(index=False, sep=";", decimal=",")
    archive(monkeypatch, address, "LasVegasTripAdvisorReviews-Dataset.csv", content)
    assert load("LV").X["Hotel stars"].tolist() == frame["Hotel stars"].tolist()


def test_another_table_from_the_origin_is_refused_and_not_kept(
    made_up: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = made_up.make("facebook_metrics.csv")
    uci(monkeypatch, 368, lambda: frame.iloc[1:])
    with pytest.raises(
        ValueError, match="the download from UCI's dataset 368 is not the table of the catalogue: 5 rows instead of 6"
    ):
        load("FB")
    uci(monkeypatch, 368, lambda: frame.drop(columns="like"))
    with pytest.raises(ValueError, match="UCI's dataset 368 has no column 'like'"):
        load("FB")
    assert not made_up.second.exists()


@pytest.mark.parametrize("name", ["BH", "WQ", "FB", "BC", "SP", "CM", "CC", "PD", "LV", "SH", "RP"])
def test_without_network_the_message_says_where_to_put_which_file(
    name: str, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise urllib.error.URLError("no route to host")

    module = types.ModuleType("ucimlrepo")
    module.fetch_ucirepo = fails  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ucimlrepo", module)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fails)
    monkeypatch.setattr("urllib.request.urlopen", fails)
    with pytest.raises(FileNotFoundError) as absent:
        load(name)
    message = str(absent.value)
    assert "could not be downloaded from" in message
    assert "no route to host" in message
    for folder in folders:
        assert str(folder) in message


def test_without_ucimlrepo_the_message_says_what_to_install(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up.make("statlog_heart.csv")
    monkeypatch.setitem(sys.modules, "ucimlrepo", None)
    with pytest.raises(FileNotFoundError, match=r"it needs ucimlrepo: pip install ucimlrepo"):
        load("SH")


def test_a_folder_that_cannot_be_written_costs_a_warning(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = made_up.make("boston_housing.csv")
    openml(monkeypatch, 531, lambda: frame)
    made_up.second.parent.write_text("a file where a folder should be")
    with pytest.warns(UserWarning, match=r"boston_housing\.csv was downloaded but cannot be saved"):
        table = load("BH")
    assert table.source == "OpenML's dataset 531"
    assert len(table.X) == 6


def test_ucimlrepo_is_not_imported_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def refuse(name: str, *args: Any, **more: Any) -> Any:
        assert name != "ucimlrepo"
        return imported(name, *args, **more)

    monkeypatch.setattr("builtins.__import__", refuse)
    load("iris")


def test_columns_are_matched_by_their_letters() -> None:
    table = pd.DataFrame({"B02[C-N]": [1], "Total_interactions": [2], "extra": [3]})
    picked = with_columns(table, ["Total Interactions", "b02 c n"], "a test")
    assert picked.to_numpy().tolist() == [[2, 1]]


def test_our_names_differ_by_more_than_signs() -> None:
    for file, figures in known_figures().items():
        letters = {"".join(c for c in name.lower() if c.isalnum()) for name in figures.columns}
        assert len(letters) == len(figures.columns), file
