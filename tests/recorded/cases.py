"""Small fits whose results were recorded before the redesign of 0.2, and how to run them again.

Each case is a function of ``api``, which makes estimators, so that the same cases ran on the code of 0.1. The results
in ``fits.npz`` are that code's, but for the two streamed fits, which draw their batches anew: see
``docs/decisions/0021-redesign.md``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Results = dict[str, np.ndarray]
CASES: dict[str, Callable[[Any], Results]] = {}


def _case(run: Callable[[Any], Results]) -> Callable[[Any], Results]:
    CASES[run.__name__] = run
    return run


def _numbers(rows: int = 120, columns: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * np.arange(1, columns + 1) + 3
    X[:, 1] += 0.8 * X[:, 0]
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] - 0.1 * X[:, 2] ** 2 + 0.3 * rng.normal(size=rows)
    return X, y


def _frame(rows: int = 140) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    age = rng.normal(40, 12, rows)
    city = rng.choice(["Oslo", "Rome", "Bern", "Graz"], rows)
    smoker = rng.random(rows) < 0.4
    rooms = rng.integers(1, 6, rows).astype(float)
    y = 0.1 * age + (city == "Rome") * 2.0 + smoker - 0.3 * rooms + 0.2 * rng.normal(size=rows)
    age[rng.random(rows) < 0.1] = np.nan
    city = np.where(rng.random(rows) < 0.05, None, city)
    frame = pd.DataFrame({"age": age, "city": city, "smoker": smoker, "rooms": rooms, "same": 1.0})
    frame["score"] = rng.standard_t(2, rows) * 10
    return frame, y


def _classes(n: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = _numbers(150, 4, seed=2)
    return X, np.digitize(y, np.quantile(y, np.arange(1, n) / n))


def results(model: Any, X: Any) -> Results:
    """Collect what a fitted model says: predictions, probabilities, graph, history, fold losses."""
    out: Results = {"history": _history(model), "validation_loss": np.array([model.validation_loss_])}
    predicted = model.predict(X)
    if isinstance(predicted, pd.DataFrame):
        predicted = predicted.select_dtypes("number").to_numpy()
    if predicted.dtype.kind in "iuf":
        out["prediction"] = np.asarray(predicted, np.float64)
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(X)
        shares = shares if isinstance(shares, dict) else {"": shares}
        out |= {f"probabilities{name}": np.asarray(value, np.float64) for name, value in shares.items()}
    if hasattr(model, "graph_"):
        graph = model.graph_
        out["learned_weights"] = graph.learned_weights.to_numpy()
        out["weights"] = graph.weights.to_numpy()
        out["confidence"] = graph.confidence.to_numpy()
        out["threshold"] = np.array([graph.threshold])
    if hasattr(model, "cv_results_"):
        results = model.cv_results_
        splits = [name for name in results if name.startswith("split")]
        out["fold_scores"] = np.stack([results[name] for name in splits])
        out["mean_validation_loss"] = results["mean_validation_loss"]
    for name in ("predict_interval", "predict_set"):
        if hasattr(model, name):
            out[name] = np.asarray(getattr(model, name)(X, coverage=0.8), np.float64)
    return out


def _history(model: Any) -> np.ndarray:
    history = model.history_
    return history[sorted(history.columns)].to_numpy(np.float64)


@_case
def regression(api: Any) -> Results:
    X, y = _numbers()
    return results(api.CastleRegressor(max_epochs=8, random_state=0).fit(X, y), X)


@_case
def binary(api: Any) -> Results:
    X, y = _classes(2)
    return results(api.CastleClassifier(max_epochs=6, random_state=1).fit(X, y), X)


@_case
def three_classes(api: Any) -> Results:
    X, y = _classes(3)
    model = api.CastleClassifier(max_epochs=6, random_state=1, class_weight="balanced")
    return results(model.fit(X, np.array(["a", "b", "c"])[y]), X)


@_case
def several_targets(api: Any) -> Results:
    X, y = _numbers()
    return results(
        api.CastleRegressor(max_epochs=6, random_state=0).fit(X[:, :4], np.column_stack([y, X[:, 4]])), X[:, :4]
    )


@_case
def mixed_targets(api: Any) -> Results:
    X, y = _numbers()
    targets = pd.DataFrame({"number": y, "kind": np.where(X[:, 4] > 3, "high", "low")})
    return results(api.CastleMultiOutput(max_epochs=6, random_state=0).fit(X[:, :4], targets), X[:, :4])


@_case
def mixed_frame(api: Any) -> Results:
    X, y = _frame()
    return results(api.CastleRegressor(max_epochs=8, random_state=3).fit(X, y), X)


def _regularized(name: str, *args: float) -> None:
    def run(api: Any) -> Results:
        X, y = _numbers()
        chosen = [getattr(api.regularizers, name)(*args)] if name != "Baseline" else []
        return results(api.NetworkRegressor(chosen, max_epochs=6, random_state=0).fit(X, y), X)

    CASES[f"regularizer_{name}"] = run


for _name, *_args in (
    ("Baseline",),
    ("L1", 0.01),
    ("L2", 0.01),
    ("Dropout", 0.2),
    ("BatchNorm",),
    ("InputNoise", 0.1),
    ("MixUp", 0.2),
    ("Autoencoder", 1.0),
):
    _regularized(_name, *_args)


@_case
def all_regularizers(api: Any) -> Results:
    X, y = _frame()
    r = api.regularizers
    beside = [
        r.L1(1e-3),
        r.L2(1e-3),
        r.Dropout(0.1),
        r.BatchNorm(),
        r.InputNoise(0.05),
        r.MixUp(0.2),
        r.Autoencoder(0.5),
    ]
    return results(api.CastleRegressor(regularizers=beside, max_epochs=5, random_state=0).fit(X, y), X)


@_case
def cross_validated(api: Any) -> Results:
    X, y = _numbers()
    return results(api.CastleRegressorCV((0.01, 0.5), cv=4, max_epochs=6, random_state=0).fit(X, y), X)


@_case
def cross_validated_classes(api: Any) -> Results:
    X, y = _classes(3)
    model = api.CastleClassifierCV((0.01, 0.1), cv=3, max_epochs=5, random_state=0, scoring="accuracy")
    return results(model.fit(X, y), X)


@_case
def cross_validated_candidates(api: Any) -> Results:
    X, y = _numbers()
    r = api.regularizers
    model = api.NetworkRegressorCV(
        [[], [r.L2(0.1)], [r.L2(0.01)]], cv=3, max_epochs=5, search="one_standard_error", random_state=0
    )
    return results(model.fit(X, y), X)


@_case
def bootstrap_members(api: Any) -> Results:
    X, y = _numbers()
    return results(api.CastleRegressor(n_members=3, bootstrap=True, max_epochs=6, random_state=5).fit(X, y), X)


@_case
def graph_objective(api: Any) -> Results:
    X, y = _frame()
    return results(api.CastleRegressor(0.02, objective="graph", max_epochs=15, random_state=0).fit(X, y), X)


@_case
def graph_objective_members(api: Any) -> Results:
    X, y = _numbers()
    model = api.CastleRegressor(
        0.02, objective="graph", n_members=2, max_epochs=10, hidden_layer_sizes=(), random_state=0
    )
    return results(model.fit(X, y), X)


@_case
def constraints(api: Any) -> Results:
    X, y = _numbers()
    frame = pd.DataFrame(X, columns=list("abcde"))
    known = api.EdgeConstraints(required=[("a", "b")], forbidden=[("c", "d")], sources=["a"])
    model = api.CastleRegressor(constraints=known, max_epochs=6, random_state=0)
    return results(model.fit(frame, pd.Series(y, name="y")), frame)


@_case
def edit_and_refit(api: Any) -> Results:
    X, y = _numbers()
    frame, target = pd.DataFrame(X, columns=list("abcde")), pd.Series(y, name="y")
    first = api.CastleRegressor(max_epochs=6, random_state=0).fit(frame, target)
    learned = first.graph_.above(0)
    weakest = learned.edges().iloc[-1]
    edited = learned.without_edge(weakest["cause"], weakest["effect"])
    return results(api.CastleRegressor(max_epochs=6, random_state=0).fit(frame, target, graph=edited), frame)


@_case
def sampled_features(api: Any) -> Results:
    X, y = _numbers(120, 8)
    castle = api.Castle(features_per_step=3)
    return results(api.CastleRegressor(castle=castle, max_epochs=6, random_state=0).fit(X, y), X)


@_case
def details_of_the_penalty(api: Any) -> Results:
    X, y = _numbers()
    castle = api.Castle(acyclicity="logdet", sparsity="group")
    return results(api.CastleRegressor(0.05, 0.5, castle=castle, max_epochs=6, random_state=0).fit(X, y), X)


@_case
def released_setting(api: Any) -> Results:
    X, y = _numbers()
    return results(api.released(max_epochs=6, random_state=0).fit(X, y), X)


@_case
def file_streaming(api: Any) -> Results:
    frame, y = _frame(600)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.assign(y=y).to_csv(path, index=False)
        model = api.CastleRegressor(n_members=2, max_epochs=4, random_state=0).fit_file(path, "y", chunk_rows=256)
    return results(model, frame)


@_case
def file_streaming_classes(api: Any) -> Results:
    frame, y = _frame(600)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.assign(y=np.where(y > np.median(y), "yes", "no")).to_csv(path, index=False)
        recipe = api.Recipe(scaling="robust")
        model = api.NetworkClassifier(class_weight="balanced", recipe=recipe, max_epochs=4, random_state=0)
        model.fit_file(path, "y", chunk_rows=256)
    return results(model, frame)


@_case
def robust_scaling(api: Any) -> Results:
    X, y = _frame()
    return results(api.CastleRegressor(recipe=api.Recipe(scaling="robust"), max_epochs=6, random_state=0).fit(X, y), X)


@_case
def usual_start(api: Any) -> Results:
    X, y = _numbers()
    return results(
        api.NetworkRegressor(recipe=api.Recipe(input_init="glorot"), max_epochs=6, random_state=0).fit(X, y), X
    )


@_case
def whole_weights(api: Any) -> Results:
    X, y = _numbers()
    weight = np.random.default_rng(3).integers(0, 4, len(y))
    return results(api.CastleRegressor(max_epochs=6, random_state=0).fit(X, y, sample_weight=weight), X)


@_case
def fractional_weights(api: Any) -> Results:
    X, y = _numbers()
    weight = np.random.default_rng(3).random(len(y))
    return results(api.CastleRegressor(max_epochs=6, random_state=0).fit(X, y, sample_weight=weight), X)


@_case
def given_validation_rows(api: Any) -> Results:
    X, y = _frame()
    model = api.CastleRegressor(max_epochs=6, random_state=0, categorical_features=["rooms"])
    return results(model.fit(X[:100], y[:100], X_val=X[100:], y_val=y[100:]), X)
