"""Timings as files, one per benchmark; the page on speed is written from them."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pandas as pd

from benchmarks.about import about_sentence, write_about
from benchmarks.marked_figures import DOCS, write_figures
from castlereg_paper.markdown import markdown_table

RESULTS = Path(__file__).with_name("timings")
COMMAND = "python -m benchmarks"
SHOWN = (
    "startup",
    "prediction",
    "growth",
    "four_hundred",
    "wide_tables",
    "long_tables",
    "sampled_quality",
)


def record(name: str, table: pd.DataFrame) -> None:
    """Store the table of a benchmark, with the date, the versions and the machine, and write the page."""
    if name in SHOWN:
        folder = RESULTS / name
        folder.mkdir(parents=True, exist_ok=True)
        table.to_json(folder / "table.json", orient="split", index=False, double_precision=6)
        write_about(folder, f"{COMMAND} {name}")
        write_figures(DOCS / "speed.md", COMMAND, figures())


def figures() -> str:
    """Return the tables of the page on speed."""
    return "\n\n".join(_section(name) for name in SHOWN if (RESULTS / name / "table.json").exists())


def _section(name: str) -> str:
    title = str(importlib.import_module(f"benchmarks.{name}").__doc__).splitlines()[0].rstrip(".")
    stored = json.loads((RESULTS / name / "table.json").read_text("utf-8"))
    table = pd.DataFrame(stored["data"], columns=stored["columns"])
    for column in table.select_dtypes("float"):
        table[column] = [f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}" for value in table[column]]
    picture = "![Seconds per epoch and peak memory](images/growth.png)\n\n" if name == "growth" else ""
    return f"### {title}\n\n{picture}{markdown_table(table)}\n\n{about_sentence(RESULTS / name)}"
