"""scikit-learn's own checks, without a single expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from castlereg import CastleClassifier, CastleRegressor


@parametrize_with_checks(
    [
        CastleRegressor(),
        CastleRegressor(hidden_layer_sizes=()),
        CastleClassifier(),
        CastleClassifier(hidden_layer_sizes=()),
    ]
)
@pytest.mark.filterwarnings("ignore:constant columns")
def test_sklearn_compatible(estimator, check):
    check(estimator)
