"""Callbacks of ``fit``: watch training, and stop it.

TensorBoard, MLflow and matplotlib are imported only when a fit that uses them begins.
"""

from castlereg.callbacks.live_plot import LivePlot
from castlereg.callbacks.mlflow import MLflow
from castlereg.callbacks.tensorboard import TensorBoard
from castlereg.training.callbacks import Callback, Epoch, TimeLimit

__all__ = ["Callback", "Epoch", "LivePlot", "MLflow", "TensorBoard", "TimeLimit"]
