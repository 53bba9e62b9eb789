"""scikit-learn's own checks on every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from castlereg import (
    CastleClassifier,
    CastleClassifierCV,
    CastleRegressor,
    CastleRegressorCV,
    NetworkClassifier,
    NetworkRegressor,
    estimators,
)
from castlereg.regularizers import L1, L2, Autoencoder, BatchNorm, Dropout, InputNoise, MixUp

TOGETHER = [L1(), L2(), Dropout(), Autoencoder(), BatchNorm(), InputNoise(), MixUp()]
NARROW = {"hidden_layer_sizes": (8,)}
SHORT = {**NARROW, "learning_rate": 0.01, "max_epochs": 30}
ESTIMATORS = [
    CastleRegressor(),
    CastleRegressor(hidden_layer_sizes=()),
    CastleClassifier(),
    NetworkRegressor([BatchNorm()], **NARROW),  # the one with a state
    NetworkClassifier(TOGETHER, **SHORT),
    CastleRegressorCV((0.01, 0.1), search="paper", cv=2, **SHORT),
    CastleRegressorCV((0.01,), cv=2, max_epochs=10),
    CastleClassifierCV((0.01,), search="paper", cv=2, **SHORT),
]
# As for scikit-learn's own networks: rows get into batches by their position, so a weight differs from copies.
FAILED = {
    "check_sample_weight_equivalence_on_dense_data": "batches depend on the order and the number of the rows",
}


def test_every_estimator_is_checked() -> None:
    assert {type(estimator).__name__ for estimator in ESTIMATORS} == set(estimators.__all__)


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: FAILED)
@pytest.mark.filterwarnings("ignore:constant columns", "ignore:The least populated class")
def test_sklearn_compatible(estimator, check):
    check(estimator)
