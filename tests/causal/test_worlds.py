"""Known worlds: random graphs, their functions and noise, and rows that are drawn from them."""

from __future__ import annotations

from collections.abc import Callable
from graphlib import TopologicalSorter
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from castlereg.causal import KnownWorld, erdos_renyi_dag, example_dag, random_dag, sample, scale_free_dag, weighted_dag
from castlereg.causal.worlds import FUNCTIONS, NOISES, edge_weights, effects, node_features

CHAIN = pd.DataFrame([[0, 2.0, 0], [0, 0, -1.0], [0, 0, 0]], index=list("abc"), columns=list("abc"))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_rows_match_their_equations_exactly_without_noise(function: str) -> None:
    """Noise in the causes alone: every other column is the sum over its parents."""
    dag = weighted_dag(random_dag(15, 40, 1), 0.1, 0.5, 1)
    if function == "released_sigmoid":
        dag = dag.abs()  # with both signs its exponentials of exponentials overflow
    causes = dag.columns[(dag == 0).all()]
    std = {name: 1.0 if name in causes else 0.0 for name in dag}
    rows = KnownWorld(dag, function=function, noise_std=std).sample(200, 0)
    for name in dag.columns.difference(causes):
        total = sum(dag.loc[cause, name] * FUNCTIONS[function](rows[cause].to_numpy()) for cause in dag)
        np.testing.assert_allclose(rows[name], total, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("std", [0.3, 1.0, 4.0])
def test_noise_has_the_standard_deviation_asked_for(noise: str, std: float) -> None:
    rows = KnownWorld(CHAIN, function="linear", noise=noise, noise_std=std).sample(100_000, 0)
    residuals = pd.DataFrame({"a": rows["a"], "b": rows["b"] - 2 * rows["a"], "c": rows["c"] + rows["b"]})
    np.testing.assert_allclose(residuals.std(), std, rtol=0.015)
    np.testing.assert_allclose(residuals.mean() / std, 0, atol=0.015)
    assert np.abs(residuals.corr().to_numpy() - np.eye(3)).max() < 0.015


def test_nodes_can_have_noise_of_their_own() -> None:
    model = KnownWorld(0 * CHAIN, noise={"a": "uniform"}, noise_std=pd.Series({"b": 0.5}))
    rows = model.sample(20_000, 0)
    assert stats.kstest(rows["a"], stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)).cdf).pvalue > 0.01
    assert stats.kstest(rows["b"], stats.norm(scale=0.5).cdf).pvalue > 0.01
    assert stats.kstest(rows["c"], stats.norm().cdf).pvalue > 0.01


def test_linear_rows_have_the_covariance_of_the_graph() -> None:
    dag = weighted_dag(random_dag(6, 9, 0), random_state=0)
    rows = KnownWorld(dag, function="linear").sample(200_000, 0)
    effect = np.linalg.inv(np.eye(6) - dag.to_numpy())
    expected = effect.T @ effect
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(rows.cov() / scale, expected / scale, atol=0.015)


@pytest.mark.parametrize("function", [*FUNCTIONS, "smooth"])
def test_a_seed_gives_the_same_bits(function: str) -> None:
    make = lambda: KnownWorld(example_dag(), function=function, categorical={"X4": 3}, random_state=5)  # noqa: E731
    first = make().sample(300, 1)
    pd.testing.assert_frame_equal(first, make().sample(300, 1), check_exact=True)
    pd.testing.assert_frame_equal(first, make().sample(300, np.random.default_rng(1)), check_exact=True)
    assert not first["X1"].equals(make().sample(300, 2)["X1"])


def test_training_and_test_rows_share_smooth_functions() -> None:
    dag = CHAIN[["a", "b"]].loc[["a", "b"]]
    model = KnownWorld(dag, function="smooth", noise_std={"b": 0}, random_state=3)
    train, test = (model.sample(4000, seed).sort_values("a") for seed in (0, 1))
    np.testing.assert_allclose(np.interp(test["a"], train["a"], train["b"])[50:-50], test["b"][50:-50], atol=1e-2)
    other = KnownWorld(dag, function="smooth", noise_std={"b": 0}, random_state=4).sample(4000, 0)
    assert not np.allclose(other.sort_values("a")["b"], train["b"], atol=0.1)


def test_a_generator_makes_a_model_that_repeats_itself() -> None:
    model = KnownWorld(CHAIN, function="smooth", random_state=np.random.default_rng(0))
    pd.testing.assert_frame_equal(model.sample(20, 0), model.do({}).sample(20, 0), check_exact=True)


def test_changing_the_frame_later_changes_nothing() -> None:
    dag = CHAIN.copy()
    model = KnownWorld(dag, function="linear")
    before = model.sample(20, 0)
    dag.loc["a", "b"] = 100.0
    pd.testing.assert_frame_equal(before, model.sample(20, 0))


# --- categorical nodes -----------------------------------------------------------------------------


def test_levels_follow_the_softmax_of_their_scores() -> None:
    """Frequencies given a parent that is held fixed, against the probabilities from the equations' weights."""
    dag = pd.DataFrame([[0, 1.5], [0, 0]], index=["x", "k"], columns=["x", "k"])
    model = KnownWorld(dag, function="linear", categorical={"k": 3}, random_state=1).do(x=0.8)
    rows = model.sample(50_000, 0)
    effect = KnownWorld(dag, function="linear", categorical={"k": 3}, random_state=1).system
    scores = 0.8 * effect.weights[effect.signals[1], effect.feature_slices[0]][:, 0]
    counts = rows["k"].value_counts(sort=False)
    assert stats.chisquare(counts, 50_000 * np.exp(scores) / np.exp(scores).sum()).pvalue > 0.001


def test_categorical_parents_shift_their_children_by_level() -> None:
    dag = pd.DataFrame([[0, 2.0], [0, 0]], index=["k", "y"], columns=["k", "y"])
    rows = KnownWorld(dag, categorical={"k": 4}, noise_std=0.0).sample(500, 0)
    by_level = rows.groupby("k", observed=True)["y"]
    np.testing.assert_allclose(by_level.std(), 0, atol=1e-12)
    effects = by_level.mean()
    assert effects.mean() == pytest.approx(0)
    assert np.mean(effects**2) == pytest.approx(4)


def test_categorical_columns_are_categoricals_of_strings() -> None:
    rows = KnownWorld(example_dag(), categorical={"X2": 2, "Y": 3}).sample(2000, 0)
    assert list(rows.columns) == list(example_dag().columns)
    assert rows["X2"].cat.categories.tolist() == ["L0", "L1"]
    assert set(rows["Y"]) == {"L0", "L1", "L2"}
    assert all(rows[name].dtype == float for name in rows.columns.difference(["X2", "Y"]))
    # every edge at a categorical node has an effect
    for level_of, other in (("X2", "X1"), ("X2", "X5"), ("Y", "X3"), ("Y", "X8")):
        groups = [group.to_numpy() for _, group in rows.groupby(level_of, observed=True)[other]]
        assert stats.f_oneway(*groups).pvalue < 0.01


# --- interventions ---------------------------------------------------------------------------------


def test_do_has_the_effects_computed_by_hand() -> None:
    rows = KnownWorld(CHAIN, function="linear", noise_std=0.5).do(b=3.0).sample(50_000, 0)
    assert (rows["b"] == 3).all()
    assert rows["a"].mean() == pytest.approx(0, abs=0.02)  # a cause, not an effect
    assert rows["c"].mean() == pytest.approx(-3, abs=0.02)
    assert rows["c"].std() == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("function", ["sigmoid", "smooth"])
def test_do_changes_descendants_alone(function: str) -> None:
    model = KnownWorld(example_dag(), function=function)
    held = model.do({"X3": 1.5})
    before, after = model.sample(100, 0), held.sample(100, 0)
    changed = ["X3", "Y", "X6", "X7", "X8", "X9"]
    pd.testing.assert_frame_equal(before.drop(columns=changed), after.drop(columns=changed), check_exact=True)
    assert not any(np.allclose(before[name], after[name]) for name in changed)
    assert held.dag["X3"].sum() == 0
    assert held.dag.loc["X3"].sum() == 3
    assert model.dag["X3"].sum() == 1
    # what X3 gives to its children is the same function of the new value
    given = (after["X7"] - before["X7"]).to_numpy()
    at = model.system
    place = at.weights[at.signals[6], at.feature_slices[2]][0]
    change = place @ (at.features(2, after["X3"].to_numpy()) - at.features(2, before["X3"].to_numpy()))
    np.testing.assert_allclose(given, change, atol=1e-12)


def test_do_holds_levels_and_adds_up() -> None:
    model = KnownWorld(example_dag(), categorical={"X2": 3}).do(X2="L1").do(X1=2.0)
    rows = model.sample(50, 0)
    assert set(rows["X2"]) == {"L1"}
    assert set(rows["X1"]) == {2.0}
    assert repr(model) == "<KnownWorld: 10 nodes, 10 edges, sigmoid, X2='L1', X1=2.0 held>"


# --- noise columns, graph --------------------------------------------------------------------------


def test_noise_columns_are_standard_normal_and_joined_to_nothing() -> None:
    model = KnownWorld(CHAIN, function="smooth", noise="laplace", noise_std=0.1)
    wider = model.with_noise_columns(3)
    rows = wider.sample(20_000, 0)
    pd.testing.assert_frame_equal(rows[["a", "b", "c"]], model.sample(20_000, 0), check_exact=True)
    for name in ("noise1", "noise2", "noise3"):
        assert stats.kstest(rows[name], "norm").pvalue > 0.01
        assert wider.dag[name].sum() == wider.dag.loc[name].sum() == 0


def test_names_of_noise_columns_are_free_ones() -> None:
    named = CHAIN.rename(index={"a": "noise2"}, columns={"a": "noise2"})
    assert KnownWorld(named).with_noise_columns(2).names == ["noise2", "b", "c", "noise1", "noise3"]
    assert KnownWorld(CHAIN).with_noise_columns(1).with_noise_columns(1).names[-2:] == ["noise1", "noise2"]


def test_true_graph_is_the_frames() -> None:
    graph = KnownWorld(CHAIN).graph("c")
    pd.testing.assert_frame_equal(graph.weights, CHAIN.abs().astype(float))
    assert graph.target == "c"
    assert graph.edges()[["confidence", "direction"]].to_numpy().tolist() == [[1, 1], [1, 1]]


# --- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "gauss"}, "noise='gauss' is not one of .*did you mean 'gaussian'"),
        ({"noise": {"a": "cauchy"}}, r"noise\['a'\]='cauchy' is not one of"),
        ({"noise_std": -1}, "noise_std=-1 must be at least 0"),
        ({"noise_std": {"b": np.nan}}, r"noise_std\['b'\]=nan must be a finite number"),
        ({"noise_std": {"d": 1}}, "unknown node 'd' in noise_std; the nodes are a, b, c"),
        ({"categorical": {"a": 1}}, r"categorical\['a'\]=1 must be a whole number of at least 2"),
        ({"fixed": {"a": np.inf}}, "the value of 'a'=inf must be a finite number"),
        ({"fixed": {"a": "L2"}, "categorical": {"a": 2}}, "the value of 'a'='L2' is not one of 'L0', 'L1'"),
        ({"random_state": -1}, "random_state=-1 must be a whole number"),
    ],
)
def test_bad_options_are_refused_by_value(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KnownWorld(CHAIN, **options)
    with pytest.raises(ValueError, match="n_rows=0 must be"):
        KnownWorld(CHAIN).sample(0, 0)


def test_sums_beyond_floating_point_are_refused_not_returned() -> None:
    with pytest.raises(OverflowError, match=r"too large for floating-point numbers.*'released_sigmoid'"):
        KnownWorld(-CHAIN * 100, function="released_sigmoid").sample(100, 0)
    with pytest.raises(OverflowError, match="smaller weights"):
        KnownWorld(1e200 * random_dag(4, 6, 0), function="linear").sample(100, 0)


def test_linear_sums_along_a_complete_graph_of_150_nodes_stay_finite() -> None:
    rows = KnownWorld(random_dag(150, branching=150), function="linear").sample(20, 0)
    assert np.isfinite(rows.to_numpy()).all()
    assert 2.0**140 < rows.abs().to_numpy().max() < 2.0**155


# --- rows in one call ------------------------------------------------------------------------------


def test_linear_data_have_the_weights_and_noise_of_the_graph() -> None:
    dag = pd.DataFrame([[0, 2.0, 0], [0, 0, -1.0], [0, 0, 0]], index=list("abc"), columns=list("abc"))
    rows = sample(dag, 20_000, function="linear", noise_std=0.5, random_state=0)
    fit = LinearRegression().fit(rows[["a", "b"]], rows["c"])
    np.testing.assert_allclose(fit.coef_, [0, -1], atol=0.02)
    np.testing.assert_allclose((rows["c"] - fit.predict(rows[["a", "b"]])).std(), 0.5, rtol=0.02)


@pytest.mark.parametrize("function", ["linear", "sigmoid", "released_sigmoid"])
def test_rows_are_those_of_earlier_versions_up_to_rounding(function: str) -> None:
    """One generator draws all noise, node by node, and is left where it was left before."""
    dag, rng, new = random_dag(12, 20, 3), np.random.default_rng(7), np.random.default_rng(7)
    values = dict(zip(dag.columns, 0.7 * rng.standard_normal((12, 90)), strict=True))
    parents = {node: list(dag.index[dag[node] != 0]) for node in dag.columns}
    for node in TopologicalSorter(parents).static_order():
        for parent in parents[node]:
            values[node] += FUNCTIONS[function](values[parent])
    rows = sample(dag, 90, function=function, noise_std=0.7, random_state=new)
    pd.testing.assert_frame_equal(rows, pd.DataFrame(values), rtol=1e-12)
    assert rng.random() == new.random()


def test_least_squares_on_the_example_graph_has_the_known_error() -> None:
    """The population error of OLS, 0.873 of the target's variance with sigmoids and 0.844 with 1 + exp(-x)."""
    for function, floor in (("sigmoid", 0.873), ("released_sigmoid", 0.844), ("linear", 0.047)):
        rows = sample(example_dag(), 100_000, function=function, random_state=0)
        X, y = rows.drop(columns="Y"), rows["Y"]
        residual = y - LinearRegression().fit(X, y).predict(X)
        assert residual.var() / y.var() == pytest.approx(floor, abs=0.02)


def test_sample_is_a_short_form_of_the_model() -> None:
    options = {"function": "sine", "noise": "laplace", "noise_std": {"X1": 0.2}}
    rows = sample(example_dag(), 50, **options, random_state=1)
    model = KnownWorld(example_dag(), **options)
    pd.testing.assert_frame_equal(rows, model.sample(50, 1))


@pytest.mark.parametrize("options", [{"function": "smooth"}, {"categorical": {"X1": 3}}])
def test_a_number_repeats_random_functions_too(options: dict[str, object]) -> None:
    first = sample(example_dag(), 50, random_state=4, **options)  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(first, sample(example_dag(), 50, random_state=4, **options))  # type: ignore[arg-type]


def test_unknown_function_is_refused() -> None:
    with pytest.raises(ValueError, match="function='cubic' is not one of"):
        sample(example_dag(), 10, function="cubic", random_state=0)


# --- functions and noise ----------------------------------------------------------------------------

KNOWN = {
    "gaussian": stats.norm(),
    "uniform": stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)),
    "laplace": stats.laplace(scale=1 / np.sqrt(2)),
    "gumbel": stats.gumbel_r(loc=-np.euler_gamma * np.sqrt(6) / np.pi, scale=np.sqrt(6) / np.pi),
}


@pytest.mark.parametrize("name", NOISES)
def test_noise_follows_its_distribution(name: str) -> None:
    drawn = NOISES[name](np.random.default_rng(1), 100_000)
    assert stats.kstest(drawn, KNOWN[name].cdf).pvalue > 0.01
    assert drawn.mean() == pytest.approx(0, abs=0.01)
    assert drawn.std() == pytest.approx(1, rel=0.02)


def test_functions_at_known_points() -> None:
    x = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(FUNCTIONS["linear"](x), x)
    np.testing.assert_allclose(FUNCTIONS["sigmoid"](x), 1 / (1 + np.exp(-x)))
    np.testing.assert_allclose(FUNCTIONS["released_sigmoid"](x), [1 + np.e, 2, 1 + np.exp(-2)])
    np.testing.assert_allclose(FUNCTIONS["sine"](x), np.sin(x))


def test_smooth_functions_have_the_covariance_of_their_gaussian_process() -> None:
    """Mean over 2000 draws of f(x) f(x'), which is exp(-(x - x')^2 / 2)."""
    x = np.array([-1.5, 0.0, 0.5, 2.0])
    total = np.zeros((4, 4))
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        features = node_features("smooth", 0, rng)
        drawn = effects("smooth", 0, [0], features.size, rng)[0] @ features.apply(x)
        total += drawn.T @ drawn
    np.testing.assert_allclose(total / 2000, np.exp(-((x[:, None] - x) ** 2) / 2), atol=0.12)


@pytest.mark.parametrize(("own", "child"), [(2, 0), (4, 0), (0, 2), (0, 3), (2, 2), (3, 5)])
def test_effects_of_levels_have_mean_zero_and_mean_square_one(own: int, child: int) -> None:
    for seed in range(10):
        effect = effects("sigmoid", own, [child], max(own, 1), np.random.default_rng(seed))[0]
        assert effect.shape == (max(child, 1), max(own, 1))
        assert np.mean(effect**2) == pytest.approx(1)
        if own:
            np.testing.assert_allclose(effect.mean(axis=1), 0, atol=1e-12)
        if child:
            np.testing.assert_allclose(effect.mean(axis=0), 0, atol=1e-12)


def test_effects_do_not_depend_on_later_children() -> None:
    few = effects("smooth", 0, [0, 3], 32, np.random.default_rng(0))
    many = effects("smooth", 0, [0, 3, 0, 4], 32, np.random.default_rng(0))
    for one, other in zip(few, many, strict=False):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("n_nodes", "n_edges", "n_rows"), [(1, 0, 1), (7, 21, 150), (40, 60, 99), (40, 780, 150)])
def test_rows_equal_a_loop_over_edges(
    function: str, n_nodes: int, n_edges: int, n_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("castlereg.causal.structural._CELLS", 50_000)  # several pieces of rows
    dag = weighted_dag(random_dag(n_nodes, n_edges, 0), 0.01, 0.2, 0).abs()  # 1 + exp(-x) overflows with both signs
    rng = np.random.default_rng(0)
    expected, weights, done = np.stack([rng.standard_normal(n_rows) for _ in dag]), dag.to_numpy(), set()  # type: ignore[var-annotated]
    while len(done) < n_nodes:
        for k in range(n_nodes):
            if k not in done and set(np.flatnonzero(weights[:, k])) <= done:
                for j in np.flatnonzero(weights[:, k]):
                    expected[k] += weights[j, k] * FUNCTIONS[function](expected[j])
                done.add(k)
    drawn = KnownWorld(dag, function=function).drawn(n_rows, np.random.default_rng(0))
    np.testing.assert_allclose(drawn, expected, rtol=1e-10, atol=1e-10)


# --- random graphs ----------------------------------------------------------------------------------

DRAWS: dict[str, Callable[[int, int], pd.DataFrame]] = {
    "random": lambda n, seed: random_dag(n, random_state=seed),
    "erdos_renyi": lambda n, seed: erdos_renyi_dag(n, 0.3, seed),
    "scale_free": lambda n, seed: scale_free_dag(n, 2, seed),
}


def is_acyclic(dag: pd.DataFrame) -> bool:
    return bool(nx.is_directed_acyclic_graph(nx.from_pandas_adjacency(dag, create_using=nx.DiGraph)))


def test_example_graph_is_the_papers() -> None:
    dag = example_dag()
    edges = {(cause, effect) for cause in dag for effect in dag if dag.loc[cause, effect]}
    expected = ["X1-X2", "X1-X3", "X1-X4", "X2-X5", "X2-Y", "X3-Y", "X3-X6", "X3-X7", "X6-X9", "Y-X8", "Y-X9"]
    assert edges == {tuple(edge.split("-")) for edge in expected}


@pytest.mark.parametrize(("p", "edges"), [(1, 0), (2, 0), (5, 10), (15, 45), (30, 60)])
def test_random_graphs_are_acyclic_with_the_edges_asked_for(p: int, edges: int) -> None:
    for seed in range(5):
        dag = random_dag(p, edges, seed)
        assert int(dag.to_numpy().sum()) == edges
        assert is_acyclic(dag)


def test_random_graphs_are_those_of_earlier_versions() -> None:
    """Published figures rest on these draws."""
    earlier = [[2, 3], [2, 4], [3, 0], [3, 1]]
    assert np.argwhere(random_dag(5, 4, 0).to_numpy()).tolist() == earlier
    assert np.argwhere(random_dag(5, 4, np.random.default_rng(0)).to_numpy()).tolist() == earlier


@pytest.mark.parametrize("name", DRAWS)
def test_every_kind_is_acyclic_and_repeats_for_a_seed(name: str) -> None:
    for seed in range(20):
        dag = DRAWS[name](12, seed)
        assert is_acyclic(dag)
        assert set(np.unique(dag)) <= {0, 1}
        pd.testing.assert_frame_equal(dag, DRAWS[name](12, seed))
    assert not DRAWS[name](12, 0).equals(DRAWS[name](12, 1))


@pytest.mark.parametrize("name", DRAWS)
def test_no_global_random_state_is_used(name: str) -> None:
    np.random.seed(0)
    before = np.random.get_state()[1].copy()  # type: ignore[index]
    DRAWS[name](8, 0)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # type: ignore[index]


def test_every_edge_is_as_likely_as_any_other() -> None:
    """Chi-square over 2000 draws of about 6 of the 30 directed edges of six nodes."""
    rng = np.random.default_rng(0)
    off_diagonal = ~np.eye(6, dtype=bool)
    for draw in (lambda: random_dag(6, 6, rng), lambda: erdos_renyi_dag(6, 0.4, rng)):
        counts = sum(draw().to_numpy() for _ in range(2000))[off_diagonal]
        assert (counts > 0).all()
        assert stats.chisquare(counts).pvalue > 0.001


def test_every_edge_of_a_scale_free_graph_is_possible() -> None:
    rng = np.random.default_rng(0)
    counts = sum(scale_free_dag(6, 1, rng).to_numpy() for _ in range(1000))
    assert (counts[~np.eye(6, dtype=bool)] > 0).all()


@pytest.mark.parametrize(("branching", "edges"), [(0, 0), (1, 10), (2.5, 25), (4.5, 45), (5, 45), (10, 45)])
def test_branching_gives_edges_per_node_or_as_many_as_fit(branching: float, edges: int) -> None:
    assert int(random_dag(10, branching=branching, random_state=3).to_numpy().sum()) == edges


def test_sampled_branching_is_uniform_up_to_the_number_of_nodes() -> None:
    rng = np.random.default_rng(0)
    counts = [int(random_dag(8, random_state=rng).to_numpy().sum()) for _ in range(1600)]
    numbers = np.array([counts.count(edges) for edges in (8, 16, 24, 28)])  # from 4 on the graph is complete
    assert numbers.sum() == 1600
    assert stats.chisquare(numbers, [200, 200, 200, 1000]).pvalue > 0.001


def test_erdos_renyi_has_binomial_edge_counts() -> None:
    rng = np.random.default_rng(0)
    counts = [int(erdos_renyi_dag(20, expected_edges=40, random_state=rng).to_numpy().sum()) for _ in range(500)]
    assert np.mean(counts) == pytest.approx(40, abs=4 * np.sqrt(40 / 500))
    assert np.var(counts) == pytest.approx(40 * (1 - 40 / 190), rel=0.2)
    assert erdos_renyi_dag(5, 1.0, 0).to_numpy().sum() == 10
    assert erdos_renyi_dag(5, 0, 0).to_numpy().sum() == 0


def test_scale_free_graphs_have_hubs() -> None:
    degrees = {"scale free": [], "random": []}  # type: dict[str, list[int]]
    for seed in range(5):
        dag = scale_free_dag(200, 2, seed)
        edges = int(dag.to_numpy().sum())
        assert edges == 2 + 2 * (200 - 3)  # a star of three nodes, then two for each node that joins
        assert dag.sum(axis=0).max() == 2
        degrees["scale free"].append(int(dag.sum(axis=1).max()))
        degrees["random"].append(int(random_dag(200, edges, seed).sum(axis=1).max()))
    assert min(degrees["scale free"]) > 1.5 * max(degrees["random"])


def test_weights_lie_within_their_bounds_with_both_signs() -> None:
    dag = random_dag(40, 300, 0)
    weights = weighted_dag(dag, 0.5, 2.0, 0)
    np.testing.assert_array_equal(weights != 0, dag != 0)
    sizes = weights.abs().to_numpy()[dag.to_numpy() != 0]
    assert stats.kstest(sizes, stats.uniform(0.5, 1.5).cdf).pvalue > 0.01
    assert 0.4 < (weights.to_numpy()[dag.to_numpy() != 0] > 0).mean() < 0.6


def test_too_many_edges_are_refused() -> None:
    with pytest.raises(ValueError, match="n_edges=7 is too large: 4 nodes have at most 6 edges"):
        random_dag(4, 7, 0)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: random_dag(0, 0, 0), "n_nodes=0 must be a whole number"),
        (lambda: random_dag(4, -1, 0), "n_edges=-1 must be"),
        (lambda: random_dag(4, 3, 0, branching=1), "n_edges=3 and branching=1"),
        (lambda: random_dag(4, branching=-1), "branching=-1 must be at least 0"),
        (lambda: erdos_renyi_dag(4), "pass exactly one of them"),
        (lambda: erdos_renyi_dag(4, 0.5, expected_edges=2), "pass exactly one of them"),
        (lambda: erdos_renyi_dag(4, 1.5), "probability=1.5"),
        (lambda: erdos_renyi_dag(4, expected_edges=7), "expected_edges=7 is too large: 4 nodes have at most 6"),
        (lambda: scale_free_dag(3, 3), "edges_per_node=3 must be less than n_nodes=3"),
        (lambda: weighted_dag(example_dag(), 0), "low=0 must be greater than 0"),
        (lambda: weighted_dag(example_dag(), 2, 1), "high=1 must be at least 2"),
    ],
)
def test_bad_arguments_are_refused_by_value(draw: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()


def test_frames_that_are_no_graphs_are_refused() -> None:
    with pytest.raises(ValueError, match="a cycle: a -> b -> a"):
        edge_weights(pd.DataFrame([[0, 1], [1, 0]], index=["a", "b"], columns=["a", "b"]))
    with pytest.raises(ValueError, match="same unique names"):
        edge_weights(pd.DataFrame([[0, 1], [0, 0]], index=["a", "b"], columns=["b", "a"]))
    with pytest.raises(ValueError, match="not finite"):
        edge_weights(pd.DataFrame([[0, np.nan], [0, 0]], index=["a", "b"], columns=["a", "b"]))
    with pytest.raises(TypeError, match="must be a DataFrame"):
        edge_weights(np.zeros((2, 2)))  # type: ignore[arg-type]
