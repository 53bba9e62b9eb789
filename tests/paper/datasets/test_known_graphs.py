"""Tables with a known graph, and pairs."""

from __future__ import annotations

import shutil
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from castlereg.paper.datasets import load_graph_data, load_pairs
from castlereg.paper.datasets.catalogue import GRAPHS


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
