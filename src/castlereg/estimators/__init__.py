"""scikit-learn estimators."""

from castlereg.estimators.classifier import CastleClassifier, NetworkClassifier
from castlereg.estimators.classifier_cv import CastleClassifierCV, NetworkClassifierCV
from castlereg.estimators.multi_output import CastleMultiOutput, NetworkMultiOutput
from castlereg.estimators.regressor import CastleRegressor, NetworkRegressor
from castlereg.estimators.regressor_cv import CastleRegressorCV, NetworkRegressorCV

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
