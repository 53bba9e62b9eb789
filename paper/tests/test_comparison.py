"""Comparisons: the protocol, the choice, and what the user sees."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from joblib import parallel_config
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning

from castlereg import NetworkRegressor, Recipe
from castlereg.regularizers import L1, L2, Autoencoder, BatchNorm, Castle, DeepLasso, Dropout, InputNoise, MixUp, Tangos
from castlereg.search.candidates import NetworkStage
from castlereg_paper import Comparison, compare
from castlereg_paper.comparison import LATER_METHODS, PAPER_METHODS, checked_methods, significance
from castlereg_paper.protocol import Problem, _chosen_strengths

mpl.use("agg")
QUICK: dict[str, Any] = {"cv": 3, "max_epochs": 8, "random_state": 0}


@pytest.fixture(scope="module")
def diabetes() -> Any:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X.iloc[:150], y.iloc[:150]


@pytest.fixture(scope="module")
def result(diabetes: Any) -> Comparison:
    return compare(*diabetes, methods=["Baseline", "L2", "CASTLE"], n_splits=2, **QUICK)


def test_the_papers_methods_and_grids() -> None:
    assert list(PAPER_METHODS) == [
        *("Baseline", "L1", "L2", "Dropout 0.2", "Dropout 0.5", "SAE", "Batch Norm", "Input Noise", "MixUp", "CASTLE")
    ]
    assert PAPER_METHODS["Baseline"] == ((),)
    assert PAPER_METHODS["L1"] == ((L1(0.1),), (L1(0.01),), (L1(0.001),))
    assert PAPER_METHODS["L2"] == ((L2(0.1),), (L2(0.01),), (L2(0.001),))
    assert PAPER_METHODS["Dropout 0.2"] == ((Dropout(0.2),),)
    assert PAPER_METHODS["Dropout 0.5"] == ((Dropout(0.5),),)
    assert PAPER_METHODS["SAE"] == ((Autoencoder(),),)
    assert PAPER_METHODS["Batch Norm"] == ((BatchNorm(),),)
    assert PAPER_METHODS["Input Noise"] == ((InputNoise(0.1),), (InputNoise(0.01),))
    assert PAPER_METHODS["MixUp"] == ((MixUp(),),)
    assert PAPER_METHODS["CASTLE"] == ((Castle(0.001),), (Castle(0.01),), (Castle(0.1),), (Castle(1.0),))


def test_later_methods_are_chosen_by_name_and_search_no_more_than_the_others(diabetes: Any) -> None:
    assert list(LATER_METHODS) == ["TANGOS", "Deep Lasso"]
    assert checked_methods("paper") == PAPER_METHODS
    both = checked_methods(["TANGOS", "Deep Lasso"])
    assert both == LATER_METHODS
    assert {type(regularizer) for (regularizer,) in both["TANGOS"]} == {Tangos}
    assert {type(regularizer) for (regularizer,) in both["Deep Lasso"]} == {DeepLasso}
    assert len(both["TANGOS"]) == len(PAPER_METHODS["CASTLE"])
    assert len(both["Deep Lasso"]) == len(PAPER_METHODS["L1"])
    frame = compare(*diabetes, methods=["Baseline", *LATER_METHODS], **QUICK).to_frame()
    assert set(frame.index) == {"Baseline", "TANGOS", "Deep Lasso"}
    assert frame.loc["Deep Lasso", "chosen"].startswith("strength=")
    assert frame.loc["TANGOS", "chosen"].startswith("specialization=")


def test_tables(result: Comparison) -> None:
    frame = result.to_frame()
    assert len(result.scores) == 3 * 2 * 3  # methods, splits, folds
    by_hand = result.scores.groupby("method")["score"]
    np.testing.assert_allclose(frame["MSE"], by_hand.mean()[frame.index])
    np.testing.assert_allclose(frame["sd"], by_hand.std()[frame.index])
    assert frame["rank"].is_monotonic_increasing
    assert frame["rank"].mean() == 2.0
    assert (frame["seconds"] > 0).all()
    assert re.fullmatch(r"reg_beta=[\d.]+ \((1|2) of 2\)", frame.loc["CASTLE", "chosen"])
    assert frame.loc["Baseline", "chosen"] == ""
    lines = result.to_markdown().splitlines()
    assert len(lines) == 5 and len({line.count(" | ") for line in lines}) == 1
    assert "150 rows x 10 features, regression of 'target': 3 folds, 30 rows held out, 2 random splits" in str(result)
    assert "assumes that folds are independent" in repr(result)
    assert "<table" in result._repr_html_()


def test_ranks_are_those_of_the_scores(result: Comparison) -> None:
    table = result.scores.pivot(index=["split", "fold"], columns="method", values="score")
    expected = scipy.stats.rankdata(table[["Baseline", "L2", "CASTLE"]].to_numpy(), axis=1)
    np.testing.assert_array_equal(result.ranks().to_numpy(), expected)
    assert result.ranks("split").shape == (2, 3)


def test_plot_shows_every_network(result: Comparison, tmp_path: Any) -> None:
    figure = result.plot()
    left, right = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == list(result.to_frame().index)
    assert sum(len(line.get_xdata()) for line in left.lines[:3]) == 18
    assert "1 is best" in right.get_xlabel()
    figure.savefig(tmp_path / "comparison.png")
    mpl.pyplot.close(figure)


def test_the_same_seed_gives_the_same_scores_and_methods_do_not_disturb_each_other(
    diabetes: Any, result: Comparison
) -> None:
    alone = compare(*diabetes, methods=["L2"], n_splits=2, **QUICK)
    together = result.scores[result.scores["method"] == "L2"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone.scores, together)


def test_equals_the_estimator_fitted_fold_by_fold(diabetes: Any) -> None:
    """The whole protocol by hand: hold out, folds, validation loss, choice, score in units of the variance."""
    X, y = (part.to_numpy() for part in diabetes)
    candidates = [[L2(0.1)], [L2(0.001)]]
    result = compare(X, y, methods={"L2": candidates}, **QUICK)
    (split,) = Problem.read(X, y, "regression", 0, {}).splits(cv=3, n_splits=1, test_size=0.2)
    assert len(split.test_rows) == 30
    assert set(split.test_rows).isdisjoint(split.rest)
    losses, errors = np.empty((2, 3)), np.empty((2, 3))
    for c, candidate in enumerate(candidates):
        for f, (train_rows, validation_rows) in enumerate(split.folds):
            assert set(train_rows) | set(validation_rows) == set(split.rest)
            model = NetworkRegressor(candidate, max_epochs=8, n_members=3, random_state=0)  # member f has fold f's seed
            model.fit(X[train_rows], y[train_rows], X_val=X[validation_rows], y_val=y[validation_rows])
            losses[c, f] = model.history_.groupby("member")["validation_loss"].min()[f]
            (predicted,) = model.model_.networks.predict_values(X[split.test_rows])
            errors[c, f] = np.mean((predicted[f] - y[split.test_rows]) ** 2) / np.var(y[split.rest])
    best = losses.mean(axis=1).argmin()
    np.testing.assert_allclose(result.scores["validation_loss"], losses[best], rtol=1e-4)
    np.testing.assert_allclose(result.scores["score"], errors[best], rtol=1e-4)


def test_methods_start_from_the_same_weights_and_see_the_same_batches(diabetes: Any) -> None:
    """L2 of no strength and a Castle of no strength are the plain network, to the last digits."""
    methods = {"plain": [], "L2": [L2(0.0)], "Castle": [Castle(0.0, 0.0)]}
    scores = compare(*diabetes, methods=methods, **QUICK).scores.pivot(index="fold", columns="method", values="score")
    np.testing.assert_allclose(scores["L2"], scores["plain"], rtol=1e-5)
    np.testing.assert_allclose(scores["Castle"], scores["plain"], rtol=1e-4)


def test_classes(rng: np.random.Generator) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = y.map({0: "setosa", 1: "versicolor", 2: "virginica"})
    result = compare(X, names, methods=["Baseline", "MixUp"], cv=3, max_epochs=30, random_state=0)
    assert result.metric == "AUROC"
    assert result.higher_is_better
    assert result.to_frame()["AUROC"].between(0.5, 1).all()
    assert "Sign test over 3 folds" in str(result)
    two = compare(X[:100], y[:100] == 1, methods=["Baseline"], cv=3, max_epochs=30, random_state=0)
    assert two.to_frame()["AUROC of the mean"].iloc[0] == pytest.approx(1.0)


def test_the_start_can_be_chosen_for_each_method(diabetes: Any) -> None:
    small, mixed = (
        compare(*diabetes, methods=["Baseline", "L2"], input_init=start, **QUICK).scores
        for start in ("small", {"L2": "glorot"})
    )
    same = small["score"] == mixed["score"]
    assert same[small["method"] == "Baseline"].all()
    assert not same[small["method"] == "L2"].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"methods": ["Drop out 0.2"]},
            "unknown method 'Drop out 0.2'; did you mean 'Dropout 0.2'\\? The paper's methods are Baseline, ",
        ),
        (
            {"methods": ["tangos"]},
            "unknown method 'tangos'; did you mean 'TANGOS'\\? .* later ones are TANGOS, Deep Lasso",
        ),
        ({"methods": 3}, "methods=3 must be 'paper'"),
        ({"methods": []}, "methods is empty"),
        ({"methods": {"mine": [L2]}}, "method 'mine': .* pass an instance, L2"),
        ({"methods": {"mine": [[L2()], [L1()]]}}, "method 'mine' has candidates with different regularizers"),
        ({"methods": ["Dropout 0.2"], "hidden_layer_sizes": ()}, "method 'Dropout 0.2': Dropout acts on hidden layers"),
        ({"task": "regresion"}, "did you mean 'regression'"),
        ({"input_init": {"L3": "small"}}, "method in input_init='L3' is not one of"),
        ({"cv": 1}, "k-fold cross-validation requires at least one"),
        ({"test_size": 2.0}, "test_size=2.0 must be a fraction"),
        ({"test_size": 0}, "test_size=0 must be a whole number of at least 1"),
        ({"test_size": 10**6}, "test_size=1000000 leaves "),
        ({"task": "classification"}, "and the test rows need at least"),
    ],
)
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_bad_options_are_named(diabetes: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(*diabetes, **options)


def test_a_misspelt_option_is_named_with_the_nearest(diabetes: Any) -> None:
    for wrong, right in (("max_epoch", "max_epochs"), ("metods", "methods")):
        with pytest.raises(TypeError, match=f"no option '{wrong}'; did you mean '{right}'"):
            compare(*diabetes, **{wrong: 3})


def test_more_folds_than_rows_raise(diabetes: Any) -> None:
    X, y = diabetes
    with pytest.raises(ValueError, match="n_splits=10 greater than the number of samples"):
        compare(X[:8], y[:8])


def test_several_targets_raise(diabetes: Any) -> None:
    X, y = diabetes
    with pytest.raises(ValueError, match="y has 2 targets instead of one"):
        compare(X, np.column_stack([y, y]), task="regression")


def test_the_recipe_scales_and_starts_the_networks(diabetes: Any) -> None:
    plain, robust, glorot, overruled = (
        compare(*diabetes, methods=["Baseline"], **options, **QUICK).scores["score"].to_numpy()
        for options in (
            {},
            {"recipe": Recipe(scaling="robust")},
            {"recipe": Recipe(input_init="glorot")},
            {"recipe": Recipe(input_init="glorot"), "input_init": "small"},
        )
    )
    assert not np.isclose(plain, robust).any()
    assert not np.isclose(plain, glorot).any()
    np.testing.assert_array_equal(plain, overruled)


def test_a_network_without_a_finite_loss_has_no_score_and_ranks_last(
    diabetes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first fold's network of L2 fails: its weights are NaN and its loss is infinite."""

    def with_a_failure(stage: NetworkStage, *arguments: Any) -> Any:
        results = train(stage, *arguments)
        for _, _, stack in results if stage.name == "L2" else []:
            stack.validation_loss[0] = np.inf
            stack.parameters.input_weights[0] = np.nan
        return results

    healthy = compare(*diabetes, methods=["Baseline", "L2"], **QUICK)
    train = NetworkStage.train
    monkeypatch.setattr(NetworkStage, "train", with_a_failure)
    with pytest.warns(ConvergenceWarning, match="method 'L2', split 0: 1 of 3 networks never had a finite loss"):
        result = compare(*diabetes, methods=["Baseline", "L2"], **QUICK)
    scores = result.scores.pivot(index="fold", columns="method", values="score")
    assert np.isnan(scores.loc[0, "L2"]) and scores.drop(index=0).notna().all(axis=None)
    pd.testing.assert_series_equal(
        scores["Baseline"], healthy.scores.query("method == 'Baseline'")["score"], check_names=False, check_index=False
    )
    assert result.ranks().loc[(0, 0), ["Baseline", "L2"]].tolist() == [1.0, 2.0]
    assert result.ranks("split")["L2"].tolist() == [2.0]
    assert result.by_split["score"].notna().all()
    assert "1 of the networks never had a finite loss" in str(result)


def test_strengths_of_the_same_name_are_told_apart() -> None:
    candidates = [(L1(0.1), L2(0.3)), (L1(0.2), L2(0.3))]
    assert _chosen_strengths(candidates, 1) == "strength=0.2"


@pytest.mark.filterwarnings("ignore:network .* the loss was not finite")
def test_a_method_that_never_trains_is_named(diabetes: Any) -> None:
    with pytest.raises(FloatingPointError, match=r"method 'huge': .* no epoch with a finite loss"):
        compare(*diabetes, methods={"huge": [L2(1e38)]}, learning_rate=1e30, **QUICK)


def test_methods_of_ones_own() -> None:
    assert checked_methods({"none": [], "both": [Dropout(0.2), L2(0.1)]}) == {
        "none": ((),),
        "both": ((Dropout(0.2), L2(0.1)),),
    }


def test_significance_against_scipy_and_the_printed_table() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(30, 4)) + np.array([0, 0, 0.1, 2.0])
    ranks = pd.DataFrame(scipy.stats.rankdata(scores, axis=1), columns=list("abcd"))
    result = significance(ranks, "fold")
    np.testing.assert_allclose(result.p_value, scipy.stats.friedmanchisquare(*scores.T).pvalue)
    # Demsar (2006), Table 5: q is 2.569 for four methods at level 0.05.
    np.testing.assert_allclose(result.critical_difference, 2.569 * np.sqrt(4 * 5 / (6 * 30)), rtol=1e-3)
    assert "d" not in result.level_with_best


def test_significance_of_equal_methods_is_none() -> None:
    ranks = pd.DataFrame(np.full((5, 3), 2.0), columns=list("abc"))
    assert significance(ranks, "fold").p_value == 1.0
    assert significance(ranks[["a", "b"]], "split").p_value == 1.0
    too_few = significance(ranks[:1], "fold")
    assert np.isnan(too_few.p_value)
    assert str(too_few) == "No significance test: it needs at least two methods and two folds."


def test_verbose_shows_a_progress_bar(diabetes: Any, capsys: pytest.CaptureFixture[str]) -> None:
    compare(*diabetes, methods=["Baseline"], verbose=True, **QUICK)
    assert "comparing" in capsys.readouterr().err
    compare(*diabetes, methods=["Baseline"], verbose=False, **QUICK)
    assert capsys.readouterr().err == ""


def test_a_refit_trains_plain_networks_on_the_columns_that_castle_selects() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(300)
    options: dict[str, Any] = {"cv": 3, "max_epochs": 60, "random_state": 0, "learning_rate": 1e-2}
    methods = {"Baseline": [[]], "CASTLE": [[Castle(0.1)]]}
    usual = compare(X, y, methods=methods, **options)
    refitted = compare(X, y, methods=methods, recipe=Recipe(refit=True), **options)
    scores = {name: of.scores.set_index("method")["score"] for name, of in (("usual", usual), ("refit", refitted))}
    assert (scores["refit"]["Baseline"] == scores["usual"]["Baseline"]).all()  # has nothing to select by
    assert scores["refit"]["CASTLE"].mean() < 0.9 * scores["usual"]["Baseline"].mean()  # one column of eight matters
    known = compare(X[:, :1], y, methods=["Baseline"], hidden_layer_sizes=(9, 9), **options)
    assert scores["refit"]["CASTLE"].mean() == pytest.approx(known.scores["score"].mean(), rel=0.5)


def test_results_in_a_folder_are_not_trained_again(diabetes: Any, tmp_path: Path) -> None:
    first = compare(*diabetes, methods=["Baseline", "L2"], folder=tmp_path, **QUICK)
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NetworkStage, "train", lambda *_, **__: pytest.fail("it must not be trained"))
        again = compare(*diabetes, methods=["L2", "Baseline"], folder=tmp_path, **QUICK)
    pd.testing.assert_frame_equal(again.to_frame(), first.to_frame())
    compare(*diabetes, methods=["L2"], folder=tmp_path, **{**QUICK, "max_epochs": 2})
    assert len(list(tmp_path.iterdir())) == 3


def test_methods_in_processes_have_the_scores_of_this_one(diabetes: Any) -> None:
    options = {"methods": ["Baseline", "L2"], **QUICK}
    here = compare(*diabetes, **options)
    with parallel_config("loky", n_jobs=2):
        there = compare(*diabetes, **options)
    pd.testing.assert_frame_equal(there.scores, here.scores, rtol=1e-5)
