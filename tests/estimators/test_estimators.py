"""What users rely on: same seed same bits, rows do not see each other, errors that name the bad value."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.stats import entropy
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, train_test_split

from castlereg import CastleClassifier, CastleRegressor, NetworkRegressor, Recipe
from castlereg.acyclicity.cut import find_cycle
from castlereg.network import select
from castlereg.regularizers import L2, Autoencoder, Castle, Dropout

Estimator = CastleRegressor | CastleClassifier


@pytest.fixture(scope="module")
def diabetes() -> tuple[pd.DataFrame, pd.Series]:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X, y


def quick(kind: type[Any] = CastleRegressor, **options: Any) -> Any:
    return kind(**{"max_epochs": 6, "random_state": 0, **options})


def small_table(n_rows: int = 60, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, d))
    return X, X[:, 0] + 0.1 * rng.normal(size=n_rows)


# --- it learns -----------------------------------------------------------------------------------


def test_regressor_is_as_good_as_least_squares_on_diabetes(diabetes: tuple[pd.DataFrame, pd.Series]) -> None:
    X_train, X_test, y_train, y_test = train_test_split(*diabetes, random_state=0)
    model = CastleRegressor(n_members=5, random_state=0).fit(X_train, y_train)
    linear = LinearRegression().fit(X_train, y_train)
    assert model.score(X_test, y_test) > linear.score(X_test, y_test) - 0.05


@pytest.mark.parametrize("sizes", ["auto", ()])
@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_classifier_is_as_good_as_logistic_regression(load: Any, sizes: Any) -> None:
    X_train, X_test, y_train, y_test = train_test_split(*load(return_X_y=True), random_state=0)
    rate = 1e-3 if sizes else 1e-2  # the linear form of a small table has few steps to get anywhere
    model = CastleClassifier(hidden_layer_sizes=sizes, learning_rate=rate, random_state=0).fit(X_train, y_train)
    scale = X_train.std(axis=0)
    linear = LogisticRegression(max_iter=5000).fit(X_train / scale, y_train)
    assert model.score(X_test, y_test) > linear.score(X_test / scale, y_test) - 0.05


def test_linear_form_finds_the_coefficients_of_least_squares() -> None:
    """Without regularization and with enough steps, eq. 1 is ordinary least squares."""
    X, y = small_table(400)
    model = CastleRegressor(
        hidden_layer_sizes=(), reg_lambda=0, max_epochs=400, recipe=Recipe(patience=400), random_state=0
    )
    model.fit(X, y, X_val=X, y_val=y)
    np.testing.assert_allclose(model.predict(X), LinearRegression().fit(X, y).predict(X), atol=0.02)


def test_sparsity_empties_the_graph() -> None:
    X, y = small_table(300, 4)
    weights = {
        beta: CastleRegressor(beta, random_state=0).fit(X, y).input_graph_.learned_weights for beta in (1e-3, 1.0)
    }
    noise = ["x1", "x2", "x3"]
    assert weights[1.0].loc[noise, noise].to_numpy().max() < 0.02
    assert weights[1e-3].loc["x0", "y"] > 0.3


@pytest.mark.parametrize("castle", [Castle(sparsity="group"), Castle(acyclicity="logdet")])
def test_other_penalties_train(diabetes: tuple[pd.DataFrame, pd.Series], castle: Castle) -> None:
    model = CastleRegressor(castle=castle, max_epochs=60, random_state=0).fit(*diabetes)
    assert 0.2 < model.score(*diabetes) < 0.8


# --- same seed, same bits ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CastleRegressor, CastleClassifier])
def test_same_seed_same_bits(kind: type[Any]) -> None:
    X, y = small_table()
    target = y if kind is CastleRegressor else np.digitize(y, [-0.5, 0.5])
    reference, again = quick(kind).fit(X, target), quick(kind).fit(X, target)
    np.testing.assert_array_equal(again.predict(X), reference.predict(X))
    pd.testing.assert_frame_equal(again.history_, reference.history_)
    pd.testing.assert_frame_equal(again.input_graph_.weights, reference.input_graph_.weights)
    pd.testing.assert_frame_equal(again.graph_.edges(), reference.graph_.edges())
    assert not np.array_equal(quick(random_state=1).fit(X, y).predict(X), quick().fit(X, y).predict(X))


def test_global_random_state_is_neither_used_nor_changed() -> None:
    X, y = small_table()
    np.random.seed(0)
    before = np.random.get_state()[1].copy()  # type: ignore[index,union-attr]
    first = quick(random_state=None).fit(X, y).predict(X)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # type: ignore[index]
    np.random.seed(0)
    assert not np.array_equal(quick(random_state=None).fit(X, y).predict(X), first)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_random_state_takes_generators(make: Any) -> None:
    X, y = small_table()
    one, two = (quick(random_state=make(3)).fit(X, y).predict(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_units_of_columns_do_not_matter() -> None:
    X, y = small_table(200)
    model = quick(max_epochs=40).fit(X, y)
    other = quick(max_epochs=40).fit(X * [1000, 1, 1e-6] + [5, 0, 1], y * 1e4 - 7)
    np.testing.assert_allclose((other.predict(X * [1000, 1, 1e-6] + [5, 0, 1]) + 7) / 1e4, model.predict(X), atol=1e-4)
    np.testing.assert_allclose(other.input_graph_.learned_weights, model.input_graph_.learned_weights, atol=1e-4)


def test_fitting_under_x64_stays_float32_and_equal() -> None:
    X, y = small_table()
    reference = quick().fit(X, y)
    with jax.enable_x64(True):
        other = quick().fit(X, y)
    assert np.asarray(other.model_.networks.parameters.input_weights).dtype == np.float32
    np.testing.assert_allclose(other.predict(X), reference.predict(X), rtol=1e-4, atol=1e-4)


# --- rows do not see each other ------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CastleRegressor, CastleClassifier])
@pytest.mark.parametrize("d", [3, 13])
def test_a_prediction_does_not_depend_on_the_other_rows(kind: type[Any], d: int) -> None:
    X, y = small_table(300, d)
    model = quick(kind, n_members=2).fit(X, y if kind is CastleRegressor else (y > 0).astype(int))
    predict = model.predict if kind is CastleRegressor else model.predict_proba
    whole = predict(X)
    order = np.random.default_rng(0).permutation(300)
    np.testing.assert_array_equal(predict(X[order]), whole[order])
    for size in (1, 2, 7, 33):
        parts = np.concatenate([predict(X[i : i + size]) for i in range(0, 99, size)])
        np.testing.assert_array_equal(parts, whole[: len(parts)])
    np.testing.assert_array_equal(predict(np.tile(X, (20, 1)))[-300:], whole)
    np.testing.assert_array_equal(predict(np.asfortranarray(X)), whole)
    np.testing.assert_array_equal(predict(pd.DataFrame(X).to_numpy()), whole)


def test_dtype_and_container_of_equal_values_do_not_matter() -> None:
    X = np.random.default_rng(0).integers(-5, 6, (80, 3))
    y = X[:, 0] * 2.0 + X[:, 1]
    reference = quick().fit(X, y).predict(X)
    for same in (X.astype(np.float32), X.astype(np.float64), X.astype(np.int16), X.tolist()):
        np.testing.assert_array_equal(quick().fit(same, y).predict(same), reference)


def test_the_target_is_never_an_input() -> None:
    """Whatever is put into the weights that lead from the target to itself, no prediction changes."""
    X, y = small_table()
    model = quick().fit(X, y)
    before = model.predict(X)
    networks = model.model_.networks
    weights = np.array(networks.parameters.input_weights)
    assert not weights[:, -1, -1].any()
    weights[:, -1, -1] = 1e9
    changed = replace(networks, parameters=networks.parameters._replace(input_weights=weights))
    model.model_ = replace(model.model_, blend=replace(model.model_.blend, parts=(changed,)))
    np.testing.assert_array_equal(model.predict(X), before)


def test_prediction_agrees_with_training(diabetes: tuple[pd.DataFrame, pd.Series]) -> None:
    """The loss that training saw on the validation rows is the error of ``predict`` on them."""
    X, y = diabetes
    model = quick(max_epochs=30).fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    error = ((model.predict(X[300:]) - y[300:]) ** 2).mean() / y[:300].var(ddof=0)
    np.testing.assert_allclose(error, model.validation_loss_, rtol=1e-4)


def test_classifier_prediction_agrees_with_training() -> None:
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(0).permutation(150)
    train, held = rows[:110], rows[110:]
    model = quick(CastleClassifier, max_epochs=30).fit(X[train], y[train], X_val=X[held], y_val=y[held])
    cross_entropy = -np.log(model.predict_proba(X[held])[np.arange(40), y[held]]).mean()
    base_rates = entropy(np.bincount(y[train]) / 110)
    np.testing.assert_allclose(cross_entropy / base_rates, model.validation_loss_, rtol=1e-4)


# --- weights and members -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CastleRegressor, CastleClassifier])
def test_only_the_relation_of_weights_matters_and_weight_zero_leaves_a_row_out(kind: type[Any]) -> None:
    X, y = small_table()
    target = y if kind is CastleRegressor else (y > 0).astype(int)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = quick(kind).fit(X, target, sample_weight=weight)
    doubled = quick(kind).fit(X, target, sample_weight=2.0 * weight)
    np.testing.assert_allclose(weighted.predict(X), doubled.predict(X), rtol=1e-5)
    kept = weight > 0
    without = quick(kind).fit(X[kept], target[kept], sample_weight=weight[kept])
    np.testing.assert_array_equal(weighted.predict(X), without.predict(X))


def test_fractional_weights_shift_the_fit_to_heavy_rows() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    first = np.arange(400) < 200
    y = np.where(first, x[:, 0], -x[:, 0]) + 0.1 * rng.normal(size=400)
    for heavy in (first, ~first):
        model = CastleRegressor(hidden_layer_sizes=(), random_state=0, learning_rate=0.01)
        model.fit(x, y, sample_weight=np.where(heavy, 1.5, 0.01))
        assert r2_score(y[heavy], model.predict(x[heavy])) > 0.8


def test_members_are_averaged_and_start_differently() -> None:
    X, y = small_table()
    model = quick(n_members=3).fit(X, y)
    assert model.model_.networks.n_members == 3
    assert set(model.history_["member"]) == {0, 1, 2}
    (each,) = model.model_.networks.predict_values(X)
    np.testing.assert_allclose(model.predict(X), each.mean(axis=0), rtol=1e-12)
    assert not np.allclose(each[0], each[1])
    np.testing.assert_array_equal(each[0], quick().fit(X, y).predict(X))


def test_classifier_averages_probabilities() -> None:
    X, y = load_iris(return_X_y=True)
    probabilities = quick(CastleClassifier, n_members=3).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)


# --- what is learned -----------------------------------------------------------------------------


def test_graph_and_history_have_names(diabetes: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = diabetes
    model = quick(max_epochs=5).fit(X, y)
    for graph in (model.graph_, model.input_graph_):
        assert list(graph.names) == [*X.columns, "target"]
        assert graph.targets == ("target",)
        assert find_cycle(graph.edge_array) is None
    assert list(model.history_) == [
        "member",
        "epoch",
        "objective",
        "supervised",
        "reconstruction",
        "acyclicity",
        "sparsity",
        "validation_loss",
        "learning_rate",
    ]
    parts = model.history_
    total = parts["supervised"] + parts["reconstruction"] + parts["acyclicity"] + 0.01 * parts["sparsity"]
    np.testing.assert_allclose(parts["objective"], total, rtol=1e-4)


def test_auto_is_the_papers_function_for_a_small_table() -> None:
    X, y = small_table()
    auto, paper = (quick(castle=Castle(acyclicity=name), max_epochs=2).fit(X, y) for name in ("auto", "expm"))
    pd.testing.assert_frame_equal(auto.history_, paper.history_)


def test_graph_weights_are_norms_of_input_weights() -> None:
    X, y = small_table()
    model = quick().fit(X, y)
    norms = np.sqrt((np.asarray(model.model_.networks.parameters.input_weights)[0] ** 2).sum(axis=-1))
    np.testing.assert_allclose(model.input_graph_.learned_weights, norms, rtol=1e-6)


def test_a_target_named_like_a_column_gets_a_number() -> None:
    X, y = small_table()
    frame = pd.DataFrame(X, columns=["a", "b", "y"])
    model = quick().fit(frame, pd.Series(y, name="y"))
    assert list(model.graph_.names) == list(model.input_graph_.names) == ["a", "b", "y", "y (2)"]
    assert model.graph_.targets == ("y (2)",)


def test_plain_parameters_are_a_selection_of_all(diabetes: tuple[pd.DataFrame, pd.Series]) -> None:
    model = quick(max_epochs=2).fit(*diabetes)
    assert select(model.model_.networks.member(0), np.array([10])).input_weights.shape == (11, 1, 11)


def test_constant_column_is_a_node_without_edges() -> None:
    X, y = small_table()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(same=4.0)
    with pytest.warns(UserWarning, match="constant columns have no edges and no influence: 'same'") as caught:
        model = quick(max_epochs=20).fit(frame, y)
    assert len(caught) == 1
    weights = model.input_graph_.learned_weights
    assert not weights["same"].any()
    assert not weights.loc["same"].any()
    np.testing.assert_array_equal(model.predict(frame.assign(same=99.0)), model.predict(frame))


def test_validation_rows_of_the_user_stop_training() -> None:
    X, y = small_table(200)
    options = {"max_epochs": 300, "recipe": Recipe(patience=5), "learning_rate": 0.01}
    hostile = quick(**options).fit(X, y, X_val=X, y_val=-y)
    friendly = quick(**options).fit(X, y, X_val=X, y_val=y)
    assert len(hostile.history_) < len(friendly.history_)


def test_pickle_clone_and_grid_search(diabetes: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = diabetes
    model = quick().fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(quick(max_epochs=3), {"reg_beta": [0.01, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_["reg_beta"] in (0.01, 1.0)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reg_beta": -1}, r"reg_beta=-1 must be at least 0"),
        ({"reg_lambda": "much"}, r"reg_lambda='much' must be a finite number"),
        ({"reg_beta": float("nan")}, r"reg_beta=nan must be a finite number"),
        ({"hidden_layer_sizes": "wide"}, r"hidden_layer_sizes='wide' is not one of 'auto'"),
        ({"hidden_layer_sizes": (10, 0)}, r"each width in hidden_layer_sizes=0 must be a whole number"),
        ({"hidden_layer_sizes": 10}, r"hidden_layer_sizes=10 must be 'auto' or a sequence"),
        ({"castle": "paper"}, r"castle='paper' must be Castle\(\.\.\.\) or None"),
        ({"castle": [Castle()]}, r"castle=\[Castle.* must be Castle\(\.\.\.\) or None"),
        ({"castle": Castle(features_per_step=4)}, r"features_per_step=4, but X has 3 features"),
        ({"recipe": {"scaling": "robust"}}, r"recipe=\{.* must be Recipe\(\.\.\.\) or None"),
        ({"learning_rate": 0}, r"learning_rate=0 must be greater than 0"),
        ({"max_epochs": 0}, r"max_epochs=0 must be a whole number of at least 1"),
        ({"n_members": -2}, r"n_members=-2 must be a whole number"),
        ({"random_state": "seed"}, r"random_state='seed' must be a whole number"),
    ],
)
def test_bad_options_raise_with_the_value(options: dict[str, Any], message: str) -> None:
    X, y = small_table()
    for model in (CastleRegressor(**options), CastleClassifier(**options)):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y if isinstance(model, CastleRegressor) else (y > 0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Castle(acyclicity="exmp"), r"acyclicity='exmp' is not one of .*did you mean 'expm'\?"),
        (lambda: Castle(sparsity="l2"), r"sparsity='l2' is not one of 'l1', 'group'"),  # type: ignore[arg-type]
        (lambda: Castle(features_per_step=0), r"features_per_step=0 must be a whole number of at least 1"),
        (lambda: Recipe(batch_size=2.5), r"batch_size=2.5 must be a whole number"),  # type: ignore[arg-type]
        (lambda: Recipe(validation_fraction=1.0), r"validation_fraction=1.0 must be a fraction between 0 and 1"),
        (lambda: Recipe(input_init="gloro"), r"input_init='gloro' is not one of .* did you mean 'glorot'"),  # type: ignore[arg-type]
    ],
)
def test_bad_details_raise_when_they_are_made(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_an_unknown_option_raises() -> None:
    with pytest.raises(TypeError, match="reg_betta"):
        CastleRegressor(reg_betta=0.1)  # type: ignore[call-arg]


def bad_data() -> list[Any]:
    X, y = small_table()
    huge, infinite = X.copy(), X.copy()
    huge[4, 2], infinite[5, 0] = 1e300, np.inf
    return [
        pytest.param(X[:, 0], y, {}, "1D array", id="one column as a vector"),
        pytest.param(X[:-1], y, {}, "inconsistent numbers of samples", id="rows that do not fit"),
        pytest.param(infinite, y, {}, "X contains infinity: inf in row 5 of column 'x0'", id="infinity"),
        pytest.param(
            X,
            np.where(y > 1, np.nan, y),
            {},
            r"y has 11 missing values \(NaN or None\), first in row 2",
            id="missing values in y",
        ),
        pytest.param(X, ["a", *y[1:]], {}, "y has 'a' in row 0, which is not a number", id="text in the target"),
        pytest.param(X, y, {"X_val": X, "y_val": np.c_[y, y]}, "y_val has 2 targets, but y has 1", id="two in y_val"),
        pytest.param(huge, y, {}, r"X has 1e\+300 in row 4 of column 'x2', beyond the range of float32", id="range"),
        pytest.param(X, y * 1e300, {}, r"y has .* beyond the range of float32", id="range of the target"),
        pytest.param(X, np.full(60, 2.5), {}, "y is 2.5 in every row", id="constant target"),
        pytest.param(X[:2], y[:2], {}, "n_samples=2 is too few", id="two rows"),
        pytest.param(X[:1], y[:1], {}, "n_samples=1 is too few", id="one row"),
        pytest.param(X[:0], y[:0], {}, "0 sample", id="no rows"),
        pytest.param(X[:, :0], y, {}, r"0 feature", id="no columns"),
        pytest.param(X, y, {"sample_weight": np.ones(3)}, "sample_weight", id="weights of another length"),
        pytest.param(X, y, {"sample_weight": -np.ones(60)}, "sample_weight has -1 in row 0", id="negative weight"),
        pytest.param(X, y, {"sample_weight": ["x"] * 60}, "sample_weight must be numbers", id="weights of text"),
        pytest.param(X, y, {"sample_weight": [1e306] * 60}, "sample_weight has 1e\\+306", id="huge weights"),
        pytest.param(X, y, {"sample_weight": [1e-320] * 60}, "divide the weights by their mean", id="tiny weights"),
        pytest.param(
            X,
            y,
            {"sample_weight": np.zeros(60)},
            "at least one non-zero number|n_samples=0 is too few",
            id="all weights zero",
        ),
        pytest.param(X, y, {"X_val": X}, "X_val and y_val must be passed together", id="X_val alone"),
        pytest.param(X, y, {"X_val": X[:, :2], "y_val": y}, "2 features", id="X_val of another width"),
        pytest.param(X, y, {"X_val": X, "y_val": y[:5]}, "inconsistent numbers", id="y_val of another length"),
    ]


@pytest.mark.parametrize(("X", "y", "arguments", "message"), bad_data())
def test_bad_data_raises_before_any_compilation(
    X: Any, y: Any, arguments: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("training began")

    monkeypatch.setattr("castlereg.search.candidates.train", fail)
    with pytest.raises(ValueError, match=message):
        CastleRegressor().fit(X, y, **arguments)


@pytest.mark.parametrize(
    ("y", "arguments", "message"),
    [
        (np.zeros(60), {}, "y has only one class, .*0.0.*: a classifier needs at least two"),
        (np.linspace(0, 1, 60), {}, "continuous"),
        (np.arange(60), {}, "classes has a single row"),
        (
            np.arange(60) % 2,
            {"sample_weight": (np.arange(60) % 2).astype(float)},
            "y has only one class, .*1.*: a classifier needs",
        ),
        (
            np.arange(60) % 2,
            {"X_val": np.zeros((2, 3)), "y_val": [1, 7]},
            "y_val has class 7, which is not in the training data",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_bad_classes_raise(y: Any, arguments: dict[str, Any], message: str) -> None:
    X, _ = small_table()
    with pytest.raises(ValueError, match=message):
        quick(CastleClassifier).fit(X, y, **arguments)


def test_predict_rejects_other_columns() -> None:
    X, y = small_table()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = quick().fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c"]])
    with pytest.raises(ValueError, match="X has text in column 'b', such as 'text', but the training data had numbers"):
        model.predict(frame.assign(b="text"))
    with pytest.raises(ValueError, match="expecting 3 features"):
        quick().fit(X, y).predict(X[:, :2])


def test_a_rare_class_is_never_held_out_whole() -> None:
    X, _ = small_table()
    y = np.zeros(60, int)
    y[:30], y[30] = 1, 2
    for seed in range(10):
        model = quick(CastleClassifier, max_epochs=1, random_state=seed, recipe=Recipe(validation_fraction=0.4))
        model.fit(X, y)
        assert len(model.classes_) == 3


def test_divergence_is_reported_not_silent() -> None:
    X, y = small_table()
    with pytest.warns(ConvergenceWarning, match="the loss was not finite in epoch"):
        model = CastleRegressor(learning_rate=1e20, hidden_layer_sizes=(), max_epochs=12, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


# --- importing -----------------------------------------------------------------------------------


def test_import_has_no_side_effects() -> None:
    """No devices start, no configuration changes, and plots and graphs load only when used."""
    script = """
import sys, jax, numpy as np
state = np.random.get_state()[1].copy()
import castlereg
assert jax.config.jax_compilation_cache_dir is None
jax.config.update("jax_num_cpu_devices", 1)  # an error once devices have started
assert (np.random.get_state()[1] == state).all()
loaded = {"matplotlib", "networkx"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_castle_estimators_are_networks_with_castle() -> None:
    X, y = load_diabetes(return_X_y=True)
    castle = quick(reg_beta=0.05, max_epochs=5).fit(X, y)
    network = NetworkRegressor([Castle(0.05)], hidden_layer_sizes=castle.hidden_layer_sizes, max_epochs=5)
    network.set_params(random_state=castle.random_state).fit(X, y)
    np.testing.assert_array_equal(castle.predict(X), network.predict(X))
    pd.testing.assert_frame_equal(castle.input_graph_.weights, network.input_graph_.weights)


def test_a_plain_network_has_no_input_graph_and_forgets_an_earlier_one() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = NetworkRegressor([Castle()], max_epochs=2, random_state=0).fit(X, y)
    assert model.input_graph_.targets == ("y",)
    model.set_params(regularizers=[L2(0.1)]).fit(X, y)
    assert not hasattr(model, "input_graph_")
    assert model.graph_.targets == ("y",)  # discovered from the rows, whatever the networks
    assert not model.model_.networks.has_all_nodes  # only the target's sub-network


def test_composition_means_what_it_says() -> None:
    """The objective of every epoch is the weighted sum of the terms that the history shows."""
    X, y = load_diabetes(return_X_y=True)
    model = quick(reg_beta=0.3, reg_lambda=0.5, max_epochs=6, regularizers=[Dropout(0.2), L2(0.01), Autoencoder(0.2)])
    epochs = model.fit(X, y).history_
    castle = epochs["reconstruction"] + epochs["acyclicity"] + 0.3 * epochs["sparsity"]
    expected = epochs["supervised"] + 0.5 * castle + 0.01 * epochs["l2"] + 0.2 * epochs["autoencoder"]
    np.testing.assert_allclose(epochs["objective"], expected, rtol=1e-5)
    without = quick(reg_beta=0.3, reg_lambda=0.5, max_epochs=6, regularizers=[L2(0.01), Autoencoder(0.2)]).fit(X, y)
    assert not np.array_equal(without.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            CastleRegressor(regularizers=[Castle()]),
            r"CastleRegressor already has a Castle regularizer: .* NetworkRegressor\(",
        ),
        (CastleRegressor(regularizers=L2()), "must be a sequence"),
        (NetworkRegressor([Dropout()], hidden_layer_sizes=()), "Dropout acts on hidden layers"),
        (NetworkRegressor([Castle(features_per_step=99)]), "features_per_step=99, but X has 10 features"),
    ],
)
def test_regularizers_that_do_not_go_together_raise(model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(*load_diabetes(return_X_y=True))


def test_the_start_of_the_input_layer_is_an_option() -> None:
    X, y = load_diabetes(return_X_y=True)
    small, usual = (
        NetworkRegressor(recipe=Recipe(input_init=start), max_epochs=1, learning_rate=1e-9, random_state=0).fit(X, y)
        for start in ("small", "glorot")
    )
    spreads = [float(np.std(model.model_.networks.parameters.input_weights[0, :10])) for model in (small, usual)]
    assert spreads[0] == pytest.approx(0.01, rel=0.3)
    assert spreads[1] == pytest.approx(np.sqrt(2 / 22), rel=0.3)  # Glorot: 11 channels, 11 units


def test_grid_search_over_regularizers() -> None:
    X, y = load_diabetes(return_X_y=True)
    grid = {"regularizers": [[], [L2(0.1)], [Dropout(0.2)]], "recipe": [Recipe(input_init="small")]}
    search = GridSearchCV(NetworkRegressor(max_epochs=3, random_state=0), grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_params_["regularizers"] in grid["regularizers"]
    assert len(set(search.cv_results_["mean_test_score"])) == 3
