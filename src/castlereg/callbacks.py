"""Callbacks of ``fit``: watch training, and stop it. Guide: ``docs/callbacks.md``."""

from castlereg.training.callbacks import Callback, Epoch, TimeLimit

__all__ = ["Callback", "Epoch", "TimeLimit"]
