"""Candidates, cross-validation, and the one function behind every fit."""

from castlereg.search.fit import CrossValidation, FitRequest, fit
from castlereg.search.grid import FoldGrid, choose, train_folds

__all__ = ["CrossValidation", "FitRequest", "FoldGrid", "choose", "fit", "train_folds"]
