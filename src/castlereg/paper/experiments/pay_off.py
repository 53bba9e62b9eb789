"""Analysis of the experiment ``when_it_pays``: gains, a map of the gains, and a rule of thumb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeRegressor

from castlereg.advising.facts import TableFacts
from castlereg.advising.rule import QUESTIONS, expected_gain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLAIN: Final = "plain"
WHOLE: Final = "L + R + V"
CELL: Final = ["source", "function", "noise", "n_columns", "n_rows", "extra"]
_FACTS: Final = ["rows", "columns", "redundancy", "unrelated", "linear", "flexible"]
_LEAVES, _SMALLEST_LEAF = 6, 0.08  # of the rule; the smallest leaf as a share of the cases


def by_draw(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row per drawn table: its cell, its facts, and the gain of each part over the plain network, in %."""
    cells = [name for name in CELL if name in results]
    index = [*cells, "draw", *_FACTS]
    table = results.groupby(index, sort=False, dropna=False).ngroup().rename("table")
    errors = results.assign(table=table).pivot(index="table", columns="part", values="error").dropna(how="any")
    gain = 100 * (1 - errors.drop(columns=PLAIN).div(errors[PLAIN], axis=0))
    return results[index].groupby(table).first().join(gain, how="inner").reset_index(drop=True)


def gains(results: pd.DataFrame) -> pd.DataFrame:
    """Return the mean gain and its standard error over draws for each cell, and the part with the largest gain."""
    frame = by_draw(results)
    parts = [name for name in ("V", "R + V", "L + V", WHOLE) if name in frame]
    groups = frame.groupby([name for name in CELL if name in frame], sort=False, dropna=False)
    table = groups[parts].mean()
    table["standard error"] = groups[WHOLE].std() / np.sqrt(groups.size())
    table.insert(0, "draws", groups.size())
    table["best"] = table[parts].idxmax(axis=1)
    return table.reset_index()


def gain_map(results: pd.DataFrame) -> Figure:
    """Draw the gain of CASTLE, and below it the gain of the causal terms over sparsity: rows against extra columns."""
    import matplotlib.pyplot as plt

    frame = by_draw(results)
    frame["causal terms"] = frame[WHOLE] - frame["V"]
    frame["panel"] = np.where(frame["source"] == "world", _world_labels(frame), frame["source"])
    panels = list(dict.fromkeys(frame["panel"]))
    limit = 20
    columns = min(7, len(panels))
    height = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        2 * height, columns, figsize=(1.75 * columns + 0.9, 3.4 * height + 0.8), layout="constrained", squeeze=False
    )
    for ax in axes.flat:
        ax.set_axis_off()
    for k, value in enumerate((WHOLE, "causal terms")):
        for position, panel in enumerate(panels):
            ax = axes[k * height + position // columns, position % columns]
            ax.set_axis_on()
            means = frame[frame["panel"] == panel].pivot_table(
                index="extra", columns="n_rows", values=value, aggfunc="mean", sort=False
            )
            means = means[sorted(means.columns)]
            image = ax.imshow(means, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
            for (i, j), gain in np.ndenumerate(means.to_numpy()):
                colour = "white" if abs(gain) > 0.6 * limit else "black"
                ax.text(j, i, f"{round(gain)}", ha="center", va="center", fontsize=7, color=colour)
            is_table = panel in set(frame["source"])  # which may have fewer rows than the largest size
            sizes = [f"up to {rows}" if is_table and rows >= 1000 else str(rows) for rows in means.columns]
            ax.set_xticks(range(means.shape[1]), sizes, fontsize=6)
            labels = list(means.index) if position % columns == 0 else [""] * len(means)
            ax.set_yticks(range(means.shape[0]), labels, fontsize=7)
            ax.set_title(panel, fontsize=7)
            ax.tick_params(length=0)
    figure.colorbar(image, ax=axes, shrink=0.5, label="%", fraction=0.02)
    figure.suptitle(
        f"Upper {height} rows: error of CASTLE below the plain network, %. "
        f"Lower {height}: gain of acyclicity and reconstruction over sparsity, %. Horizontal axis: training rows.",
        fontsize=9,
    )
    return figure


def _world_labels(frame: pd.DataFrame) -> pd.Series:
    if "function" not in frame:
        return frame["source"]
    columns = frame["n_columns"].fillna(0).astype(int).astype(str)
    return frame["function"].astype(str) + ", " + columns + " columns,\nnoise " + frame["noise"].astype(str)


def rule_of(results: pd.DataFrame) -> dict[str, Any]:
    """Learn a small regression tree, whose questions separate tables with large gains from those with small gains."""
    frame = by_draw(results)
    facts = _question_table(frame)
    gain = frame[WHOLE].to_numpy()
    tree = DecisionTreeRegressor(
        criterion="absolute_error", max_leaf_nodes=_LEAVES, min_samples_leaf=_SMALLEST_LEAF, random_state=0
    ).fit(facts, gain)
    leaf_of = tree.apply(facts)

    def node(number: int) -> dict[str, Any]:
        if tree.tree_.children_left[number] < 0:
            low, typical, high = np.quantile(gain[leaf_of == number], [0.1, 0.5, 0.9])
            cases = int((leaf_of == number).sum())
            return {"typical": round(typical, 1), "low": round(low, 1), "high": round(high, 1), "cases": cases}
        question = facts.columns[tree.tree_.feature[number]]
        return {
            "question": question,
            "limit": float(f"{tree.tree_.threshold[number]:.3g}"),
            "below": node(tree.tree_.children_left[number]),
            "above": node(tree.tree_.children_right[number]),
        }

    return node(0)


def _question_table(frame: pd.DataFrame) -> pd.DataFrame:
    facts = [TableFacts(**{name: row[name] for name in _FACTS}) for row in frame.to_dict(orient="records")]
    return pd.DataFrame([{name: getattr(of_table, name) for name in QUESTIONS} for of_table in facts])


def check_of(rule: dict[str, Any], results: pd.DataFrame) -> dict[str, float]:
    """Compare a rule with the gains on tables that were not used to learn it."""
    frame = by_draw(results)
    records = frame.to_dict(orient="records")
    expected = [expected_gain(TableFacts(**{name: row[name] for name in _FACTS}), rule) for row in records]
    gain, typical = frame[WHOLE].to_numpy(), np.array([of_table.typical for of_table in expected])
    inside = [of_table.low <= value <= of_table.high for of_table, value in zip(expected, gain, strict=True)]
    promising = typical > np.median(typical)
    return {
        "tables": float(frame["source"].nunique()),
        "cases": float(len(gain)),
        "rank correlation": float(pd.Series(typical).corr(pd.Series(gain), method="spearman")),
        "inside the range": float(np.mean(inside)),
        "gain where more is expected": float(np.median(gain[promising])) if promising.any() else float("nan"),
        "gain elsewhere": float(np.median(gain[~promising])) if (~promising).any() else float("nan"),
    }


def rule_on_others(rule: dict[str, Any], results: pd.DataFrame) -> str:
    """Return a sentence on the performance of a rule on other tables."""
    if results.empty:
        return "no results on other tables"
    check = check_of(rule, results)
    return (
        f"on {check['tables']:.0f} tables that were not used to learn the rule ({check['cases']:.0f} cases): rank "
        f"correlation of expected and measured gain {check['rank correlation']:.2f}; "
        f"{100 * check['inside the range']:.0f} % of the gains are within the 80 % range; median gain "
        f"{check['gain where more is expected']:.1f} % on tables with an expected gain above the median, "
        f"{check['gain elsewhere']:.1f} % on the others"
    )
