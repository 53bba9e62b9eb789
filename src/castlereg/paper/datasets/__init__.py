"""The paper's tables, and tables with a known graph: read from files or downloaded, and checked."""

from castlereg.paper.datasets.catalogue import catalogue
from castlereg.paper.datasets.catalogue_entry import CatalogueEntry, GraphEntry, Variant
from castlereg.paper.datasets.folders import data_folder
from castlereg.paper.datasets.known_graphs import CauseEffectPair, GraphData, load_graph_data, load_pairs
from castlereg.paper.datasets.loading import Dataset, load

__all__ = [
    "CatalogueEntry",
    "CauseEffectPair",
    "Dataset",
    "GraphData",
    "GraphEntry",
    "Variant",
    "catalogue",
    "data_folder",
    "load",
    "load_graph_data",
    "load_pairs",
]
