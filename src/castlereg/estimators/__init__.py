"""scikit-learn estimators."""

from castlereg.estimators.classifier import CastleClassifier, NetworkClassifier
from castlereg.estimators.regressor import CastleRegressor, NetworkRegressor

__all__ = ["CastleClassifier", "CastleRegressor", "NetworkClassifier", "NetworkRegressor"]
