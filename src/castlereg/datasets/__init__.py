"""The paper's tables, and tables with a known graph: found or downloaded, checked, and ready to learn from."""

from castlereg.datasets.catalogue import catalogue
from castlereg.datasets.catalogue_entry import CatalogueEntry, GraphEntry, Variant
from castlereg.datasets.folders import data_folder
from castlereg.datasets.known_graphs import CauseEffectPair, GraphData, load_graph_data, load_pairs
from castlereg.datasets.loading import Dataset, load

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
