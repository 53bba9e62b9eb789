"""Errors, graphs, effects, files and speeds of one version, to compare with those of another by paired differences.

``python -m benchmarks.safety_net record FILE.json [--part errors|graphs|effects|files|speed ...]``
    Measure and store; stored items are not measured again. About 20 minutes on one core.
``python -m benchmarks.safety_net compare OLD.json NEW.json``
    Print the differences of the items that both files have; a ratio below 1 is better.

Tables come from the folder ``CASTLEREG_DATA``. Bits may differ between versions; the means must not get worse.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.neural_network import MLPRegressor

from benchmarks.accuracy.cells import Cell, Data, error
from benchmarks.effects import worlds
from castlereg.causal import KnownWorld, random_dag, weighted_dag

Item = dict[str, Any]

# --- adapters: the only lines that call the estimators; edit these when the interface changes ------------------------


def fit_search(data: Data, search: str, seed: int, **options: Any) -> Any:
    """Fit ``fast``, ``best`` or ``paper``; ``paper jax`` is the grid with the engine jax."""
    from castlereg import CastleClassifierCV, CastleRegressorCV, Recipe

    name, _, engine = search.partition(" ")
    recipe: dict[str, Any] = {"engine": engine}
    options |= {"search": name, "random_state": seed} | ({"recipe": Recipe(**recipe)} if engine else {})
    return (CastleClassifierCV if data.classes else CastleRegressorCV)(**options).fit(data.X, data.y)


def fit_with_graph(X: pd.DataFrame, y: pd.Series) -> Any:
    """Fit a model whose ``graph_`` is the discovered graph."""
    from castlereg import CastleClassifier, CastleRegressor

    estimator = CastleRegressor if pd.api.types.is_numeric_dtype(y) else CastleClassifier
    return estimator(max_epochs=2, random_state=0).fit(X, y)


def edge_probabilities(model: Any, names: list[str]) -> tuple[Any, Any, Any]:
    """Return edges, probabilities of edges in either direction, and of directions, causes in rows."""
    graph = model.graph_
    frames = graph.weights > 0, graph.confidence, graph.direction
    edges, joined, direction = (frame.loc[names, names].to_numpy() for frame in frames)
    return edges, joined, direction


def effect_curves(model: Any, edges: pd.DataFrame | None, outcome: str, curves: dict[str, list[Any]]) -> list[Any]:
    """Return the mean outcome when each cause is set to values, by the true graph, or by the model's own for None."""
    from castlereg.causal.graph import CausalGraph

    graph = None if edges is None else CausalGraph.from_edges(edges, outcome, [*curves, outcome])
    world = model.structural_model(graph, n_draws=20)
    return [world.effect(cause, outcome, values=values).answer.estimate for cause, values in curves.items()]


def column_kinds(path: Path) -> dict[str, str]:
    """Return the kind of every column of a saved model."""
    from castlereg import load

    return {str(column): str(kind) for column, kind in load(path).schema_["kind"].items()}


def grid_of_40(X: Any, y: Any) -> Any:
    """Train 10 folds x 4 betas for 200 epochs each."""
    from castlereg import CastleRegressorCV, Recipe

    how: dict[str, Any] = {"hidden_layer_sizes": (10, 10), "max_epochs": 200, "recipe": Recipe(patience=200)}
    return CastleRegressorCV(search="paper", cv=10, random_state=0, **how).fit(X, y)


def one_network(X: Any, y: Any) -> Any:
    """Train one network for a few epochs."""
    from castlereg import CastleRegressor

    return CastleRegressor(max_epochs=5, random_state=0).fit(X, y)


FIRST_FIT = """from sklearn.datasets import load_diabetes
from castlereg import CastleRegressor
CastleRegressor(random_state=0).fit(*load_diabetes(return_X_y=True))
"""
COMMANDS = {
    "fit": "{train} --target Preis --output {model} --seed 0 --json",
    "predict": "{model} {test} --output {output} --quiet",
}

# --- measuring -------------------------------------------------------------------------------------------------------


def timed(call: Callable[[], Any], repeats: int = 1) -> tuple[Any, list[float]]:
    """Return the result, and the best wall and processor seconds; those of child processes count."""
    best = [np.inf, np.inf]
    for _ in range(repeats):
        wall, used = time.perf_counter(), _processor_seconds()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = call()
        best = [min(best[0], time.perf_counter() - wall), min(best[1], _processor_seconds() - used)]
    return result, best


def _processor_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


TABLES = ("Boston", "bioconcentration", "student", "Facebook", "wine", "heart", "retinopathy", "Pima", "contraceptive")
CELLS = (
    *(Cell(table, "plain", 300, 0) for table in TABLES),
    *(Cell(table, "plain", 100, 1) for table in TABLES),
    *(Cell(table, "copies" if k % 2 else "random", 300, 2) for k, table in enumerate(TABLES)),
    *(Cell("Las Vegas", "plain", 300, 0), Cell("Las Vegas", "plain", 100, 1), Cell("communities", "plain", 100, 0)),
)
PAPER_EPOCHS = 100
# Cells and seeds of each search. Folds of another version differ as those of another seed do, and the mean of 30 cells
# differs by 1 % between two seeds (standard error); with six it is 0.4 %.
SEARCHES = {
    "fast": (CELLS, 6),
    "paper": (CELLS[:9], 3),
    "paper jax": ((CELLS[0], CELLS[4], CELLS[7]), 2),
    "best": (CELLS, 4),
}


def _error(cell: Cell, search: str, seed: int) -> Item:
    """Held-out error (mean squared in variances, or 1 - AUROC) and seconds."""
    data = cell.load(Path(os.environ["CASTLEREG_DATA"]))
    options = {"max_epochs": PAPER_EPOCHS} if search.startswith("paper") else {}
    model, fitting = timed(lambda: fit_search(data, search, seed, **options))
    predict = model.predict_proba if data.classes else model.predict
    predicted, predicting = timed(lambda: predict(data.X_test))
    return {"error": error(data, predicted), "fit": fitting, "predict": predicting}


GRAPH_KINDS = ("linear", "sine", "smooth", "sigmoid", "mixed", "levels")
GRAPH_SIZES = ((8, 500), (9, 1000), (10, 500), (10, 1000))  # columns and rows, by seed


def _graph(kind: str, seed: int) -> Item:
    """Discover a graph; half of the columns of a mixed table have levels, all of a table of levels."""
    rng = np.random.default_rng([seed, GRAPH_KINDS.index(kind), 37])
    n_nodes, n_rows = GRAPH_SIZES[seed]
    dag = weighted_dag(random_dag(n_nodes, 2 * n_nodes, rng), 0.4, 1.6, random_state=rng)
    chosen = rng.choice(list(dag), {"mixed": n_nodes // 2, "levels": n_nodes}.get(kind, 0), replace=False)
    levels = {str(name): int(rng.integers(2, 5)) for name in chosen}
    function = {"mixed": ("sine", "smooth", "sigmoid", "linear")[seed], "levels": "linear"}.get(kind, kind)
    if function == "sigmoid":
        dag = dag * 2  # a sigmoid of a standard normal column has a standard deviation of 0.2
    noise = "laplace" if kind == "linear" else "gaussian"
    world = KnownWorld(dag, function=function, noise=noise, categorical=levels, random_state=seed)
    rows = world.sample(n_rows, random_state=seed)

    names = list(rows.columns)
    target = ([name for name in names if name not in levels] or names)[-1]
    model, _ = timed(lambda: fit_with_graph(rows.drop(columns=target), rows[target]))
    (edges, joined, direction), _ = timed(lambda: edge_probabilities(model, names))
    truth = dag.loc[names, names].to_numpy() != 0
    both, pairs = edges.sum() + truth.sum(), np.triu_indices(n_nodes, 1)
    direction, signs = np.nan_to_num(direction, nan=-1.0), truth.astype(int) - truth.T
    return {
        "rows": _checksum(rows),
        "f1": float(2 * (edges & truth).sum() / both),
        "f1_undirected": float(2 * ((edges | edges.T) & truth).sum() / both),
        # Probability of an edge, of its direction (-1: unknown), and the truth (0: no edge, -1: backwards).
        "pairs": np.column_stack([joined[pairs], direction[pairs], signs[pairs]]).round(4).tolist(),
    }


def _checksum(rows: pd.DataFrame) -> str:
    """Return a text that shows whether two versions drew the same rows."""
    return f"{int(pd.util.hash_pandas_object(rows.astype(str), index=False).sum()):x}"


WORLDS = (("linear", 0), ("sigmoid", 0), *itertools.product(("sine", "smooth", "mixed"), (0, 1)))


def _effects(kind: str, seed: int) -> Item:
    """Mean absolute error of curves of effects, in standard deviations of the outcome."""
    problem = worlds.problem(kind, seed)
    rows, outcome = problem.rows, problem.outcome
    ends = np.array(list(problem.dag))[np.argwhere(problem.dag.to_numpy())]
    edges = pd.DataFrame({"cause": ends[:, 0], "effect": ends[:, 1], "weight": 1.0})
    model, _ = timed(lambda: fit_with_graph(rows.drop(columns=outcome), rows[outcome]))
    item: Item = {"rows": _checksum(rows)}
    curves = {cause: [value for value, _ in curve] for cause, curve in problem.truth.items()}
    truth = [[mean for _, mean in curve] for curve in problem.truth.values()]
    for name, given in (("true graph", edges), ("own graph", None)):
        found, item[f"{name}, seconds"] = timed(partial(effect_curves, model, given, outcome, curves))
        apart = [np.abs(estimate - means).mean() for estimate, means in zip(found, truth, strict=True)]
        item[name] = float(np.mean(apart) / rows[outcome].std())
    return item


FILE_ROWS = (160, 80)  # to fit, and to predict


def _house_rows() -> pd.DataFrame:
    rng, n = np.random.default_rng(37), sum(FILE_ROWS)
    area, rooms, age = rng.uniform(30, 180, n).round(1), rng.integers(1, 7, n), rng.exponential(20, n).round(2)
    city = rng.choice(["Köln", "München", "Zürich"], n)
    day = rng.integers(0, 2000, n)
    price = 2 * area + 15 * rooms - age + 60 * (city == "München") + 0.03 * day + rng.normal(0, 10, n)
    dates = (pd.Timestamp("2019-01-01") + pd.to_timedelta(day, unit="D")).strftime("%Y-%m-%d")
    columns = {"Fläche": area, "Zimmer": rooms, "Alter": age, "Stadt": city, "Datum": dates, "Preis": price.round(2)}
    return pd.DataFrame(columns)


def _with_missing(rows: pd.DataFrame) -> pd.DataFrame:
    rng, rows = np.random.default_rng(3), rows.astype(object)
    for name, sign in (("Fläche", "-"), ("Alter", "NA"), ("Stadt", ""), ("Zimmer", "-")):
        rows.loc[rng.random(len(rows)) < 0.12, name] = sign
    return rows


def _csv(rows: pd.DataFrame, encoding: str = "utf-8", **options: Any) -> bytes:
    return str(rows.to_csv(index=False, **options)).encode(encoding)


def _with_blanks(rows: pd.DataFrame) -> bytes:
    header, *lines = _csv(rows.drop(columns="Datum")).decode().splitlines()
    spaced = (line.replace(",", " ,  ") + " " for line in lines)
    return ("\n\n" + "\n\n".join([header, *spaced]) + "\n\n   \n").encode("utf-8-sig")


def _with_line_breaks(rows: pd.DataFrame) -> bytes:
    notes = rows["Stadt"] + ',\n"' + (rows["Zimmer"] % 2).map({0: "even", 1: "odd"}) + '"'
    return _csv(rows.assign(**{"Notiz\nzur Lage": notes}), lineterminator="\r\n")


def _with_german_dates(rows: pd.DataFrame) -> bytes:
    return _csv(rows.assign(Datum=pd.to_datetime(rows["Datum"]).dt.strftime("%d.%m.%Y %H:%M")), sep=";")


MESSY: dict[str, Callable[[pd.DataFrame], bytes]] = {
    "cp1252": lambda rows: _csv(rows, "cp1252"),
    "semicolons, decimal commas": lambda rows: _csv(rows, "latin-1", sep=";", decimal=","),
    "tabs": lambda rows: _csv(rows, sep="\t"),
    "UTF-16": lambda rows: _csv(rows, "utf-16", sep="\t"),
    "quoted line breaks": _with_line_breaks,
    "German dates": _with_german_dates,
    "blank lines, spaces, mark": _with_blanks,
    "missing values, classes": lambda rows: _csv(
        _with_missing(rows.assign(Preis=np.where(rows["Preis"] > 250, "hoch", "mäßig")))
    ),
    "duplicated names": lambda rows: _csv(rows.rename(columns={"Alter": "Fläche", "Zimmer": "Fläche"})),
    "gzip": lambda rows: gzip.compress(_csv(_with_missing(rows), sep=";", decimal=",")),
}
SUFFIXES = {"tabs": ".txt", "gzip": ".csv.gz"}


def _file(name: str) -> Item:
    """Exit codes, messages and scores of the command line, and the kinds of columns of its model."""
    rows, item, suffix, write = _house_rows(), Item(), SUFFIXES.get(name, ".csv"), MESSY[name]
    with tempfile.TemporaryDirectory() as folder:
        files = {"train": f"train{suffix}", "test": f"test{suffix}", "model": "model.castle", "output": "predicted.csv"}
        paths = {key: Path(folder, file) for key, file in files.items()}
        paths["train"].write_bytes(write(rows[: FILE_ROWS[0]]))
        paths["test"].write_bytes(write(rows[FILE_ROWS[0] :].reset_index(drop=True)))
        for command, options in COMMANDS.items():
            run = [sys.executable, "-m", "castlereg", command, *(part.format(**paths) for part in options.split())]
            done, item[f"{command}, seconds"] = timed(partial(subprocess.run, run, capture_output=True))
            item[command] = done.returncode
            item[f"{command}, message"] = done.stderr.decode("utf-8", "replace").replace(folder, "").strip()[-400:]
            if done.returncode:
                return item
        predicted, truth = pd.read_csv(paths["output"]).iloc[:, 0], rows["Preis"][FILE_ROWS[0] :].to_numpy()
        item |= {"kinds": column_kinds(paths["model"]), "predictions": len(predicted)}
        if not pd.api.types.is_numeric_dtype(predicted):
            return item | {"error": float(((predicted == "hoch").to_numpy() != (truth > 250)).mean())}
        item |= {"mean": float(predicted.mean()), "deviation": float(predicted.std())}
        return item | {"error": float(np.square(predicted - truth).mean() / truth.var())}


SPEED_ROWS, REPEATS = 1000, 3


def _speed_data(n_rows: int) -> Data:
    """Draw fifteen columns of numbers and five of levels."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((n_rows, 15)), columns=[f"x{k}" for k in range(15)])
    for k in range(5):
        X[f"level{k}"] = rng.choice(list("abcd")[: 2 + k % 3], n_rows)
    y = np.sin(2 * X["x0"]) + X["x1"] * (X["level0"] == "a") + 0.3 * rng.standard_normal(n_rows)
    return Data(X, y, X, y, False)


def _speeds() -> dict[str, Callable[[], Item]]:
    """Wall and processor seconds, the best of some runs."""
    rng = np.random.default_rng(0)
    X, many = rng.standard_normal((500, 9)), rng.standard_normal((100_000, 9))
    y = X[:, 0] - np.tanh(X[:, 1]) + 0.3 * rng.standard_normal(500)

    def best(call: Callable[[], Any], repeats: int = REPEATS) -> Item:
        return {"seconds": timed(call, repeats)[1]}

    def peers() -> None:
        how: dict[str, Any] = {"batch_size": 32, "max_iter": 200, "tol": 0, "n_iter_no_change": 10_000}
        for seed in range(10):
            MLPRegressor(hidden_layer_sizes=(10, 10), random_state=seed, **how).fit(X[:450], y[:450])

    def fresh(is_warm: bool) -> None:
        with tempfile.TemporaryDirectory() as empty:
            environment = os.environ if is_warm else {**os.environ, "XDG_CACHE_HOME": empty}
            subprocess.run([sys.executable, "-W", "ignore", "-c", FIRST_FIT], check=True, env=environment)

    def prediction(fit: Callable[[], Any], rows: Any) -> Item:
        model = timed(fit)[0]
        return best(lambda: model.predict(rows), 30 if len(rows) == 1 else 5)

    searched = partial(fit_search, _speed_data(300), "fast", 0)
    return {
        "first fit, cold": partial(best, partial(fresh, False)),
        "first fit, warm": partial(best, partial(fresh, True)),
        "default search": partial(best, partial(fit_search, _speed_data(SPEED_ROWS), "fast", 0)),
        "paper grid of 40": partial(best, partial(grid_of_40, X, y)),
        "10 MLPs of scikit-learn": partial(best, peers, 1),
        "paper grid of 40, again": partial(best, partial(grid_of_40, X, y)),
        "predict 1, network": partial(prediction, partial(one_network, X, y), many[:1]),
        "predict 1, default search": partial(prediction, searched, _speed_data(1).X),
        "predict 100000, network": partial(prediction, partial(one_network, X, y), many),
        "predict 100000, default search": partial(prediction, searched, _speed_data(100_000).X),
    }


def items_of(part: str) -> dict[str, Callable[[], Item]]:
    """Return what measures each item of a part."""
    if part == "speed":
        return _speeds()
    if part == "errors":
        return {
            f"{search}|{cell.table} {cell.variant} {cell.rows} {cell.split}|{seed}": partial(_error, cell, search, seed)
            for search, (cells, n_seeds) in SEARCHES.items()
            for seed, cell in itertools.product(range(n_seeds), cells)
        }
    if part == "graphs":
        graphs = itertools.product(GRAPH_KINDS, range(len(GRAPH_SIZES)))
        return {f"{kind} {seed}": partial(_graph, kind, seed) for kind, seed in graphs}
    if part == "effects":
        return {f"{kind} {seed}": partial(_effects, kind, seed) for kind, seed in WORLDS}
    return {name: partial(_file, name) for name in MESSY}


SIZES = {
    "speed": f"{SPEED_ROWS} x 20 for the search, 500 x 9 for the grid; best of {REPEATS}, predictions best of 30 and 5",
    "errors": f"cells x seeds: {', '.join(f'{name} {len(cells)} x {n}' for name, (cells, n) in SEARCHES.items())}; "
    f"{PAPER_EPOCHS} epochs of paper; at most 300 rows",
    "graphs": f"{', '.join(GRAPH_KINDS)}; columns and rows: {', '.join(f'{d} x {n}' for d, n in GRAPH_SIZES)}",
    "effects": f"{len(WORLDS)} worlds of {worlds.NODES} columns, {worlds.ROWS} rows, 20 draws",
    "files": f"{len(MESSY)} files, {FILE_ROWS[0]} rows to fit and {FILE_ROWS[1]} to predict",
}


def record(path: Path, parts: list[str]) -> None:
    """Measure the items that the file does not have, and write it after each."""
    import castlereg

    print("castlereg of", Path(castlereg.__file__).parent, flush=True)
    stored = json.loads(path.read_text()) if path.exists() else {}
    stored |= {"version": castlereg.__version__, "sizes": SIZES}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache  # compiled programs of other runs would make the first fits faster
        for part in parts:
            items = stored.setdefault(part, {})
            for name, measure in items_of(part).items():
                if name not in items:
                    items[name] = measure()
                    shown = {key: value for key, value in items[name].items() if key not in ("pairs", "kinds")}
                    print(time.strftime("%H:%M:%S"), part, "|", name, "|", shown, flush=True)
                    written = path.with_suffix(".part")
                    written.write_text(json.dumps(stored, indent=1))
                    written.replace(path)


# --- comparison ------------------------------------------------------------------------------------------------------


def _bar(values: Any) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def _ratios(name: str, old: Any, new: Any) -> None:
    """Print the geometric mean of new / old with its standard error."""
    logs = np.log(np.maximum(new, 1e-9)) - np.log(np.maximum(old, 1e-9))
    mean, bar = np.exp(logs.mean()), np.exp(logs.mean()) * _bar(logs)
    means = f"means {np.mean(old):.4g} -> {np.mean(new):.4g}"
    print(f"  {name:36} x {mean:.4f} +- {bar:.4f}  n={len(logs):2}  {means}  largest x {np.exp(logs.max()):.2f}")


def _compare_errors(old: Item, new: Item) -> None:
    rows = [
        (*name.split("|"), is_new, item["error"], *item["fit"], *item["predict"])
        for is_new, items in enumerate((old, new))
        for name, item in items.items()
    ]
    measures = ["error", "fit, wall", "fit, processor", "predict, wall", "predict, processor"]
    table = pd.DataFrame(rows, columns=["search", "cell", "seed", "is_new", *measures])
    for search, part in table.groupby("search", sort=False):
        means = part.groupby(["is_new", "cell"])[measures].mean()  # over seeds
        for measure in measures:
            _ratios(f"{search}: {measure}", means.loc[0, measure].to_numpy(), means.loc[1, measure].to_numpy())
        for is_new, name in enumerate(("old", "new")):  # what chance alone does
            of_seed = part[part["is_new"] == is_new].pivot(index="cell", columns="seed", values="error")
            if of_seed.shape[1] > 1:
                _ratios(f"{search}: error, seed 0 to 1 of {name}", of_seed["0"].to_numpy(), of_seed["1"].to_numpy())


def _calibration(items: Item, bins: list[float], of_directions: bool) -> pd.DataFrame:
    """Return number, share right and mean claim by bin of the claimed probability; the last row has Brier's score."""
    claimed, forward, truth = np.array([pair for item in items.values() for pair in item["pairs"]]).T
    right = truth != 0
    if of_directions:
        known = right & (forward >= 0)
        forward, truth = forward[known], truth[known]
        claimed, right = np.maximum(forward, 1 - forward), (forward >= 0.5) == (truth > 0)
    frame = pd.DataFrame({"claimed": claimed, "right": right.astype(float)})
    by_bin = frame.groupby(pd.cut(claimed, bins, include_lowest=True), observed=False)
    table = pd.DataFrame({"n": by_bin.size(), "right": by_bin["right"].mean(), "claimed": by_bin["claimed"].mean()})
    table.index = table.index.astype(str)
    table.loc["all; Brier score"] = [len(frame), np.nan, np.square(claimed - right).mean()]
    return table


def _compare_graphs(old: Item, new: Item) -> None:
    for measure, kind in itertools.product(("f1", "f1_undirected"), (*GRAPH_KINDS, "")):
        values = np.array([[side[name][measure] for side in (old, new)] for name in old if name.startswith(kind)])
        if len(values):
            (before, after), bar = values.mean(axis=0), _bar(values[:, 1] - values[:, 0])
            print(f"  {measure:13} {kind or 'all':8} {before:.3f} -> {after:.3f}, {after - before:+.3f} +- {bar:.3f}")
    for what, bins in (
        ("edges", [0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 1]),
        ("directions", [0.5, 0.75, 0.9, 0.97, 1]),
    ):
        sides = [_calibration(side, bins, what == "directions") for side in (old, new)]
        print(f"  probabilities of {what}, by what is claimed")
        print(pd.concat(sides, axis=1, keys=["old", "new"]).round(3).to_string())


def _compare_effects(old: Item, new: Item) -> None:
    for name in ("true graph", "own graph"):
        _ratios(f"{name}: error", *([item[name] for item in side.values()] for side in (old, new)))
        seconds = ([item[f"{name}, seconds"][1] for item in side.values()] for side in (old, new))
        _ratios(f"{name}: processor seconds", *seconds)


def _compare_files(old: Item, new: Item) -> None:
    for name, before in old.items():
        after = new[name]
        for arrow, item in (("  ", before), ("->", after)):
            codes = f"fit {item['fit']}, predict {item.get('predict', '-')}, error {item.get('error', np.nan):.4f}"
            print(f"  {name:28} {arrow} {codes}, fit {item['fit, seconds'][1]:.1f} s")
        kinds = before.get("kinds", {}), after.get("kinds", {})
        changed = [(column, *(side.get(column) for side in kinds)) for column in dict.fromkeys([*kinds[0], *kinds[1]])]
        changed += [(what, before.get(what), after.get(what)) for what in ("fit, message", "predict, message")]
        for what, was, now in changed:
            if was != now:
                print(f"    {what!r}: {was!r}\n      -> {now!r}")


def _compare_speed(old: Item, new: Item) -> None:
    for name in old:
        both = zip(("wall", "processor"), old[name]["seconds"], new[name]["seconds"], strict=True)
        print(f"  {name:32}", "; ".join(f"{kind} {a:.4g} -> {b:.4g} s (x {b / a:.2f})" for kind, a, b in both))
    for side, items in (("old", old), ("new", new)):
        if {"paper grid of 40", "10 MLPs of scikit-learn"} <= set(items):
            peers, grid = (items[name]["seconds"][0] for name in ("10 MLPs of scikit-learn", "paper grid of 40"))
            print(f"  {side}: the grid is {4 * peers / grid:.1f} times as fast as 40 MLPs of scikit-learn")


def compare(old: Item, new: Item) -> None:
    """Print the differences of the items that both have."""
    shown = {"errors": _compare_errors, "graphs": _compare_graphs, "effects": _compare_effects}
    shown |= {"files": _compare_files, "speed": _compare_speed}
    for part, show in shown.items():
        names = [name for name in old.get(part, {}) if name in new.get(part, {})]
        if names:
            print(f"{part}: {len(names)} items; {old['sizes'][part]}")
            sides = [{name: side[part][name] for name in names} for side in (old, new)]
            for name in names:
                if sides[0][name].get("rows") != sides[1][name].get("rows"):
                    print(f"  {name}: the two versions drew different rows")
            show(*sides)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser("benchmarks.safety_net")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("--part", action="append", choices=list(SIZES))
    comparing = commands.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    options = parser.parse_args()
    if options.command == "record":
        record(options.file, options.part or list(SIZES))
    else:
        compare(*(json.loads(path.read_text()) for path in (options.old, options.new)))


if __name__ == "__main__":
    main()
