"""scikit-learn estimators."""

from castlereg.estimators.classifier import CastleClassifier
from castlereg.estimators.regressor import CastleRegressor

__all__ = ["CastleClassifier", "CastleRegressor"]
