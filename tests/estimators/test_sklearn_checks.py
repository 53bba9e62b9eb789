"""scikit-learn's own checks, without a single expected failure."""

from collections.abc import Iterator

import jax
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from castlereg import CastleClassifier, CastleRegressor, NetworkClassifier, NetworkRegressor
from castlereg.regularizers import L1, L2, Autoencoder, BatchNorm, Dropout, InputNoise, MixUp

# Those that do more than add to the loss or to the inputs are checked alone, and all of them together.
METHODS = [[], [Dropout()], [Autoencoder()], [BatchNorm()], [MixUp()]]
TOGETHER = [L1(), L2(), Dropout(), Autoencoder(), BatchNorm(), InputNoise(), MixUp()]


@pytest.fixture(autouse=True)
def quickly_compiled() -> Iterator[None]:
    """Each check has tables of another shape: compiling takes most of the time, and these need no fast programs."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@parametrize_with_checks(
    [
        CastleRegressor(),
        CastleRegressor(hidden_layer_sizes=()),
        CastleRegressor(regularizers=[Dropout(), L2()]),
        CastleClassifier(),
        CastleClassifier(hidden_layer_sizes=()),
        *(NetworkRegressor(regularizers, hidden_layer_sizes=(8,)) for regularizers in METHODS),
        NetworkClassifier(hidden_layer_sizes=(8,)),
        NetworkClassifier(TOGETHER, hidden_layer_sizes=(8,)),
    ]
)
@pytest.mark.filterwarnings("ignore:constant columns")
def test_sklearn_compatible(estimator, check):
    check(estimator)
