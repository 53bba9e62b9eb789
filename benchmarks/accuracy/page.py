"""Write the page on accuracy, docs/accuracy.md, and its figures from the table of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, studentized_range

from benchmarks.accuracy.cells import ADDED, COPY_CHANGED, COPY_NOISE, SOURCES
from benchmarks.accuracy.run import read
from benchmarks.marked_figures import DOCS, write_figures

CELL = ["table", "variant", "rows", "split"]
VARIANTS = {"plain": "original columns", "random": "with random columns", "copies": "with noisy copies"}
ROWS = {100: "100", 300: "300", 0: "all"}
NAMES = {
    "best": 'castlereg, `search="best"`',
    "fast": 'castlereg, `search="fast"`',
    "paper": 'castlereg, `search="paper"`',
    "best without causal terms": "the pool of `best` without causal terms",
    "plain network": "plain network, same search effort as `paper`",
    "linear": "elastic net, logistic regression",
    "random forest": "random forest",
    "boosting": "histogram boosting",
    "scikit-learn MLP": "scikit-learn's MLP",
    "CatBoost": "CatBoost",
    "RealMLP": "RealMLP, five folds",
    "TabM": "TabM",
}
RIVALS = ("linear", "random forest", "boosting", "scikit-learn MLP", "CatBoost", "RealMLP", "TabM")
ALL_METHODS = ["best", "fast", *(name for name in RIVALS if name != "TabM")]  # TabM was not run on all cells
COMMAND = "python -m benchmarks.accuracy page"
DETAIL = ("Boston", "bioconcentration", "wine", "retinopathy")


def by_method(results: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Return errors, one row per cell that all methods have and one column per method."""
    errors = results[results["method"].isin(methods)].pivot_table(index=CELL, columns="method", values="error")
    return errors.reindex(columns=list(methods)).dropna()


def relative(errors: pd.DataFrame) -> pd.Series:
    """Return the geometric mean of each method's error divided by the error of the best method in the cell."""
    return np.exp(np.log(errors.div(errors.min(axis=1), axis=0).clip(lower=1.0)).mean())


def critical_difference(n_methods: int, n_cells: int) -> float:
    """Return the difference of mean ranks that is significant at 5 % (Nemenyi's test)."""
    q = float(studentized_range.ppf(0.95, n_methods, np.inf)) / np.sqrt(2)
    return q * float(np.sqrt(n_methods * (n_methods + 1) / (6 * n_cells)))


def rank_table(errors: pd.DataFrame) -> pd.DataFrame:
    """Return mean ranks, overall and by version of the columns, and errors relative to the best method."""
    ranks = errors.rank(axis=1)
    variant = errors.index.get_level_values("variant")
    table = pd.DataFrame({"mean rank": ranks.mean()})
    for name, title in VARIANTS.items():
        table[title] = ranks[variant == name].mean()
    table["error / best error, mean"] = relative(errors)
    table["median"] = errors.div(errors.min(axis=1), axis=0).median()
    return table.sort_values("mean rank")


def rank_picture(errors: pd.DataFrame, path: Path) -> None:
    """Draw mean ranks with the critical difference."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    ranks = errors.rank(axis=1).mean().sort_values(ascending=False)
    difference = critical_difference(*errors.shape[::-1])
    figure, axes = plt.subplots(figsize=(7, 0.38 * len(ranks) + 1), layout="constrained")
    colours = ["#1f6fb2" if name in ("best", "fast", "paper") else "#9aa5b1" for name in ranks.index]
    axes.barh([_short(name) for name in ranks.index], ranks, color=colours, height=0.65)
    for y, value in enumerate(ranks):
        axes.text(value + 0.05, y, f"{value:.2f}", va="center", fontsize=8)
    best = float(ranks.min())
    axes.axvspan(best, best + difference, color="#1f6fb2", alpha=0.1, lw=0)
    axes.set_xlim(1, len(ranks))
    axes.set_xlabel(f"mean rank over {len(errors)} cells (1 is best); shaded: no significant difference", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def error_picture(errors: pd.DataFrame, path: Path) -> None:
    """Draw errors relative to the best method of each cell, by version of the columns."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    variant = errors.index.get_level_values("variant")
    excess = {title: 100 * (relative(errors[variant == name]) - 1) for name, title in VARIANTS.items()}
    frame = pd.DataFrame(excess)
    frame = frame.loc[frame.mean(axis=1).sort_values().index]
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    width = 0.8 / len(VARIANTS)
    for i, (title, colour) in enumerate(zip(frame, ("#9aa5b1", "#e0a458", "#1f6fb2"), strict=True)):
        axes.bar(np.arange(len(frame)) + (i - 1) * width, frame[title], width, label=title, color=colour)
    axes.set_xticks(np.arange(len(frame)), [_short(name) for name in frame.index], rotation=20, ha="right", fontsize=8)
    axes.set_ylabel("error above the best method, %")
    axes.set_ylim(0, min(80.0, 1.1 * float(frame.max().max())))  # one rival is far off the scale
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _short(name: str) -> str:
    return NAMES[name].replace("`", "").replace("castlereg, ", "")


def _markdown(frame: pd.DataFrame, digits: int = 2) -> str:
    head = ["", *map(str, frame.columns)]
    lines = [head, ["---"] * len(head)]
    lines += [[str(name), *(("" if pd.isna(v) else f"{v:.{digits}f}") for v in row)] for name, row in frame.iterrows()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _detail(results: pd.DataFrame) -> str:
    """Return mean errors of some tables with their original columns and all rows."""
    chosen = results[(results["variant"] == "plain") & (results["rows"] == 0) & results["table"].isin(DETAIL)]
    first = chosen[chosen["split"] == 0]
    table = first.pivot_table(index="method", columns="table", values="error").reindex(NAMES).dropna(how="all")
    return _markdown(table.rename(index=NAMES)[list(DETAIL)], 3)


def _by_rows(errors: pd.DataFrame) -> str:
    ranks, rows = errors.rank(axis=1), errors.index.get_level_values("rows")
    present = {n: f"{title} training rows ({int((rows == n).sum())} cells)" for n, title in ROWS.items() if n in rows}
    table = pd.DataFrame({title: ranks[rows == n].mean() for n, title in present.items()})
    return _markdown(table.loc[ranks.mean().sort_values().index].rename(index=NAMES))


def _by_table(errors: pd.DataFrame) -> str:
    means = np.exp(np.log(errors.clip(lower=1e-4)).groupby("table", sort=False).mean())
    return _markdown(means[errors.rank(axis=1).mean().sort_values().index].rename(columns=_short), 3)


def _settings(errors: pd.DataFrame) -> str:
    ranks = errors.rank(axis=1)
    chosen = errors.index.get_level_values("table").map(lambda name: SOURCES[name].settings)
    table = pd.DataFrame({"used to choose settings": ranks[chosen].mean(), "not used": ranks[~chosen].mean()})
    return _markdown(table.loc[ranks.mean().sort_values().index].rename(index=NAMES))


def _difference(errors: pd.DataFrame, method: str, other: str) -> str:
    """Return a sentence on the difference between the errors of two methods, by version of the columns."""
    parts = []
    for name, title in VARIANTS.items():
        cells = errors[errors.index.get_level_values("variant") == name]
        if len(cells) < 2:
            continue
        ratio = np.log(cells[method].clip(lower=1e-4) / cells[other].clip(lower=1e-4))
        spread = ratio.std(ddof=1) / np.sqrt(len(ratio))
        parts.append(f"{title} {100 * (np.exp(ratio.mean()) - 1):+.1f} % (± {100 * spread:.1f})")
    return "; ".join(parts)


def _seconds() -> str:
    """Return seconds of fits and predictions, and the ratios of their medians."""
    from benchmarks.accuracy.timing import RESULTS, TABLES

    if not RESULTS.exists():
        return ""
    table = pd.read_csv(RESULTS)
    parts = {
        "first fit, s": table.pivot_table(index="table", columns="method", values="seconds", sort=False),
        "again, s": table.pivot_table(index="table", columns="method", values="again", sort=False)[["fast", "best"]],
        "1,000 rows, ms": table.pivot_table(index="table", columns="method", values="predict_ms", sort=False),
    }
    columns = {f"{method}, {title}": frame[method] for title, frame in parts.items() for method in frame}
    frame = pd.DataFrame(columns)
    medians = frame.loc[[name for name in frame.index if name in TABLES]].median()
    frame.loc["median of the tables"] = medians
    ratios = {
        f"{ours}, {when}": medians[f"{ours}, {when}, s"] / medians[f"{rival}, first fit, s"]
        for ours, rival in (("fast", "CatBoost"), ("best", "RealMLP"))
        for when in ("first fit", "again")
    }
    return f"""## Seconds

Wall seconds on two cores, one method at a time (`python -m benchmarks.accuracy time`). The networks were trained on the
[native engine](kernels.md). The errors above come from JAX; the errors of these fits differ by at most about 1 %.
"Again" is a second fit in the same process. In the median over tables, the first fit of `fast` takes
{ratios["fast, first fit"]:.1f} times as long as CatBoost (again: {ratios["fast, again"]:.1f}), and the first fit of
`best` {ratios["best, first fit"]:.1f} times as long as five folds of RealMLP (again: {ratios["best, again"]:.1f}).

{_markdown(frame, 1)}
"""


def _coverage() -> str:
    from benchmarks.accuracy.coverage import RESULTS, ROWS

    if not RESULTS.exists():
        return ""
    table = pd.read_csv(RESULTS)
    lines = [
        f"{name} {100 * some['inside'].mean():.1f} % ({100 * some['inside'].min():.0f} to "
        f"{100 * some['inside'].max():.0f} % over {len(some)} splits)"
        for name, some in table.groupby("table", sort=False)
    ]
    return f"""## Intervals and class sets

Share of test rows inside the 90 % intervals, or with their class in the 90 % sets (`best`, {ROWS} training rows):
{"; ".join(lines)}.
"""


def readme_ranks() -> str:
    """Return mean ranks for the README."""
    errors = by_method(read(), ALL_METHODS)
    table = rank_table(errors)[["mean rank", *VARIANTS.values()]]
    n_tables = errors.index.get_level_values("table").nunique()
    return (
        f"{_markdown(table.rename(index=NAMES))}\n\nMean rank (1 is best) over {len(errors)} cells: {n_tables} tables, "
        "three versions, three sizes; defaults for all models. Cells of one table are not independent: over tables, "
        f"only differences above {critical_difference(len(errors.columns), n_tables):.1f} are significant."
    )


def _ranks_of_tables(errors: pd.DataFrame) -> str:
    """Rank methods once per table, because the cells of one table are not independent."""
    means = np.exp(np.log(errors.clip(lower=1e-4)).groupby("table", sort=False).mean())
    ranks = means.rank(axis=1).mean().sort_values()
    listed = ", ".join(f"{_short(str(name))} {rank:.2f}" for name, rank in ranks.items())
    return (
        "The cells of one table are not independent. Ranked once per table, by the geometric mean error over its "
        f"cells, the mean ranks over {len(means)} tables are: {listed}. Two of these differ significantly if their "
        f"difference is above {critical_difference(*means.shape[::-1]):.2f}."
    )


def page_text() -> str:
    """Return docs/accuracy.md."""
    results = read()
    with_tabm = by_method(results, [*ALL_METHODS, "TabM"])
    one = by_method(results, ALL_METHODS)
    several = by_method(results, [name for name in ALL_METHODS if name != "RealMLP"])  # slow rivals have one split
    without = by_method(results, ["best", "best without causal terms"])  # not all cells of the benchmark
    paper = by_method(results, ["fast", "best", "paper"])
    test = friedmanchisquare(*one.to_numpy().T)
    difference = critical_difference(len(one.columns), len(one))
    settings = ", ".join(name for name, source in SOURCES.items() if source.settings)
    others = ", ".join(name for name, source in SOURCES.items() if not source.settings)
    seconds = results.groupby("method")["seconds"].median()
    times = ", ".join(f"{_short(name)} {seconds[name]:.1f}" for name in NAMES if name in seconds)
    return f"""# Accuracy

Prediction errors of the searches of castlereg, compared with widely used models. The benchmark is
`python -m benchmarks.accuracy`; `python -m benchmarks.accuracy page` writes this page from
`benchmarks/accuracy/results.csv`.

**Cells.** {len(SOURCES)} tables, each in three versions: with its original columns, with {ADDED} additional random
columns per original column, and with {ADDED} noisy copies of each column (noise of {COPY_NOISE:g} standard
deviations; in text columns, {100 * COPY_CHANGED:.0f} % of the values are redrawn). Models are trained on
100, 300 and all training rows, and tested on a random fifth of the rows. The error is the mean
squared error in units of the target's variance, or 1 - AUROC.
**Rivals** use their default settings and the same rows. The settings of the pools were chosen on other splits of
{settings}; {others} were not used for this.

## Ranks

{len(one)} cells on which all methods were run, one split each. Friedman test: p = {test.pvalue:.1g}. Two mean ranks
differ significantly if their difference exceeds {difference:.2f}.

{_markdown(rank_table(one).rename(index=NAMES))}

{_ranks_of_tables(one)}

![Mean ranks](images/accuracy_ranks.png)

![Errors relative to the best method](images/accuracy_errors.png)

Mean ranks by number of training rows:

{_by_rows(one)}

Mean ranks on the tables that were used to choose settings, and on the others:

{_settings(one)}

All splits, without rivals that were run on only one split ({len(several)} cells of
{several.index.get_level_values("split").nunique()} splits; critical difference
{critical_difference(len(several.columns), len(several)):.2f}):

{_markdown(rank_table(several).rename(index=NAMES))}

With TabM, on the {len(with_tabm)} cells on which it was run:

{_markdown(rank_table(with_tabm).rename(index=NAMES))}

## What CASTLE adds

The same pool without the causal terms, only with sparse input layers, on {len(without)} cells. Error of `best`
relative to it: {_difference(without, "best", "best without causal terms")}.

## Comparison with the paper's search

On {len(paper)} cells, error of `fast` relative to `paper`: {_difference(paper, "fast", "paper")};
of `best` relative to `paper`: {_difference(paper, "best", "paper")}.

## Tables

Geometric mean errors over the cells of each table:

{_by_table(one)}

Four tables with their original columns and all rows, first split:

{_detail(results)}

Median processor seconds per cell, over all cores: {times}.

{_seconds()}
{_coverage()}"""


def write_page() -> None:
    """Write docs/accuracy.md, its pictures, and the ranks in the README."""
    errors = by_method(read(), ALL_METHODS)
    rank_picture(errors, DOCS / "images" / "accuracy_ranks.png")
    error_picture(errors, DOCS / "images" / "accuracy_errors.png")
    (DOCS / "accuracy.md").write_text(page_text(), encoding="utf-8")
    write_figures(DOCS.parent / "README.md", COMMAND, readme_ranks())
