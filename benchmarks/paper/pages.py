"""Pages of the experiments' results: docs/results.md, the figures of docs/when_it_pays.md, and the rule of advice."""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.about import about_sentence
from benchmarks.marked_figures import DOCS, write_figures
from benchmarks.paper.files import RESULTS, SCALE, unpack
from castlereg.advising.rule import QUESTIONS
from castlereg.markdown import markdown_table
from castlereg.paper.experiments.pay_off import WHOLE, by_draw, check_of, rule_of
from castlereg.paper.experiments.registry import EXPERIMENTS
from castlereg.paper.experiments.results import page, write_results
from castlereg.paper.experiments.runner import Outcome, collected
from castlereg.paper.experiments.when_it_pays import CHECKED, LEARNED

PAGE = DOCS / "results.md"
PAYS = DOCS / "when_it_pays.md"
REPORT = DOCS / "technical_report.md"
IMAGES = DOCS / "images" / "results"
RULE = Path(__file__).parents[2] / "src" / "castlereg" / "advising" / "rule.json"
COMMAND = "python -m benchmarks.paper page"


@cache
def outcomes() -> dict[str, Outcome]:
    """Read the results of all experiments that have results."""
    with tempfile.TemporaryDirectory() as folder:
        unpack(Path(folder) / "units")
        found = collected(list(EXPERIMENTS.values()), SCALE, Path(folder))
    return {name: outcome for name, outcome in found.items() if len(outcome.results)}


def results_page() -> str:
    """Return docs/results.md."""
    shown = [EXPERIMENTS[name] for name in outcomes()]
    figures = {one.name: f"images/results/{one.name}.png" for one in shown if (IMAGES / f"{one.name}.png").exists()}
    return page(shown, outcomes(), SCALE, figures, made=about_sentence(RESULTS))


def verdict_table() -> str:
    """Return the paper's claims with their verdicts, and a count."""
    rows = [
        {"claim": verdict.claim, "in the paper": EXPERIMENTS[name].shown_in, "verdict": verdict.judgement}
        for name, outcome in outcomes().items()
        for verdict in EXPERIMENTS[name].verdicts(outcome.results)
        if verdict.judgement != "not in the paper"
    ]
    counts = Counter(row["verdict"] for row in rows).most_common()
    counted = ", ".join(f"{number} {verdict}" for verdict, number in counts)
    return f"{len(rows)} claims: {counted}.\n\n{markdown_table(pd.DataFrame(rows))}"


def rank_table() -> str:
    """Return the places of CASTLE and our searches among ten and twelve, with both initializations of the others."""
    column = "average rank over tables and splits"
    frame = EXPERIMENTS["real_ranks"].summary(outcomes()["real_ranks"].results)
    rows: list[dict[str, Any]] = []
    for (among, task), of_group in frame.groupby(["among", "task"], sort=False):
        others = of_group[~of_group["method"].str.startswith("CASTLE")].sort_values(column, ascending=False)
        ranks = of_group.set_index("method")
        rows += [
            {
                "initialization of the others": "small, as for CASTLE",
                "task": task,
                "of": among,
                "method": method,
                "average rank": f"{ranks.loc[method, column]:.2f}",
                "place": int(ranks.loc[method, "place"]),
                "best of the others": f"{others['method'].iloc[0]} {others[column].iloc[0]:.2f}",
            }
            for method in ranks.index[ranks.index.str.startswith("CASTLE")]
        ]
    usual = EXPERIMENTS["usual_start"].summary(outcomes()["usual_start"].results)
    for among, name in ((10, "rank of ten"), (12, "rank of twelve")):
        for task, of_task in usual.groupby("task", sort=False):
            means = of_task.dropna(subset=name).groupby("method")[name].mean().sort_values(ascending=False)
            others = means.drop("CASTLE")
            rows.append(
                {
                    "initialization of the others": "usual",
                    "task": task,
                    "of": among,
                    "method": "CASTLE",
                    "average rank": f"{means['CASTLE']:.2f}",
                    "place": 1 + int((others > means["CASTLE"]).sum()),
                    "best of the others": f"{others.index[0]} {others.iloc[0]:.2f}",
                }
            )
    return markdown_table(pd.DataFrame(rows))


def gain_table() -> str:
    """Return the median gain of CASTLE and its parts over the plain network, by rows and extra columns."""
    frame = by_draw(outcomes()["when_it_pays"].results)
    is_world = frame["source"] == "world"
    frame["data"] = np.where(is_world, "random graphs", "real tables")
    frame["rows"] = frame["n_rows"].map("{:,}".format).where(is_world | (frame["n_rows"] < 1000), "up to 1,000")
    parts = ["V", "R + V", "L + V", WHOLE]
    groups = frame.sort_values(["data", "extra", "n_rows"]).groupby(["data", "extra", "rows"], sort=False)
    table = groups[parts].median().round(1)
    table.insert(0, "cases", groups.size())
    return markdown_table(table.reset_index().rename(columns={"extra": "extra columns"}), digits=1)


def rule_table() -> str:
    """Return the rule of thumb as a table, and its performance on other tables."""
    content = rule()
    rows: list[dict[str, str]] = []

    def walk(node: dict[str, Any], answers: list[str]) -> None:
        if "question" not in node:
            gain = f"{node['typical']:.0f} % ({node['low']:.0f} to {node['high']:.0f})"
            rows.append({"a table with": "; ".join(answers), "gain": gain, "cases": str(node["cases"])})
            return
        above, below = (text.format(node["limit"]) for text in QUESTIONS[node["question"]])
        walk(node["below"], [*answers, below])
        walk(node["above"], [*answers, above])

    walk(content["rule"], [])
    check = content["check"]
    return (
        markdown_table(pd.DataFrame(rows))
        + f"\n\nOn {check['tables']:.0f} tables that were not used to learn the rule ({check['cases']:.0f} cases), "
        f"expected and measured gain have a rank correlation of {check['rank correlation']:.2f}; "
        f"{100 * check['inside the range']:.0f} % of the gains are within the 80 % range. The median gain is "
        f"{check['gain where more is expected']:.1f} % on tables with an expected gain above the median, and "
        f"{check['gain elsewhere']:.1f} % on the others."
    )


@cache
def rule() -> dict[str, Any]:
    """Learn the rule of advice on worlds and some tables, and check it on the others."""
    results = outcomes()["when_it_pays"].results
    learned = rule_of(results[results["source"].isin(["world", *LEARNED])])
    check = check_of(learned, results[results["source"].isin(CHECKED)])
    return {"made": about_sentence(RESULTS), "check": {k: round(v, 3) for k, v in check.items()}, "rule": learned}


def rule_text() -> str:
    """Return the file of the rule."""
    return json.dumps(rule(), indent=1) + "\n"


def gains_and_rule() -> str:
    """Return the figures of docs/when_it_pays.md."""
    return f"{about_sentence(RESULTS)}\n\n### Gains\n\n{gain_table()}\n\n### The rule of thumb\n\n{rule_table()}"


def verdicts_and_ranks() -> str:
    """Return the figures of docs/technical_report.md."""
    return (
        f"{about_sentence(RESULTS)}\n\n### Claims and verdicts\n\n{verdict_table()}\n\n"
        f"### Average ranks on real tables\n\n{rank_table()}"
    )


def pictures(folder: Path) -> dict[str, Path]:
    """Draw the figures of experiments into a folder."""
    drawn = {}
    for name, outcome in outcomes().items():
        for path in write_results(EXPERIMENTS[name], outcome, folder):
            if path.suffix == ".png":
                drawn[name] = path
    return drawn


def write() -> None:
    """Write pages, pictures and the rule, if no unit of any experiment is missing."""
    missing = [name for name in EXPERIMENTS if name not in outcomes() or not outcomes()[name].complete]
    if missing:
        sys.exit(f"units are missing of {', '.join(missing)}; run: python -m benchmarks.paper run {' '.join(missing)}")
    with tempfile.TemporaryDirectory() as folder:
        for name, path in pictures(Path(folder)).items():
            (IMAGES / f"{name}.png").write_bytes(path.read_bytes())
    PAGE.write_text(results_page(), encoding="utf-8")
    write_figures(PAYS, COMMAND, gains_and_rule())
    write_figures(REPORT, COMMAND, verdicts_and_ranks())
    RULE.write_text(rule_text(), encoding="utf-8")
