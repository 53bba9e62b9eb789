"""scikit-learn's own checks, without a single expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from castlereg import (
    CastleClassifier,
    CastleRegressor,
    CastleRegressorCV,
    NetworkClassifier,
    NetworkClassifierCV,
    NetworkMultiOutput,
    NetworkRegressor,
)
from castlereg.regularizers import L1, L2, Autoencoder, BatchNorm, Dropout, InputNoise, MixUp

# The one with a state is checked alone, and all of them together; the plain network is what both are made of.
METHODS = [[BatchNorm()]]
TOGETHER = [L1(), L2(), Dropout(), Autoencoder(), BatchNorm(), InputNoise(), MixUp()]
NARROW = {"hidden_layer_sizes": (8,)}


@parametrize_with_checks(
    [
        CastleRegressor(),
        CastleRegressor(hidden_layer_sizes=()),
        CastleClassifier(),
        *(NetworkRegressor(regularizers, **NARROW) for regularizers in METHODS),
        NetworkClassifier(TOGETHER, **NARROW),
        NetworkMultiOutput(**NARROW),
        CastleRegressorCV((0.01, 0.1), cv=3, **NARROW),
        NetworkClassifierCV([[L2(0.001)]], cv=3, **NARROW),
    ]
)
@pytest.mark.filterwarnings("ignore:constant columns", "ignore:The least populated class")
def test_sklearn_compatible(estimator, check):
    check(estimator)
