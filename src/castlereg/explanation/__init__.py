"""Explanations of predictions: permutation importance of columns, partial dependence, and SHAP values of rows."""

from castlereg.explanation.explain import explain
from castlereg.explanation.partial_dependence import partial_dependence
from castlereg.explanation.permutation import PermutationImportance
from castlereg.explanation.shap_values import ShapValues

__all__ = ["PermutationImportance", "ShapValues", "explain", "partial_dependence"]
