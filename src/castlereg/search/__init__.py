"""Candidates, the pool and the paper's grid, the one fit, and the fitted model."""

from castlereg.search.fit import FitRequest, fit
from castlereg.search.model import FittedModel, FoldRecord
from castlereg.search.networks import Blend, Networks
from castlereg.search.recipe import Recipe, TrainingOptions

__all__ = ["Blend", "FitRequest", "FittedModel", "FoldRecord", "Networks", "Recipe", "TrainingOptions", "fit"]
