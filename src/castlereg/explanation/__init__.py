"""Explanations of predictions: permutation importance of columns, and SHAP values of rows."""

from castlereg.explanation.explain import explain
from castlereg.explanation.permutation import PermutationImportance
from castlereg.explanation.shap_values import ShapValues

__all__ = ["PermutationImportance", "ShapValues", "explain"]
