"""scikit-learn estimators."""

from castlereg.estimators.classifier import CastleClassifier, CastleClassifierCV, NetworkClassifier, NetworkClassifierCV
from castlereg.estimators.multi_output import CastleMultiOutput, NetworkMultiOutput
from castlereg.estimators.regressor import CastleRegressor, CastleRegressorCV, NetworkRegressor, NetworkRegressorCV

__all__ = [
    "CastleClassifier",
    "CastleClassifierCV",
    "CastleMultiOutput",
    "CastleRegressor",
    "CastleRegressorCV",
    "NetworkClassifier",
    "NetworkClassifierCV",
    "NetworkMultiOutput",
    "NetworkRegressor",
    "NetworkRegressorCV",
]
