"""scikit-learn estimators."""

from castlereg.estimators.castle import (
    CastleClassifier,
    CastleClassifierCV,
    CastleRegressor,
    CastleRegressorCV,
    NetworkClassifier,
    NetworkRegressor,
)

__all__ = [
    "CastleClassifier",
    "CastleClassifierCV",
    "CastleRegressor",
    "CastleRegressorCV",
    "NetworkClassifier",
    "NetworkRegressor",
]
