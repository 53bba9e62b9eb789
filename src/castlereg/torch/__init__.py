"""CASTLE for PyTorch: the terms of the objective, modules, the graph, and conversion from and to estimators.

Needs ``castlereg[torch]``. Guide: ``docs/torch.md``.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise ImportError("castlereg.torch needs the package torch: pip install 'castlereg[torch]'") from None

from castlereg.torch.castle import (
    acyclicity_loss,
    castle_loss,
    dag_loss,
    l1_norm,
    reconstruction_loss,
    squared_adjacency,
    supervised_loss,
)
from castlereg.torch.conversion import batch_of, from_estimator, inputs_of, to_estimator
from castlereg.torch.exponential import trace_exponential
from castlereg.torch.graph import input_graph
from castlereg.torch.losses import Batch, cell_losses, node_losses, standardization
from castlereg.torch.network import CastleNetwork, WaveEmbedding
from castlereg.torch.table_network import TableNetwork
from castlereg.torch.wrapped import WrappedNetwork

__all__ = [
    "Batch",
    "CastleNetwork",
    "TableNetwork",
    "WaveEmbedding",
    "WrappedNetwork",
    "acyclicity_loss",
    "batch_of",
    "castle_loss",
    "cell_losses",
    "dag_loss",
    "from_estimator",
    "input_graph",
    "inputs_of",
    "l1_norm",
    "node_losses",
    "reconstruction_loss",
    "squared_adjacency",
    "standardization",
    "supervised_loss",
    "to_estimator",
    "trace_exponential",
]
