"""The batched choice: its speed, the mean of the fold networks, intervals, and confidence of edges.

``speed`` and ``confidence`` need nothing; ``averaging`` and ``coverage`` read tables from the folder in
``CASTLEREG_DATA``.

``python -m benchmarks.cross_validation [part ...]``
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV

from benchmarks.grid import sklearn_seconds
from benchmarks.problems import by_fold_network, rows
from benchmarks.real_tables import MIXED, OTHERS, Problem, one_hot, split
from castlereg import CastleClassifier, CastleClassifierCV, CastleRegressor, CastleRegressorCV
from castlereg.synthetic import random_dag, sample

BETAS = (0.001, 0.01, 0.1, 1.0)
TITLES = {problem.title: problem for problem in [*OTHERS, *MIXED]}
AVERAGED = ["Boston", "Bioconcentration", "Facebook, parts dropped", "Student", "Pima (log loss)", "Heart (log loss)"]
COVERED = ["Boston", "Bioconcentration", "Facebook, parts dropped", "Student", "Wine"]


def speed() -> pd.DataFrame:
    """Time ten folds x four betas on 500 x 10 against scikit-learn's grid search over the plain estimator."""
    data = rows(500, 11)
    X, y = data[:, :-1], data[:, -1]
    chosen = CastleRegressorCV(BETAS, cv=10, random_state=0)
    search = GridSearchCV(CastleRegressor(random_state=0), {"reg_beta": BETAS}, cv=10, n_jobs=2)
    seconds = {}
    for name, fit in {"first": chosen, "batched": chosen, "grid search": search, "batched again": chosen}.items():
        start = time.perf_counter()
        fit.fit(X, y)
        seconds[name] = time.perf_counter() - start
    batched = min(seconds["batched"], seconds["batched again"])
    per_mlp = sklearn_seconds(10) / 10
    return pd.DataFrame(
        [
            ("batched choice, 40 networks", batched, batched / 40),
            ("the same with compilation or its cache", seconds["first"], seconds["first"] / 40),
            (
                "GridSearchCV(n_jobs=2), 40 fits and one on all rows",
                seconds["grid search"],
                seconds["grid search"] / 40,
            ),
            ("scikit-learn's plain MLP, 200 epochs", per_mlp, per_mlp),
        ],
        columns=["", "seconds", "a network"],
    ).assign(**{"times the batched time of a network": lambda frame: frame["a network"] / (batched / 40)})


def _predicted(problem: Problem, model: Any, X: Any) -> Any:
    return model.predict_proba(X) if problem.classes else model.predict(X)


def _error(problem: Problem, predicted: Any, y: Any, y_train: Any) -> float:
    if problem.classes:
        return float(log_loss(y, predicted, labels=np.unique(y_train)))
    return float(((predicted - y) ** 2).mean() / y_train.var(ddof=0))


def averaging(folder: Path) -> pd.DataFrame:
    """Compare the mean of the fold networks with single ones, one on all rows, forests and boosting, three splits."""
    table = []
    for title in AVERAGED:
        problem = TITLES[title]
        X, y = problem.read(folder)
        errors: dict[str, list[float]] = {}
        for seed in range(3):
            train, test, y_train, y_test = split(problem, X, y, seed)
            search: Any = CastleClassifierCV if problem.classes else CastleRegressorCV
            single: Any = CastleClassifier if problem.classes else CastleRegressor
            model = search(BETAS, random_state=seed).fit(train, y_train)
            whole = single(**model.best_params_, random_state=seed).fit(train, y_train)
            by_fold = by_fold_network(model, test)
            scores = {
                "one on all rows": _error(problem, _predicted(problem, whole, test), y_test, y_train),
                "mean of folds": _error(problem, by_fold.mean(axis=0), y_test, y_train),
                "single, mean of ten": float(np.mean([_error(problem, p, y_test, y_train) for p in by_fold])),
            }
            forest: Any = RandomForestClassifier if problem.classes else RandomForestRegressor
            boosting: Any = HistGradientBoostingClassifier if problem.classes else HistGradientBoostingRegressor
            by_hand = one_hot(train, test)
            for name, peer in {"random forest": forest, "boosting": boosting}.items():
                fitted = peer(random_state=seed).fit(by_hand[0], y_train)
                scores[name] = _error(problem, _predicted(problem, fitted, by_hand[1]), y_test, y_train)
            for name, value in scores.items():
                errors.setdefault(name, []).append(value)
        table.append({"table": title, **{name: float(np.mean(values)) for name, values in errors.items()}})
        print(table[-1], flush=True)
    return pd.DataFrame(table)


def coverage(folder: Path) -> pd.DataFrame:
    """Count the test rows inside 90 % intervals: four splits of five tables."""
    table = []
    for title in COVERED:
        problem = TITLES[title]
        X, y = problem.read(folder)
        for seed in range(4):
            train, test, y_train, y_test = split(problem, X, y, seed)
            if len(train) > 1500:
                train, y_train = train.iloc[:1500], y_train.iloc[:1500]
            model = CastleRegressorCV((0.01,), random_state=seed).fit(train, y_train)
            lower, upper = model.predict_interval(test, 0.9).T
            # The constant width of a plain split: the quantile of absolute errors on rows held out once.
            kept, held = model.folds_[0]
            plain = CastleRegressor(0.01, random_state=seed).fit(train.iloc[kept], y_train.iloc[kept])
            off = np.sort(np.abs(plain.predict(train.iloc[held]) - y_train.iloc[held]))
            rank = min(int(np.ceil(0.9 * (len(off) + 1))), len(off))
            centre = plain.predict(test)
            table.append(
                {
                    "table": title,
                    "split": seed,
                    "coverage": float(((lower <= y_test) & (y_test <= upper)).mean()),
                    "width": float((upper - lower).mean() / y_train.std()),
                    "coverage, plain split": float((np.abs(centre - y_test) <= off[rank - 1]).mean()),
                    "width, plain split": float(2 * off[rank - 1] / y_train.std()),
                }
            )
        print(pd.DataFrame(table[-4:]).drop(columns="split").groupby("table").mean().to_string(), flush=True)
    frame = pd.DataFrame(table)
    print(f"mean of {len(frame)} splits:\n{frame.drop(columns=['table', 'split']).mean().to_string()}")
    return frame


def confidence(n_graphs: int = 20) -> pd.DataFrame:
    """Compare confidence with truth: graphs of 12 nodes and 20 edges, sums of sigmoids, 1000 rows, 20 replicas."""
    pairs = []
    for seed in range(n_graphs):
        rng = np.random.default_rng(seed)
        dag = random_dag(12, 20, rng)
        data = sample(dag, 1000, random_state=rng)
        target = str(rng.choice(dag.columns[(dag != 0).any(axis=0)]))
        model = CastleRegressor(n_members=20, bootstrap=True, random_state=seed)
        graph = model.fit(data.drop(columns=target), data[target]).graph_
        names = list(dag.columns)
        sure, truth = graph.confidence.loc[names, names].to_numpy(), dag.to_numpy() != 0
        one_way = graph.direction.loc[names, names].to_numpy()
        a, b = np.triu_indices(12, k=1)
        pairs.append(
            pd.DataFrame(
                {
                    "confidence": sure[a, b],
                    "true either way": (truth | truth.T)[a, b],
                    "agreement on direction": np.fmax(one_way, one_way.T)[a, b],
                    "direction right": np.where(one_way > one_way.T, truth, truth.T)[a, b],
                }
            )
        )
    frame = pd.concat(pairs)
    found = frame[(frame["confidence"] > 0.5) & frame["true either way"]]
    by_agreement = found.groupby(pd.cut(found["agreement on direction"], [0.49, 0.6, 0.7, 0.8, 1.0]), observed=False)
    agreement = by_agreement[["direction right"]].mean().assign(edges=by_agreement.size()).reset_index()
    print(f"direction of true edges that were found:\n{agreement.to_string(index=False)}\n")
    by_bin = frame.groupby(pd.cut(frame["confidence"], [-0.01, 0.0, 0.25, 0.5, 0.75, 0.9, 1.0]), observed=False)
    return by_bin[["true either way"]].mean().assign(edges=by_bin.size()).reset_index()


def main(names: list[str]) -> None:
    """Run the named parts, all by default."""
    warnings.filterwarnings("ignore", category=UserWarning)
    folder = os.environ.get("CASTLEREG_DATA")
    parts: dict[str, Any] = {"speed": speed, "confidence": confidence}
    if folder is None:
        print("CASTLEREG_DATA is not set: averaging and coverage are left out")
    else:
        parts |= {"averaging": lambda: averaging(Path(folder)), "coverage": lambda: coverage(Path(folder))}
    for name, part in parts.items():
        if not names or name in names:
            print(f"\n{name}", flush=True)
            print(part().to_string(index=False, float_format=lambda v: f"{v:.4f}"), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
