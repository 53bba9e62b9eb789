"""Fitted models: networks that predict, their graph, thresholds, strengths and intervals."""

from castlereg.fitted.blend import Blend
from castlereg.fitted.model import FittedModel, FoldBook
from castlereg.fitted.networks import Networks

__all__ = ["Blend", "FittedModel", "FoldBook", "Networks"]
