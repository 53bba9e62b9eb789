"""Discovery on the columns that people have: random graphs of every kind of column, broken worlds and null tables.

The families here only report: nothing may be chosen on them. Their functions, noises and ways to break a model are
written without those of ``castlereg.causal.worlds`` and ``benchmarks/recovery_problems.py``. Results are stored in
``benchmarks/recovery``; a new run of a graph or table replaces the stored one.

- ``python -m benchmarks.real_columns run [--family F ...] [--seeds 0:10] [--jobs 2]``: ``families.csv`` with scores,
  ``calibration.csv.gz`` with the probabilities of pairs of columns.
- ``... null [--seeds 0:10] [--jobs 2]``: ``null.csv``, edges of tables without dependence.
- ``... invariance [--family F ...] [--seeds 0:1]``: ``invariance.csv``, graphs in other column orders and units.
- ``... speed [--columns 10 20 40 100]``: ``speed.csv``, seconds on one and two cores.
- ``... export FOLDER`` and ``... collect FOLDER``: problems for ``benchmarks/peers/recover.py``, and its scores.
- ``... table``: print the stored figures of every family.

Real tables with shuffled columns are read from the folder ``tables`` next to ``CASTLEREG_DATA``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":  # before BLAS is loaded: a core for each process, except where speed is measured
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from castlereg.causal.discovery import Discovery, Source, discover
from castlereg.causal.variables import Variables

Values = NDArray[np.float64]
Pairs = NDArray[np.bool_]  # (columns, columns)
Function = Callable[[Values, np.random.Generator], Values]

STORED = Path(__file__).parent / "recovery"
CLAIM = 0.9  # least probability of a confident claim
_KEPT = 0.05  # pairs without an edge or hidden cause and below this probability are stored as a count and sums


class Problem(NamedTuple):
    """A table with its graph."""

    frame: pd.DataFrame
    truth: Pairs  # truth[j, k] for j -> k
    hidden: Pairs  # pairs with an unobserved common cause
    scored: Pairs  # pairs whose direction is defined; not those of a feedback loop
    hidden_scored: Pairs  # pairs for which an unobserved common cause is a matter of yes or no


@dataclass(frozen=True)
class Family:
    """How tables are drawn.

    Parameters
    ----------
    title : str
        Name on the page.
    kinds : tuple of str
        Kinds of columns, see ``_KINDS``.
    share : float
        Share of the columns that have these kinds; all others are smooth numbers.
    n_columns, n_rows : int
    world : str
        Name of a departure from independent rows of additive equations, or empty.
    """

    title: str
    kinds: tuple[str, ...] = ("number",)
    share: float = 1.0
    n_columns: int = 10
    n_rows: int = 1000
    world: str = ""


_ALL_KINDS = ("number", "answer", "whole", "zeros", "count", "two", "level")
FAMILIES = {
    "smooth": Family("smooth numbers"),
    "survey": Family("survey answers, five levels", ("answer",)),
    "zeros": Family("many zeros", ("zeros",), share=0.8),
    "counts": Family("counts", ("count",)),
    "whole": Family("whole numbers 1 to 10", ("whole",)),
    "two_valued": Family("half of the columns 0/1", ("two",), share=0.5),
    "products": Family("products of causes", world="products"),
    "hidden": Family("two hidden common causes", world="hidden"),
    "missing": Family("missing cells", world="missing"),
    "levels": Family("levels", ("level",)),
    "mixed": Family("all kinds in one table", _ALL_KINDS),
    "rounding": Family("rounded measurements", world="rounding"),
    "grids": Family("designed grids of values", world="grids"),
    "derived": Family("sums, ratios and indices of columns", world="derived"),
    "measurement": Family("measurement error", world="measurement"),
    "time": Family("rows in time order", world="time"),
    "selected": Family("selected rows", world="selected"),
    "feedback": Family("feedback between two columns", world="feedback"),
    "groups": Family("mixtures of groups", world="groups"),
    "hetero": Family("noise that varies", world="hetero"),
    "few": Family("150 rows", n_rows=150),
    "many": Family("5,000 rows", n_rows=5000),
    "sizes": Family("6 to 40 columns"),
}
TABLE_FAMILIES = tuple(FAMILIES)[:10]  # those that peers run
_SIZES = (6, 15, 25, 40)
_EDGES_PER_COLUMN = 1.5


# --- functions, noises and kinds of columns ----------------------------------------------------------


def _standard(x: Values) -> Values:
    return np.asarray((x - x.mean()) / (x.std() or 1.0))


def _bend(x: Values, rng: np.random.Generator) -> Values:
    """Apply a random function of one of eight shapes to a standardized column."""
    slope, knot, x = rng.uniform(0.8, 2.0), rng.uniform(-0.7, 0.7), np.clip(x, -5, 5)
    match rng.integers(8):
        case 0:
            return np.tanh(slope * (x - knot))
        case 1:
            return np.asarray(x + 0.4 * slope * x**2)
        case 2:
            return np.logaddexp(0, 2 * slope * (x - knot))
        case 3:
            return np.asarray(np.where(x < knot, 0.2, slope) * (x - knot))
        case 4:
            return np.asarray(x * np.exp(-(x**2) / 2) + 0.15 * x)
        case 5:
            return np.asarray((x > knot) + (x > knot + 1) + 0.2 * x)
        case 6:
            return np.sign(x - knot) * np.abs(x - knot) ** (1 / 3)
        case _:
            return x


def _effect(x: Values, n_levels: int, rng: np.random.Generator) -> Values:
    """Draw a function of a column, of mean zero and variance one; levels have random effects."""
    return _standard(rng.normal(size=n_levels)[x.astype(int)] if n_levels else _bend(_standard(x), rng))


def _noise(rng: np.random.Generator, n: int) -> Values:
    """Draw noise of mean zero, variance one and one of six shapes."""
    match rng.integers(6):
        case 0:
            drawn = rng.logistic(size=n)
        case 1:
            drawn = rng.standard_t(5, size=n)
        case 2:
            drawn = rng.gumbel(size=n)
        case 3:
            drawn = np.where(rng.random(n) < 0.3, rng.normal(2.0, 0.7, n), rng.normal(0, 0.6, n))
        case 4:
            drawn = rng.uniform(size=n)
        case _:
            drawn = rng.beta(2, 5, size=n)
    return _standard(drawn)


def _cut(x: Values, rng: np.random.Generator) -> Values:
    """Cut numbers into answers from 1 to 5, at random quantiles or at evenly spaced thresholds."""
    if rng.random() < 0.5:
        ends = np.quantile(x, np.cumsum(0.05 + 0.75 * rng.dirichlet(np.full(5, 3.0)))[:4])
    else:
        ends = x.mean() + x.std() * (rng.normal(0, 0.3) + rng.uniform(0.6, 1.1) * np.array([-1.5, -0.5, 0.5, 1.5]))
    return np.asarray(1 + np.searchsorted(ends, x), dtype=np.float64)


def _cut_off(x: Values, rng: np.random.Generator) -> Values:
    """Replace the values below a limit by zero, or, one time in five, those above a limit by the limit."""
    if rng.random() < 0.2:
        return np.minimum(x, np.quantile(x, rng.uniform(0.5, 0.75)))
    return np.maximum(x - np.quantile(x, rng.uniform(0.3, 0.6)), 0)


def _count(signal: Values, rng: np.random.Generator) -> Values:
    """Draw Poisson or negative binomial counts with a log-linear mean or one that grows like a softplus."""
    usual = np.exp(rng.uniform(np.log(1.5), np.log(12)))
    grown = np.exp(np.clip(0.55 * signal, -4, 3)) if rng.random() < 0.5 else np.logaddexp(0, 1.5 * signal) / np.log(2)
    mean = usual * grown + 0.05
    size = rng.uniform(2, 6)
    return (rng.poisson(mean) if rng.random() < 0.5 else rng.negative_binomial(size, size / (size + mean))).astype(
        float
    )


def _draw_column(
    kind: str, signal: Callable[[], Values], noise: Callable[[], Values], rng: np.random.Generator
) -> tuple[Values, int]:
    """Draw a column from functions of its causes; return its values and its number of levels."""
    if kind == "level":
        n_levels = int(rng.integers(2, 6))
        logits = np.stack([rng.normal(0, 0.3) + 1.5 * signal() for _ in range(n_levels)])
        return np.argmax(logits + rng.gumbel(size=logits.shape), axis=0).astype(float), n_levels
    if kind == "count":
        return _count(signal(), rng), 0
    if kind == "two":
        score = 1.8 * signal() + rng.logistic(size=len(noise()))
        return (score > np.quantile(score, rng.uniform(0.25, 0.75))).astype(float), 0
    latent = signal() + rng.uniform(0.5, 1.0) * noise()
    if kind == "answer":
        return _cut(latent, rng), 0
    if kind == "whole":
        return np.clip(np.round(rng.uniform(4.5, 6.5) + rng.uniform(1.5, 2.2) * _standard(latent)), 1, 10), 0
    return _cut_off(latent, rng) if kind == "zeros" else latent, 0


# --- graphs and tables -------------------------------------------------------------------------------


def _random_graph(n: int, n_edges: int, rng: np.random.Generator) -> tuple[Pairs, list[int]]:
    """Draw an acyclic graph and the order of its columns."""
    order, truth = rng.permutation(n), np.zeros((n, n), dtype=bool)
    first, second = np.triu_indices(n, 1)
    chosen = rng.choice(len(first), min(n_edges, len(first)), replace=False)
    truth[order[first[chosen]], order[second[chosen]]] = True
    return truth, order.tolist()


def _simulate(
    truth: Pairs,
    order: Sequence[int],
    kinds: Sequence[str],
    n_rows: int,
    world: str,
    loop: tuple[int, int] | None,
    rng: np.random.Generator,
) -> tuple[Values, list[int]]:
    """Draw rows of a graph; return them, shape (rows, columns), and the numbers of levels of the columns.

    The two columns of a loop follow each other in the order. They are the equilibrium of acting on each other.
    """
    values, n_levels = np.zeros((n_rows, len(kinds))), [0] * len(kinds)
    group = rng.choice(3, n_rows, p=[0.5, 0.3, 0.2]) if world == "groups" else np.zeros(n_rows, int)
    changes = rng.permutation(len(kinds)) < len(kinds) // 2 if world == "groups" else np.zeros(len(kinds), bool)
    for k in order:
        causes = [j for j in np.flatnonzero(truth[:, k]).tolist() if (j, k) != loop]
        weights = {j: rng.uniform(0.6, 1.4) * rng.choice([-1, 1]) for j in causes}

        def signal(k: int = k, causes: list[int] = causes, weights: dict[int, float] = weights) -> Values:
            total, added = np.zeros(n_rows), list(causes)
            if world == "products" and len(causes) > 1:
                a, b = (_standard(values[:, j]) for j in causes[:2])
                total += rng.uniform(0.8, 1.4) * _standard(
                    (np.tanh(a) if rng.random() < 0.5 else a) * np.clip(b, -4, 4)
                )
                added = [*causes[2:], *([causes[0]] if rng.random() < 0.5 else [])]
            for j in added:
                parts = [_effect(values[:, j], n_levels[j], rng) for _ in range(3 if changes[k] else 1)]
                total += weights[j] * (np.choose(group, parts) if changes[k] else parts[0])
            return total

        def noise(causes: list[int] = causes) -> Values:
            drawn = _noise(rng, n_rows)
            if world == "time":
                memory = rng.uniform(0.7, 0.95)
                for i in range(1, n_rows):
                    drawn[i] += memory * drawn[i - 1]
                drawn = _standard(drawn)
            for j in causes if world == "hetero" else ():
                drawn = drawn * np.exp(0.5 * np.clip(_effect(values[:, j], n_levels[j], rng), -2.5, 2.5))
            return drawn

        if world == "grids" and not causes:
            grid = np.linspace(-1.5, 1.5, rng.integers(3, 9))
            values[:, k] = rng.permutation(np.resize(np.exp(grid) if rng.random() < 0.5 else grid, n_rows))
        else:
            values[:, k], n_levels[k] = _draw_column(kinds[k], signal, noise, rng)
        if loop is not None and k == loop[1]:
            forth, back = rng.uniform(0.5, 0.95, 2) * rng.choice([-1, 1], 2)
            first, second = values[:, loop[0]].copy(), values[:, k].copy()
            for _ in range(200):  # a contraction
                values[:, loop[0]] = first + back * np.tanh(values[:, k])
                values[:, k] = second + forth * np.tanh(values[:, loop[0]])
    return values, n_levels


def _loop(truth: Pairs, order: Sequence[int], rng: np.random.Generator) -> tuple[int, int]:
    """Return an edge of two columns that follow each other in the order; make one if there is none."""
    following = list(itertools.pairwise(order))
    edges = [pair for pair in following if truth[pair]]
    if not edges:
        truth[tuple(rng.permutation(np.argwhere(truth))[0])] = False
        edges = [following[rng.integers(len(following))]]
        truth[edges[0]] = True
    return edges[rng.integers(len(edges))]


def _derive(values: Values, truth: Pairs, rng: np.random.Generator) -> tuple[Values, Pairs]:
    """Append a sum, ratio or index of other columns twice, exact but for rounding or noise of two percent."""
    n_base = len(truth)
    for n in (n_base, n_base + 1):
        parts = rng.choice(n_base, 3 if rng.random() < 0.5 else 2, replace=False)
        x = np.stack([_standard(values[:, j]) for j in parts])
        match rng.integers(3):
            case 0:
                made = x.sum(axis=0)
            case 1:
                made, parts = np.exp(0.4 * (np.clip(x[0], -4, 4) - np.clip(x[1], -4, 4))), parts[:2]
            case _:
                made = rng.uniform(0.5, 1.5, len(parts)) @ (np.sign(x) * np.sqrt(np.abs(x)))
        made = np.round(made, 1) if rng.random() < 0.5 else made + 0.02 * made.std() * rng.normal(size=len(made))
        values, truth = np.column_stack([values, made]), np.pad(truth, (0, 1))
        truth[parts, n] = True
    return values, truth


def _round(x: Values, rng: np.random.Generator) -> Values:
    """Round measurements to a step, to two digits, or, for most rows only, to whole units."""
    x = _standard(x)
    match rng.integers(3):
        case 0:
            step = float(rng.choice([0.1, 0.25, 0.5]))
            return np.asarray(np.round(x / step) * step, np.float64)
        case 1:
            return np.asarray(np.round(np.exp(0.5 * x), 1), dtype=np.float64)
        case _:
            return np.where(rng.random(len(x)) < 0.6, np.round(x), np.round(x, 1))


def _remove_cells(frame: pd.DataFrame, rng: np.random.Generator) -> None:
    """Remove 10 to 25 % of the cells of most columns, depending on columns that stay complete."""
    n = frame.shape[1]
    mixed = rng.permutation(n)
    for j in mixed[: round(0.6 * n)]:
        other = _standard(frame.iloc[:, rng.choice(mixed[round(0.6 * n) :])].to_numpy(float))
        score = rng.choice([-1, 1]) * rng.uniform(1, 2.5) * other + rng.logistic(size=len(frame))
        frame.iloc[score > np.quantile(score, 1 - rng.uniform(0.1, 0.25)), j] = np.nan


def draw(family: str, seed: int) -> Problem:
    """Draw a graph of a family and its table, with the columns in random order and units."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(family), 38])
    how, n_hidden = FAMILIES[family], 2 if family == "hidden" else 0
    if family == "sizes":
        how = replace(how, n_columns=_SIZES[seed % len(_SIZES)])
    if family in ("few", "many", "sizes") and rng.random() < 0.5:
        how = replace(how, kinds=_ALL_KINDS)
    if family == "levels" and rng.random() < 0.5:
        how = replace(how, share=0.6)
    n, n_edges = how.n_columns, round(_EDGES_PER_COLUMN * how.n_columns)
    truth, order = _random_graph(n - 2, n_edges - 5, rng) if how.world == "derived" else _random_graph(n, n_edges, rng)
    chosen = rng.permutation(len(truth)) < round(how.share * len(truth))
    kinds = [str(rng.choice(how.kinds)) if is_chosen else "number" for is_chosen in chosen]
    hidden, scored, hidden_scored = np.zeros((n, n), dtype=bool), ~np.eye(n, dtype=bool), ~np.eye(n, dtype=bool)
    if n_hidden:
        truth = np.pad(truth, (0, n_hidden))
        for cause in range(n, n + n_hidden):
            effects = rng.choice(n, rng.integers(2, 4), replace=False)
            truth[cause, effects] = True
            hidden[np.ix_(effects, effects)] = True
        np.fill_diagonal(hidden, False)
        order, kinds = [*range(n, n + n_hidden), *order], kinds + ["number"] * n_hidden
    loop = _loop(truth, order, rng) if how.world == "feedback" else None
    n_rows = 4 * how.n_rows if how.world == "selected" else how.n_rows
    cut_at_the_end = family == "survey" and seed % 2 == 1  # causes then act by what is behind their answers
    values, n_levels = _simulate(
        truth, order, ["number"] * len(kinds) if cut_at_the_end else kinds, n_rows, how.world, loop, rng
    )
    values, truth, n_levels = values[:, :n], truth[:n, :n], [*n_levels[:n], *[0] * (n - len(n_levels))]
    if loop is not None:
        scored[loop] = scored[loop[::-1]] = False
    if cut_at_the_end:
        values = np.column_stack([_cut(x, rng) for x in values.T])
    elif how.world == "derived":
        values, truth = _derive(values, truth, rng)
    elif how.world == "rounding":
        values = np.column_stack([_round(x, rng) for x in values.T])
    elif how.world == "measurement":
        wrong = rng.permutation(n) < n // 2
        share = np.where(wrong, rng.uniform(0.1, 0.4, n), 0.0)  # of the variance
        errors = np.column_stack([_noise(rng, len(values)) for _ in range(n)])
        values = values + values.std(axis=0) * np.sqrt(share / (1 - share)) * errors
        hidden_scored &= ~(wrong | wrong[:, None])  # the true value is an unobserved cause of its effects
    elif how.world == "selected":
        score = _standard(values[:, rng.integers(n)]) * rng.choice([-1, 1])
        is_in = score > np.median(score) if rng.random() < 0.5 else rng.random(len(score)) < expit(3 * score)
        values = values[np.flatnonzero(is_in)[: how.n_rows]]
    elif how.world == "groups":
        hidden_scored[:] = False  # the group changes equations; whether that is a common cause is a matter of words
    at = rng.permutation(n)
    frame = pd.DataFrame({f"x{place}": values[:, k] for place, k in enumerate(at)})
    for name, k in zip(frame, at, strict=True):
        if n_levels[k]:
            frame[name] = pd.Categorical([f"level {int(code)}" for code in values[:, k]])
        elif len(np.unique(values[:, k])) > 0.5 * len(values):  # smooth numbers have any unit
            frame[name] = 10 ** rng.uniform(-1, 2) * (_standard(values[:, k]) + rng.uniform(-3, 3))
    if how.world == "missing":
        _remove_cells(frame, rng)
    pairs = (array[np.ix_(at, at)] for array in (truth, hidden, scored, hidden_scored))
    return Problem(frame, *pairs)


NULL_KINDS = ("normal", "survey", "counts", "zeros", "tens", "two", "categories", "heavy", "mixture")
MISSING_SHARES = (0.0, 0.1, 0.2, 0.4)


def null_table(kind: str, missing_share: float, seed: int) -> pd.DataFrame:
    """Draw six columns, with missing cells, and a target, all independent, 1,000 rows."""
    rng, n = np.random.default_rng([seed, NULL_KINDS.index(kind), round(100 * missing_share)]), 1000
    columns: dict[str, Any] = {}
    for place in range(7):
        match kind if kind != "mixture" else NULL_KINDS[rng.integers(len(NULL_KINDS) - 1)]:
            case "normal":
                column = rng.normal(size=n)
            case "survey":
                column = rng.choice(np.arange(1.0, 6), n, p=rng.dirichlet(np.full(5, 4.0)))
            case "counts":
                column = rng.poisson(rng.uniform(0.8, 8), n).astype(float)
            case "zeros":
                column = np.where(rng.random(n) < 0.5, 0, rng.lognormal(sigma=rng.uniform(0.4, 1.2), size=n))
            case "tens":
                column = np.round(rng.normal(100, 25, n), -1)
            case "two":
                column = (rng.random(n) < rng.uniform(0.1, 0.9)).astype(float)
            case "heavy":
                column = rng.standard_t(rng.uniform(1.2, 3), n)
            case _:
                column = rng.choice(rng.integers(2, 7), n).astype(float)
        removed = rng.random(n) < (missing_share if place < 6 else 0)
        is_level = kind == "categories" or (kind == "mixture" and len(np.unique(column)) < 8 and rng.random() < 0.3)
        if is_level:
            columns[f"x{place}"] = pd.Categorical(pd.Series([f"level {int(code)}" for code in column]).mask(removed))
        else:
            columns[f"x{place}"] = np.where(removed, np.nan, column)
    return pd.DataFrame(columns)


def real_tables() -> list[dict[str, Any]]:
    """Read the list of real tables; it is empty without ``CASTLEREG_DATA``."""
    folder = Path(os.environ.get("CASTLEREG_DATA", "nowhere")).parent / "tables"
    listed = folder / "MANIFEST.json"
    tables = json.loads(listed.read_text(encoding="utf-8")) if listed.exists() else []
    return [{**table, "file": str(folder / table["file"])} for table in tables]


def shuffled_table(table: dict[str, Any], seed: int, most_rows: int = 1000, most_columns: int = 12) -> pd.DataFrame:
    """Read a real table and shuffle every column for itself; some rows and columns of large ones."""
    rng = np.random.default_rng([seed, 59])
    data = pd.read_csv(table["file"], low_memory=False).drop(columns=table["drop"], errors="ignore")
    columns: dict[str, Any] = {}
    for name, cells in data.items():
        if name in table["categorical"] or not pd.api.types.is_numeric_dtype(cells):
            if name in table["dates"] or cells.nunique() > 30:
                continue
            columns[str(name)] = pd.Categorical(cells.astype(str).where(cells.notna()))
        else:
            columns[str(name)] = cells.to_numpy(float)
    rows = rng.choice(len(data), min(most_rows, len(data)), replace=False)
    usable = pd.DataFrame(columns).iloc[rows]
    usable = usable.loc[:, usable.nunique() > 1]
    names = list(usable) if usable.shape[1] <= most_columns else list(rng.choice(usable.columns, most_columns, False))
    return pd.DataFrame({name: usable[name].array[rng.permutation(len(usable))] for name in names})


# --- scores ------------------------------------------------------------------------------------------


def found_in(frame: pd.DataFrame) -> tuple[Discovery, Values, float]:
    """Discover the graph of a table; return it, the probabilities of hidden causes or NaN, and processor seconds."""
    start = time.process_time()
    found = discover(Variables.of_frame(frame), seed=0)
    seconds = time.process_time() - start
    hidden = getattr(found, "hidden", None)
    return found, np.full(found.edges.shape, np.nan) if hidden is None else np.asarray(hidden), seconds


def graph_scores(edges: Values, problem: Problem) -> dict[str, float]:
    """Return F1 with and without directions; edges are one, or one half in both directions if undirected.

    Pairs whose direction is not defined count only without directions.
    """
    truth, scored = problem.truth, problem.scored
    right, found = float(edges[truth & scored].sum()), float(edges[scored].sum())
    either, is_joined = np.minimum(edges + edges.T, 1), truth | truth.T
    both = max(found + (truth & scored).sum(), 1)
    either_both = max(either.sum() / 2 + is_joined.sum() / 2, 1)
    return {"F1": 2 * right / both, "F1 without directions": float(either[is_joined].sum()) / either_both}


def claims(found: Discovery, least: float = CLAIM) -> Pairs:
    """Return the arrows whose edge and direction both have this probability."""
    return np.asarray((found.joined >= least) & (np.nan_to_num(found.direction, nan=0.0) >= least))


def score(family: str, seed: int) -> tuple[dict[str, Any], pd.DataFrame]:
    """Discover one graph; return its scores and the probabilities of its pairs."""
    problem = draw(family, seed)
    found, hidden, seconds = found_in(problem.frame)
    sure, truth = claims(found) & problem.scored, problem.truth
    j, k = np.triu_indices(len(truth), 1)
    pairs = pd.DataFrame({"family": family, "seed": seed, "j": j, "k": k, "joined": found.joined[j, k]})
    pairs["forward"] = np.where((found.edges | found.edges.T)[j, k], found.direction[j, k], np.nan)
    pairs["hidden"] = hidden[j, k]
    pairs["true"] = np.where(truth[j, k], 1, np.where(truth[k, j], -1, 0))
    for name, array in (("hides", problem.hidden), ("scored", problem.scored), ("h scored", problem.hidden_scored)):
        pairs[name] = array[j, k].astype(int)
    quiet = (pairs["joined"] <= _KEPT) & (pairs["true"] == 0) & ~(pairs["hidden"] > _KEPT) & (pairs["hides"] == 0)
    in_rest = quiet & (pairs["h scored"] == 1)
    said = np.triu(hidden >= CLAIM) & problem.hidden_scored
    row = {
        **{"family": family, "seed": seed, "method": "castlereg"},
        **graph_scores(found.edges.astype(float), problem),
        **{"claims": int(sure.sum()), "right": int((sure & truth).sum())},
        **{"hidden claims": int(said.sum()), "hidden right": int((said & problem.hidden).sum())},
        **{"quiet": int(quiet.sum()), "quiet joined": pairs["joined"][quiet].sum()},
        **{"quiet hidden pairs": int(in_rest.sum()), "quiet hidden": pairs["hidden"][in_rest].sum(min_count=1)},
        "seconds": seconds,
    }
    return row, pairs[~quiet]


_SCORES = (
    *("family", "seed", "method", "F1", "F1 without directions", "claims", "right", "hidden claims", "hidden right"),
    *("quiet", "quiet joined", "quiet hidden pairs", "quiet hidden", "seconds", "commit"),
)


def calibration_error(probability: Values, truth: Values, weight: Values | None = None, n_bins: int = 10) -> float:
    """Return the expected calibration error over bins of equal width; NaN without probabilities."""
    weight = np.ones(len(probability)) if weight is None else weight
    if not weight.sum():
        return np.nan
    bins = np.minimum((probability * n_bins).astype(int), n_bins - 1)
    return float(np.abs(np.bincount(bins, weight * (probability - truth))).sum() / weight.sum())


def read(name: str) -> pd.DataFrame:
    """Read a stored file; empty if there is none."""
    path = STORED / name
    return pd.read_csv(path, dtype={"commit": str}) if path.exists() else pd.DataFrame()  # 1234e56 is not a number


def _store(name: str, new: pd.DataFrame, keys: Sequence[str], digits: int = 4) -> None:
    """Add rows to a stored file, in place of those with the same keys."""
    old = read(name)
    if len(old):
        known = pd.MultiIndex.from_frame(new[list(keys)].astype(str))
        old = old[~pd.MultiIndex.from_frame(old[list(keys)].astype(str)).isin(known)]
    table = pd.concat([part for part in (old, new) if len(part)])
    order = [key for key in keys if key in table]
    STORED.mkdir(exist_ok=True)
    compression: Any = {"method": "gzip", "mtime": 0} if name.endswith(".gz") else None
    table.sort_values(order, kind="stable").round(digits).to_csv(STORED / name, index=False, compression=compression)


def commit() -> str:
    """Return the short name of the commit, with a plus sign if files have changed since."""
    if label := os.environ.get("CASTLEREG_COMMIT"):  # code without a repository
        return label
    here: Any = {"cwd": Path(__file__).parent, "capture_output": True, "text": True}
    name = subprocess.run(["git", "rev-parse", "--short", "HEAD"], **here).stdout.strip()
    changed = subprocess.run(["git", "status", "--porcelain", "--", "../src"], **here).stdout
    return str(name) + ("+" if changed else "")


def by_family() -> pd.DataFrame:
    """Return F1, the share of confident arrows that are right and the calibration errors of our stored graphs."""
    scores, pairs = read("families.csv"), read("calibration.csv.gz")
    rows = []
    for family in FAMILIES:
        ours = scores[(scores["family"] == family) & (scores["method"] == "castlereg")]
        if ours.empty:
            continue
        of = pairs[pairs["family"] == family]
        directed = of[(of["true"] != 0) & (of["scored"] == 1)].dropna(subset="forward")
        sure = np.maximum(directed["forward"], 1 - directed["forward"])
        is_right = (directed["forward"] >= 0.5) == (directed["true"] == 1)
        known = of[(of["h scored"] == 1) & of["hidden"].notna()]
        sums = ours[["claims", "right", "hidden claims", "hidden right"]].sum()
        rows.append(
            {
                "family": family,
                "graphs": len(ours),
                "F1": ours["F1"].mean(),
                "F1 without directions": ours["F1 without directions"].mean(),
                "claims": int(sums["claims"]),
                "right": sums["right"] / sums["claims"] if sums["claims"] else np.nan,
                "edges": _error_with_rest(of["joined"], of["true"] != 0, ours["quiet"], ours["quiet joined"]),
                "directions": calibration_error(sure.to_numpy(float), is_right.to_numpy(float)),
                "hidden causes": np.nan
                if known.empty and ours["quiet hidden"].isna().all()
                else _error_with_rest(
                    known["hidden"], known["hides"], ours["quiet hidden pairs"], ours["quiet hidden"]
                ),
                "hidden claims": int(sums["hidden claims"]),
                "hidden right": sums["hidden right"] / sums["hidden claims"] if sums["hidden claims"] else np.nan,
                "seconds": ours["seconds"].median(),
            }
        )
    return pd.DataFrame(rows)


def _error_with_rest(probability: pd.Series, truth: pd.Series, counts: pd.Series, sums: pd.Series) -> float:
    """Return the calibration error with the pairs that are stored as counts and sums of probabilities."""
    n, total = float(counts.sum()), float(sums.sum())
    values = np.append(probability.to_numpy(float), total / n if n else 0.0)
    weights = np.append(np.ones(len(probability)), n)
    return calibration_error(values, np.append(truth.to_numpy(float), 0.0), weights)


# --- commands ----------------------------------------------------------------------------------------


def _in_processes(function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], jobs: int) -> Iterable[Any]:
    if jobs == 1:
        yield from (function(*task) for task in tasks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(function, *zip(*tasks, strict=True))


def run(families: Sequence[str], seeds: Iterable[int], jobs: int) -> None:
    """Score graphs of the families."""
    seeds, name = list(seeds), commit()
    for family in families:
        results = list(_in_processes(score, [(family, seed) for seed in seeds], jobs))
        rows = pd.DataFrame([row for row, _ in results]).assign(commit=name)[list(_SCORES)]
        _store("families.csv", rows, ["family", "seed", "method"])
        old = read("calibration.csv.gz")
        if len(old):  # all pairs of a graph are replaced, also those that are quiet now
            old = old[~((old["family"] == family) & old["seed"].isin(seeds))]
        table = pd.concat([part for part in (old, *(pairs for _, pairs in results)) if len(part)])
        table = table.sort_values(["family", "seed", "j", "k"]).round(3)
        kept: Any = {"method": "gzip", "mtime": 0}  # the same file for the same figures
        table.to_csv(STORED / "calibration.csv.gz", index=False, compression=kept)
        sums = rows[["claims", "right"]].sum()
        print(f"{family:12} F1 {rows['F1'].mean():.2f}", f"without directions {rows.iloc[:, 4].mean():.2f}", end=" ")
        print(f"claims {sums['claims']}, right {sums['right']},", f"{rows['seconds'].median():.1f} s", flush=True)


def _null(kind: str, missing: float, seed: int) -> dict[str, Any]:
    if kind in NULL_KINDS:
        frame = null_table(kind, missing, seed)
    else:
        table = next(table for table in real_tables() if Path(table["file"]).stem == kind)
        frame = shuffled_table(table, seed)
    found, hidden, seconds = found_in(frame)
    sure = int((found.edges & (found.joined > CLAIM)).sum())
    row = {"kind": kind, "missing": missing, "seed": seed, "columns": frame.shape[1], "edges": int(found.edges.sum())}
    return {**row, "sure": sure, "hidden": int(np.triu(hidden > CLAIM).sum()), "seconds": seconds}


def null(seeds: Iterable[int], jobs: int) -> None:
    """Count edges of tables of independent columns, and of real tables with shuffled columns (first seed only)."""
    seeds, name = list(seeds), commit()
    groups = {kind: [(kind, share, seed) for share in MISSING_SHARES for seed in seeds] for kind in NULL_KINDS}
    groups["real tables"] = [(Path(table["file"]).stem, 0.0, seeds[0]) for table in real_tables()]
    for group, tasks in groups.items():
        rows = pd.DataFrame(list(_in_processes(_null, tasks, jobs))).assign(commit=name)
        _store("null.csv", rows, ["kind", "missing", "seed"])
        print(f"{group:12} edges {rows['edges'].mean():.2f}, above {CLAIM}: {rows['sure'].mean():.2f}", flush=True)


def same_graphs(frame: pd.DataFrame, change: str, seed: int, n: int = 10) -> tuple[int, float]:
    """Count the tables with columns in another order, or in other units, that have the same graph.

    Also return the largest difference of a probability of an edge.
    """
    first, rng = found_in(frame)[0], np.random.default_rng(seed)
    same, apart = 0, 0.0
    for _ in range(n):
        at = rng.permutation(frame.shape[1]) if change == "order" else np.arange(frame.shape[1])
        table = frame.iloc[:, at].copy()
        for name in table.select_dtypes("number") if change == "units" else ():
            shift = 0.0 if (table[name] == 0).any() else rng.choice([0.0, 32.0])  # a zero stays a zero
            table[name] = rng.choice([0.4536, 1.8, 2.54, 12.0, 1000.0]) * table[name] + shift
        found, in_order = found_in(table)[0], np.ix_(at, at)
        same += bool(np.array_equal(found.edges, first.edges[in_order]))
        apart = max(apart, float(np.abs(found.joined - first.joined[in_order]).max()))
    return same, apart


def invariance(families: Sequence[str], seeds: Iterable[int], n: int = 10) -> None:
    """Compare the graphs of ten orders of the columns, and of columns in ten other units, with the first."""
    rows = []
    for family, seed, change in itertools.product(families, seeds, ("order", "units")):
        same, apart = same_graphs(draw(family, seed).frame, change, seed, n)
        row: dict[str, Any] = {"family": family, "seed": seed, "change": change, "tables": n, "same": same}
        rows.append({**row, "largest difference of a probability": apart, "commit": commit()})
        print(*rows[-1].values(), flush=True)
    _store("invariance.csv", pd.DataFrame(rows), ["family", "seed", "change"])


def stability(families: Sequence[str], seeds: Iterable[int], n: int = 5) -> None:
    """Count how often the arrows that claim both probabilities are found again in samples of 70 % of the rows."""
    rows = []
    for family, seed in itertools.product(families, seeds):
        table = Variables.of_frame(draw(family, seed).frame)
        n_nodes = len(table.columns)
        source = Source(table, ~np.eye(n_nodes, dtype=bool), np.zeros((n_nodes, n_nodes), bool), None, 0)
        found, again = source.discover(), source.arrows(0.7, n).mean(axis=0)
        claims = found.edges & (found.joined >= CLAIM) & (np.nan_to_num(found.direction) >= CLAIM)
        row: dict[str, Any] = {"family": family, "seed": seed, "samples": n, "claims": int(claims.sum())}
        rows.append({**row, "persist": float(again[claims].sum()), "commit": commit()})
        print(*rows[-1].values(), flush=True)
    _store("stability.csv", pd.DataFrame(rows), ["family", "seed"])


def _measure(n_columns: int) -> None:
    """Print the wall and processor seconds and the F1 of one sparse graph, in this process."""
    rng = np.random.default_rng([n_columns, 7])
    truth, order = _random_graph(n_columns, round(_EDGES_PER_COLUMN * n_columns), rng)
    values, _ = _simulate(truth, order, ["number"] * n_columns, 1000, "", None, rng)
    found_in(pd.DataFrame(values[:100, :3]))  # imports
    wall = time.perf_counter()
    found, _, seconds = found_in(pd.DataFrame(values))
    wall, empty = time.perf_counter() - wall, np.zeros_like(truth)
    f1 = graph_scores(
        found.edges.astype(float), Problem(pd.DataFrame(), truth, empty, ~np.eye(n_columns, dtype=bool), empty)
    )
    print(json.dumps({"seconds": wall, "processor seconds": seconds, "F1": f1["F1"]}))


def speed(columns: Sequence[int]) -> None:
    """Measure sparse graphs on one and two cores, each in a new process."""
    rows = []
    for n in columns:
        for cores in (1, 2):
            allowed = ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[:cores])
            threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), str(cores))
            command = ["taskset", "-c", allowed, sys.executable, "-m", "benchmarks.real_columns", "measure", str(n)]
            out = subprocess.run(command, env={**os.environ, **threads}, check=True, capture_output=True, text=True)
            rows.append({"columns": n, "cores": cores, **json.loads(out.stdout.splitlines()[-1]), "commit": commit()})
            print(*rows[-1].values(), flush=True)
    _store("speed.csv", pd.DataFrame(rows), ["columns", "cores"])


def values_for_peers(frame: pd.DataFrame) -> tuple[Values, Pairs]:
    """Return numbers, with codes for levels, of complete rows (with fewer than 200, means are filled in) and levels."""
    levels = np.array([kind == "category" for kind in frame.dtypes])
    codes = frame.apply(lambda column: column.cat.codes.where(column.notna()) if column.dtype == "category" else column)
    complete = codes.dropna()
    return (complete if len(complete) >= 200 else codes.fillna(codes.mean())).to_numpy(float), levels


def export(folder: Path, families: Sequence[str], seeds: Iterable[int]) -> None:
    """Write problems as files, for peers."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        for family in families:
            problem = draw(family, seed)
            values, levels = values_for_peers(problem.frame)
            np.savez(folder / f"{family}_{seed}.npz", truth=problem.truth, values=values, levels=levels)


def peer_edges(peer: str, weights: Values, values: Values) -> Values:
    """Return the edges of a peer, with halves for undirected ones; DirectLiNGAM leaves out effects below 0.05 sd."""
    if peer != "lingam":
        return np.minimum(weights, 1)
    spread = values.std(axis=0)
    return (weights * spread[:, None] / np.where(spread > 0, spread, 1) > 0.05).astype(float)


def collect(folder: Path) -> None:
    """Score the results of peers in the folder."""
    rows: list[dict[str, Any]] = []
    for file in sorted(folder.glob("*-*.npz")):
        peer, _, name = file.stem.partition("-")
        family, _, seed = name.rpartition("_")
        if family not in FAMILIES:
            continue
        result, problem = np.load(file), draw(family, int(seed))
        row = {"family": family, "seed": int(seed), "method": peer.removesuffix("_levels")}
        edges = peer_edges(peer, result["weights"], np.load(folder / f"{name}.npz")["values"])
        row |= graph_scores(edges, problem) | {"seconds": float(result["seconds"])}
        if "hidden" in result:
            said = np.triu(result["hidden"]) & problem.hidden_scored
            row |= {"hidden claims": int(said.sum()), "hidden right": int((said & problem.hidden).sum())}
        rows.append(row)
    keys = ["family", "seed", "method"]  # GES for levels replaces GES for numbers, where it was run
    _store("families.csv", pd.DataFrame(rows).reindex(columns=_SCORES).drop_duplicates(keys, keep="last"), keys)


def main(arguments: Sequence[str]) -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "command", choices=("run", "null", "invariance", "stability", "speed", "measure", "export", "collect", "table")
    )
    parser.add_argument("place", nargs="?", help="folder of problems for peers, or number of columns to measure")
    parser.add_argument("--family", nargs="+", choices=list(FAMILIES))
    parser.add_argument("--seeds", help="FIRST:END")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--columns", type=int, nargs="+", default=(10, 20, 40, 100))
    options = parser.parse_args(arguments)
    usual = {"export": "0:5", "invariance": "0:1", "stability": "0:2"}.get(options.command, "0:10")
    seeds = range(*map(int, (options.seeds or usual).split(":")))
    match options.command:
        case "run":
            run(options.family or list(FAMILIES), seeds, options.jobs)
        case "null":
            null(seeds, options.jobs)
        case "invariance":
            invariance(options.family or TABLE_FAMILIES, seeds)
        case "stability":
            stability(options.family or TABLE_FAMILIES, seeds)
        case "speed":
            speed(options.columns)
        case "measure":
            _measure(int(options.place))
        case "export":
            export(Path(options.place), options.family or TABLE_FAMILIES, seeds)
        case "collect":
            collect(Path(options.place))
        case _:
            print(by_family().to_string(index=False, float_format=lambda value: f"{value:.3f}"))


if __name__ == "__main__":
    main(sys.argv[1:])
