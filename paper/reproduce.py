"""Run the paper's experiments, or write pages from their results.

``python -m paper.reproduce run [NAME ...] [--units FOLDER] [--jobs N]``
    Run the missing units of some or all experiments, and write the files in ``paper/results``: one per experiment with
    a line per unit. Units that are in the files are not run again.
``python -m paper.reproduce page``
    Write the figures and the map of docs/when_it_pays.md, the rule of ``castlereg_paper.advice``, and docs/results.md
    with its figures, once all experiments are complete.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.about import about_sentence, write_about
from benchmarks.marked_figures import DOCS, write_figures

from castlereg.atomic_write import atomic_write
from castlereg_paper.advising import QUESTIONS
from castlereg_paper.experiments import EXPERIMENTS, experiment_named
from castlereg_paper.experiments.beyond import CHECKED, LEARNED, WHOLE, by_draw, check_of, rule_of
from castlereg_paper.framework import Done, Experiment, Outcome, Results, Scale, collected, item_key, run
from castlereg_paper.markdown import markdown_table
from castlereg_paper.pages import page, write_results

RESULTS = Path(__file__).with_name("results")
SCALE: Scale = "standard"
PAGE = DOCS / "results.md"
PAYS = DOCS / "when_it_pays.md"
REPORT = DOCS / "technical_report.md"
IMAGES = DOCS / "images" / "results"
RULE = Path(__file__).with_name("src") / "castlereg_paper" / "rule.json"
COMMAND = "python -m paper.reproduce page"


# --- results as files: the records of a unit are stored column by column, in a third of the space, with nine digits ---


def pack(experiments: Iterable[Experiment], units: Path, results: Path = RESULTS) -> None:
    """Write the results in a folder of units to one file per experiment."""
    store = Results(units)
    results.mkdir(parents=True, exist_ok=True)
    for experiment in experiments:
        items = [experiment.item(unit) for unit in experiment.units(SCALE)]
        finished = store.read([item_key(item) for item in items])
        if finished:
            lines = [_line(done) for done in finished.values()]
            with atomic_write(results / f"{experiment.name}.jsonl") as file:
                file.write(("\n".join(lines) + "\n").encode())


def unpack(units: Path, results: Path = RESULTS) -> None:
    """Write packed results to a folder of units, so a run continues with the missing units."""
    store = Results(units)
    for path in sorted(results.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            content = json.loads(line)
            columns = content["records"]
            shared = {name: value for name, value in columns.items() if not isinstance(value, list)}
            lists = {name: value for name, value in columns.items() if isinstance(value, list)}
            records = [
                {name: lists[name][i] if name in lists else shared[name] for name in columns}
                for i in range(content["n"])
            ]
            store.write(Done(content["item"], records, content["seconds"]))


def _line(done: Done) -> str:
    records: list[dict[str, Any]] = done.result
    columns = {name: [_short(record[name]) for record in records] for name in records[0]}
    short = {name: values[0] if len(set(map(repr, values))) == 1 else values for name, values in columns.items()}
    content = {"item": done.item, "seconds": round(done.seconds, 1), "n": len(records), "records": short}
    return json.dumps(content, separators=(",", ":"))


def _short(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value


# --- pages ---


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
        sys.exit(f"units are missing of {', '.join(missing)}; run: python -m paper.reproduce run {' '.join(missing)}")
    with tempfile.TemporaryDirectory() as folder:
        for name, path in pictures(Path(folder)).items():
            (IMAGES / f"{name}.png").write_bytes(path.read_bytes())
    PAGE.write_text(results_page(), encoding="utf-8")
    write_figures(PAYS, COMMAND, gains_and_rule())
    write_figures(REPORT, COMMAND, verdicts_and_ranks())
    RULE.write_text(rule_text(), encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser("python -m paper.reproduce")
    parser.add_argument("action", choices=["run", "page"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--units", type=Path, help="Folder of units; by default a new one.")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args(arguments)
    if given.action == "page":
        write()
        return
    chosen = [experiment_named(name) for name in given.names] or list(EXPERIMENTS.values())
    with tempfile.TemporaryDirectory() as folder:
        output = given.units or Path(folder)
        unpack(output / "units")
        try:
            run(chosen, SCALE, output, jobs=given.jobs)
        finally:
            pack(chosen, output / "units")
    write_about(RESULTS, "python -m paper.reproduce run")


if __name__ == "__main__":
    main(sys.argv[1:])
