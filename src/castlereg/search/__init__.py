"""Candidates, cross-validation, and the one function behind every fit."""

from castlereg.search.fit import fit
from castlereg.search.grid import FoldGrid, choose, train_folds
from castlereg.search.request import CrossValidation, FitRequest

__all__ = ["CrossValidation", "FitRequest", "FoldGrid", "choose", "fit", "train_folds"]
