"""scikit-learn's own checks on every estimator, without a single expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from castlereg import (
    CastleClassifier,
    CastleClassifierCV,
    CastleMultiOutput,
    CastleRegressor,
    CastleRegressorCV,
    NetworkClassifier,
    NetworkClassifierCV,
    NetworkMultiOutput,
    NetworkRegressor,
    NetworkRegressorCV,
    estimators,
)
from castlereg.regularizers import L1, L2, Autoencoder, BatchNorm, Dropout, InputNoise, MixUp

TOGETHER = [L1(), L2(), Dropout(), Autoencoder(), BatchNorm(), InputNoise(), MixUp()]
NARROW = {"hidden_layer_sizes": (8,)}
SHORT = {**NARROW, "learning_rate": 0.01, "max_epochs": 30}
BRIEF = {**NARROW, "max_epochs": 5}  # of several targets no check asks for a good score
ESTIMATORS = [
    CastleRegressor(),
    CastleRegressor(hidden_layer_sizes=()),
    CastleClassifier(),
    CastleMultiOutput(**BRIEF),
    NetworkRegressor([BatchNorm()], **NARROW),  # the one with a state
    NetworkClassifier(TOGETHER, **SHORT),
    NetworkMultiOutput(**BRIEF),
    CastleRegressorCV((0.01, 0.1), cv=2, **SHORT),
    CastleClassifierCV((0.01,), cv=2, **SHORT),
    NetworkRegressorCV([[], [L2(0.001)]], cv=2, **SHORT),
    NetworkClassifierCV([[L2(0.001)]], cv=3, **SHORT),
]


def test_every_estimator_is_checked() -> None:
    assert {type(estimator).__name__ for estimator in ESTIMATORS} == set(estimators.__all__)


@parametrize_with_checks(ESTIMATORS)
@pytest.mark.filterwarnings("ignore:constant columns", "ignore:The least populated class")
def test_sklearn_compatible(estimator, check):
    check(estimator)
