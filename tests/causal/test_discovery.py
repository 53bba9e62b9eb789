"""The graph that rows speak for, on data whose graph is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg.acyclicity.cut import find_cycle
from castlereg.causal import CausalGraph, EdgeConstraints, discover_graph
from castlereg.causal.discovery import Climb, Discovery, _prepared, discover, linear_order, paths
from castlereg.causal.judge import Column, Judge, log_density
from castlereg.causal.variables import Variable, Variables
from castlereg.layout import EdgeRules
from tests.causal.coded import coded

N = 600


def chain(rng: np.random.Generator, noise: str = "laplace", n: int = N) -> Any:
    """a -> b -> c and a -> c, linear."""
    draw = getattr(rng, noise)
    a = draw(size=n)
    b = 0.8 * a + draw(size=n)
    c = 0.7 * b + 0.6 * a + draw(size=n)
    return np.column_stack([c, a, b])  # in an order that gives nothing away


TRUTH = np.zeros((3, 3), bool)
TRUTH[[1, 2, 1], [2, 0, 0]] = True


def number(values: Any) -> Column:
    return Column.of(Variable("x"), values)


def discovered(values: Any, *rules: Any, **options: Any) -> Discovery:
    names = [f"x{k}" for k in range(values.shape[1])]
    return discover(Variables([Variable(name) for name in names], values), *rules, **options)


# --- densities --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda rng, n: rng.normal(size=n), -0.5 * np.log(2 * np.pi * np.e)),
        (lambda rng, n: rng.laplace(size=n), -np.log(2 * np.e)),
        (lambda rng, n: rng.uniform(size=n), 0.0),
        (lambda rng, n: 7 + 100 * rng.normal(size=n), -0.5 * np.log(2 * np.pi * np.e) - np.log(100)),
    ],
)
def test_the_mean_log_density_is_the_negative_entropy(draw: Any, expected: float) -> None:
    values = draw(np.random.default_rng(0), 20_000)
    share_of_tail = np.log(1 - 0.05)  # what the wide density costs at most
    assert expected + share_of_tail - 0.02 < log_density(values).mean() < expected + 0.02


def test_densities_leave_the_value_itself_out() -> None:
    """An outlier is improbable, however sharp the kernel, and repeated values do not have an infinite density."""
    values = np.r_[np.random.default_rng(0).normal(size=500), 50.0]
    scores = log_density(values)
    assert scores[-1] < scores[:-1].min() - 1
    assert np.isfinite(log_density(np.zeros(50))).all()


# --- the judge ------------------------------------------------------------------------------------


def judged(values: Any) -> Judge:
    return Judge([number(column) for column in values.T])


@pytest.mark.parametrize(
    "effect",
    [
        lambda x, e: np.sin(2 * x) + 0.5 * e,
        lambda x, e: x * np.exp(0.0 * x) + np.exp(0.7 * x) * 0.5 * e,  # the scale of the noise depends on the cause
        lambda x, e: np.sinh(np.sin(2 * x) + 0.5 * e),  # a monotone function of a sum
    ],
    ids=["smooth", "scale", "bent"],
)
def test_the_true_direction_is_more_likely(effect: Any) -> None:
    rng = np.random.default_rng(1)
    x, e = rng.normal(size=N), rng.normal(size=N)
    judge = judged(np.column_stack([x, effect(x, e)]))
    forward = judge.total(0, frozenset()) + judge.total(1, frozenset({0}))
    backward = judge.total(1, frozenset()) + judge.total(0, frozenset({1}))
    assert forward > backward + 10


def test_a_column_that_says_nothing_lowers_the_score() -> None:
    rng = np.random.default_rng(2)
    losses = [
        judge.total(0, frozenset()) - judge.total(0, frozenset({1}))
        for judge in (judged(rng.normal(size=(N, 2))) for _ in range(10))
    ]
    assert min(losses) > -4 and np.mean(losses) > 0  # left-out rows see through it


def test_levels_of_levels_are_shares_without_the_row_itself() -> None:
    rng = np.random.default_rng(3)
    cause = rng.integers(0, 3, N)
    effect = np.where(rng.random(N) < 0.8, cause, rng.integers(0, 3, N))
    judge = Judge([Column(cause.astype(float), 3), Column(effect.astype(float), 3)])
    shares = np.array([np.bincount(effect[cause == k], minlength=3) / (cause == k).sum() for k in range(3)])
    expected = np.log(shares[cause, effect]).sum()
    assert expected - 12 < judge.total(1, frozenset({0})) < expected  # six shares cost about a nat each


def test_logits_of_numbers_are_a_logistic_regression() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=2000)
    y = (rng.random(2000) < 1 / (1 + np.exp(-2 * x))).astype(float)
    judge = Judge([number(x), Column(y, 2)])
    truth = np.log(np.where(y == 1, 1 / (1 + np.exp(-2 * x)), 1 / (1 + np.exp(2 * x)))).sum()
    assert judge.total(1, frozenset({0})) == pytest.approx(truth, rel=0.03)


def test_rows_where_the_effect_is_missing_do_not_count() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=N)
    y = x + rng.normal(size=N)
    y[:200] = np.nan
    judge = judged(np.column_stack([x, y]))
    scores = judge.by_row(1, frozenset({0}))
    assert not scores[:200].any()
    alone = judged(np.column_stack([x, y])[200:]).by_row(1, frozenset({0}))
    assert scores[200:].mean() == pytest.approx(alone.mean(), abs=0.05)


# --- the search -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_linear_equations_are_ordered_by_the_shape_of_the_noise(seed: int) -> None:
    values = chain(np.random.default_rng(seed), n=2000)
    assert linear_order(values) == [1, 2, 0]
    found = discovered(values)
    np.testing.assert_array_equal(found.edges, TRUTH)
    assert (found.shapes[TRUTH] > 0.7).all() and (found.joined[TRUTH] > 0.8).all()
    # Independences say nothing about a complete graph, and without their agreement shapes are believed only in part.
    np.testing.assert_array_equal(found.independences[TRUTH], 0.5)
    assert (found.direction[TRUTH] < 0.9).all()


def test_directions_of_linear_gaussian_data_are_unknown() -> None:
    """All orders of a complete graph are equally likely; that of one table is chance, so average over many."""
    graphs = [discovered(chain(np.random.default_rng(seed), "normal", 2000)) for seed in range(20)]
    assert all(found.edges.sum() == 3 for found in graphs)
    # The mean over a table's edges has a standard deviation of about 0.15 for true directions, 0.08 for those found.
    assert 0.35 < np.mean([found.direction[TRUTH] for found in graphs]) < 0.65
    assert np.mean([found.direction[found.edges] for found in graphs]) < 0.75


def test_a_common_effect_shows_its_causes_even_then() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 2000))
    found = discovered(np.column_stack([a + b + rng.normal(size=2000), a, b]))
    assert found.edges[1, 0] and found.edges[2, 0] and found.edges.sum() == 2
    # The only rival is the graph with a third edge, which explains the rows as well: right, but not surely so.
    assert found.direction[1, 0] > 0.6 and found.direction[2, 0] > 0.6


def test_rules_hold() -> None:
    values = chain(np.random.default_rng(0), n=1000)
    allowed = ~np.eye(3, dtype=bool)
    allowed[1, 2] = False
    required = np.zeros((3, 3), bool)
    required[0, 1] = True  # against the truth
    found = discovered(values, allowed, required)
    assert found.edges[0, 1] and not found.edges[1, 2] and find_cycle(found.edges) is None
    assert found.joined[0, 1] == 1 and found.direction[0, 1] == 1 and found.direction[1, 0] == 0
    nothing = discovered(values, np.zeros((3, 3), bool))
    assert not nothing.edges.any() and not nothing.joined.any()


def test_the_best_of_all_graphs_is_found() -> None:
    """All 25 acyclic graphs of three nodes, scored one by one."""
    values = chain(np.random.default_rng(7), n=500)
    judge = judged(values)
    allowed = ~np.eye(3, dtype=bool)
    climb = Climb(judge, allowed, np.zeros((3, 3), bool), penalty=3.0)
    graphs = []
    for bits in range(64):
        edges = np.zeros((3, 3), bool)
        edges[allowed] = [(bits >> k) & 1 for k in range(6)]
        if find_cycle(edges) is None:
            graphs.append(edges)
    assert len(graphs) == 25
    best = max(graphs, key=climb.score)
    for start in graphs:
        reached = climb.perturbed(climb.uphill(start))
        assert climb.score(reached) == pytest.approx(climb.score(best))


def test_paths_are_those_of_powers() -> None:
    rng = np.random.default_rng(0)
    edges = np.triu(rng.random((9, 9)) < 0.3, 1)
    powers = np.linalg.matrix_power(edges.astype(int) + np.eye(9, dtype=int), 9) > 0
    np.testing.assert_array_equal(paths(edges), powers)


def test_rows_of_balanced_columns_may_be_in_any_order() -> None:
    """Two columns with the same shares of the same values must not make different rows equal."""
    rng = np.random.default_rng(0)
    a, b = np.tile([0.0, 1.0], 300), np.repeat([0.0, 1.0], 300)
    frame = pd.DataFrame({"a": a, "b": b, "c": a + b + 0.5 * rng.normal(size=600)})
    found = discover(Variables.of_frame(frame))
    for seed in range(3):
        again = discover(Variables.of_frame(frame.sample(frac=1, random_state=seed)))
        for first, second in zip(found, again, strict=True):
            np.testing.assert_array_equal(first, second)


def test_units_of_a_column_whose_mean_is_a_value_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    x = np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 100)
    frame = pd.DataFrame({"x": x, "y": x + rng.normal(size=500), "z": x + rng.normal(size=500)})
    found, scaled = (discover(Variables.of_frame(table)) for table in (frame, frame * 0.3))
    np.testing.assert_array_equal(found.edges, scaled.edges)
    np.testing.assert_allclose(found.direction, scaled.direction, atol=1e-9)


def test_missing_levels_do_not_depend_on_the_order_of_the_categories() -> None:
    rng = np.random.default_rng(2)
    codes, lost = rng.choice(3, 600, p=[0.5, 0.3, 0.2]), rng.random(600) < 0.3
    y = codes + 0.8 * rng.normal(size=600)
    found = []
    for order in ([0, 1, 2], [2, 0, 1]):
        level = pd.Categorical.from_codes(np.where(lost, -1, np.array(order)[codes]), list("pqr"))
        found.append(discover(Variables.of_frame(pd.DataFrame({"level": level, "y": y}))))
    np.testing.assert_allclose(found[0].joined, found[1].joined, atol=0.01)  # the folds of the rows differ


def test_infinite_cells_count_as_missing_and_rows_are_needed() -> None:
    frame = pd.DataFrame(chain(np.random.default_rng(0), n=300), columns=list("cab"))
    frame.loc[3, "a"] = np.inf
    lost = frame.replace(np.inf, np.nan)
    found, expected = (discover(Variables.of_frame(table)) for table in (frame, lost))
    np.testing.assert_array_equal(found.joined, expected.joined)
    with pytest.raises(ValueError, match="a graph needs rows"):
        discover(Variables.of_frame(frame[:0]))


def mixed_frame(n: int = 500) -> pd.DataFrame:
    """Numbers, levels, a copy of a column, and missing values."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(chain(rng, n=n), columns=["c", "a", "b"])
    frame["k"] = pd.Categorical(np.where(frame["b"] + rng.logistic(size=n) > 0, "yes", "no"))
    frame["l"] = pd.Categorical(rng.integers(0, 2, n))
    frame["m"] = pd.Categorical(1 - frame["l"].astype(int))  # the same shares of levels
    frame["twin"] = frame["a"].sample(frac=1, random_state=1).to_numpy()  # the same values in other rows
    frame.loc[::9, "c"] = np.nan
    return frame


def test_the_same_seed_gives_the_same_bits_in_any_order_of_columns_and_rows() -> None:
    frame = mixed_frame()
    found = discover(Variables.of_frame(frame), seed=3)
    for seed in range(3):
        turned = frame.sample(frac=1, random_state=seed)[list(np.random.default_rng(seed).permutation(list(frame)))]
        order = np.ix_(*[[list(frame).index(name) for name in turned]] * 2)
        for first, second in zip(found, discover(Variables.of_frame(turned), seed=3), strict=True):
            np.testing.assert_array_equal(first[order], second)


def test_at_most_2000_rows_are_used_and_none_without_weight() -> None:
    frame = pd.DataFrame(chain(np.random.default_rng(0), n=5000))
    weight = np.r_[np.ones(2500), np.zeros(2500)]
    long = Variables.of_frame(frame, weight=weight)
    assert len(_prepared(long, 0)[0][0].values) == 2000
    short = Variables.of_frame(frame[:2500])
    for first, second in zip(_prepared(long, 0)[0], _prepared(short, 0)[0], strict=True):
        np.testing.assert_array_equal(first.values, second.values)


def test_strengths_are_the_share_of_the_error_that_an_edge_explains() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=2000)
    found = discovered(np.column_stack([a, np.sin(a) + 0.5 * rng.normal(size=2000)]))
    expected = np.sqrt(1 - 0.25 / (0.25 + np.sin(a).var()))
    assert found.strength[0, 1] == pytest.approx(expected, abs=0.05) and found.strength[1, 0] == 0


def test_ctrl_c_raises_or_keeps_the_best_graph_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    values = chain(np.random.default_rng(0))
    perturbed = Climb.perturbed

    def interrupted(self: Climb, edges: Any, bar: Any = None, keep: bool = False) -> Any:
        def raises(*_: Any) -> Any:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Climb, "uphill", raises)
            return perturbed(self, edges, bar, keep)

    monkeypatch.setattr(Climb, "perturbed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        discovered(values)
    found = discovered(values, keep=True)
    assert found.edges.any() and find_cycle(found.edges) is None


def test_columns_are_numbers_or_levels() -> None:
    value = Column.of(Variable("x"), np.array([1.0, np.nan, 3.0, 2.0]))
    np.testing.assert_array_equal(value.present, [True, False, True, True])
    np.testing.assert_allclose(value.values[[0, 2, 3]].mean(), 0, atol=1e-12)
    flag = Column.of(Variable("x", ("no", "yes")), np.array([1.0, 0.0, np.nan, 0.0]))
    assert (flag.levels, flag.values[[0, 1, 3]].tolist()) == (2, [1, 0, 0])
    np.testing.assert_array_equal(flag.present, [True, True, False, True])
    huge = Column.of(Variable("x"), np.array([1e300, 2e300, -1e300, 0.0]))
    assert huge.present is None and huge.values.std() == pytest.approx(1)
    assert not Column.of(Variable("x"), np.full(4, np.nan)).values.any()


def test_columns_without_variation_have_no_edges() -> None:
    frame = pd.DataFrame(chain(np.random.default_rng(0)), columns=list("cab"))
    frame["one"], frame["empty"] = 1.0, np.nan
    frame["two"] = pd.Categorical(["x"] * len(frame), ["x", "y"])
    found = discover(Variables.of_frame(frame))
    np.testing.assert_array_equal(found.edges[:3, :3], TRUTH)
    assert found.edges.sum() == 3


@pytest.mark.filterwarnings("ignore:constant columns")
def test_the_graph_of_a_table_obeys_its_rules() -> None:
    frame = mixed_frame().assign(constant=1.0)
    preprocessing, rows = coded(frame, "c")
    names = [*frame.drop(columns="c"), "c"]
    known = EdgeConstraints(required=[("a", "c")], sinks=["k"], forbidden=[("b", "k")])
    graph = discover_graph(preprocessing, rows, edges=known.rules(names))
    assert graph.nodes == names and graph.targets == ("c",)
    assert "a" in graph.parents("c") and not graph.children("k") and "b" not in graph.parents("k")
    assert graph.confidence.loc["a", "c"] == graph.direction.loc["a", "c"] == 1
    assert not graph.parents("constant") and not graph.confidence.loc["constant"].any()
    assert "are probabilities" in graph.summary()
    free = discover_graph(preprocessing, rows)
    again = free.stability(2)
    assert again["persists"].between(0, 1).all() and (again["persists"] <= again["joined"]).all()
    with pytest.raises(ValueError, match="not discovered from rows"):
        CausalGraph.from_json(free.to_json()).stability()
    assert free.parents("k") == ["b"] and free.direction.loc["a", "b"] > 0.5
    whole = EdgeRules(free.edge_array, free.edge_array)
    np.testing.assert_array_equal(discover_graph(preprocessing, rows, edges=whole).edge_array, free.edge_array)
