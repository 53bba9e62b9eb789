"""scikit-learn estimators."""

from castlereg.estimators.classifier import CastleClassifier, NetworkClassifier
from castlereg.estimators.multi_output import CastleMultiOutput, NetworkMultiOutput
from castlereg.estimators.regressor import CastleRegressor, NetworkRegressor

__all__ = [
    "CastleClassifier",
    "CastleMultiOutput",
    "CastleRegressor",
    "NetworkClassifier",
    "NetworkMultiOutput",
    "NetworkRegressor",
]
