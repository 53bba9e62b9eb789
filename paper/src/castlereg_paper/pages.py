"""Readable results: a table in Markdown and CSV and a figure per experiment, and one page on all experiments."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from castlereg.atomic_write import atomic_write
from castlereg_paper.framework import Experiment, Outcome, Scale, Verdict
from castlereg_paper.markdown import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "scikit-learn", "pandas", "optax")


def write_results(experiment: Experiment, outcome: Outcome, folder: Path) -> list[Path]:
    """Write the table and the figure of an experiment to its own folder."""
    subfolder = folder / experiment.name
    subfolder.mkdir(parents=True, exist_ok=True)
    table = experiment.summary(outcome.results)
    written = [subfolder / "table.csv", subfolder / "table.md"]
    _write(written[0], table.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    _write(written[1], section(experiment, outcome, level=1))
    figure = _drawn(experiment, outcome.results)
    if figure is not None:
        written.append(subfolder / "figure.png")
        with atomic_write(written[-1]) as file:
            figure.savefig(file, dpi=110)
        figure.clear()
    return written


def section(experiment: Experiment, outcome: Outcome, *, level: int = 2, figure: str | None = None) -> str:
    """Return one experiment as a section of Markdown."""
    done = outcome.n_units - len(outcome.failed)
    parts = [f"{'#' * level} {experiment.title} ({experiment.shown_in})"]
    if not outcome.complete:
        parts.append(f"**{done} of {outcome.n_units} units done.** " + " ".join(outcome.messages))
    if outcome.scale == "quick":
        parts.append("The quick scale only checks that everything runs: the figures are not comparable with the paper.")
    verdicts = _verdicts(experiment, outcome)
    if verdicts:
        parts.append(markdown_table(pd.DataFrame([vars(verdict) for verdict in verdicts])))
    if figure is not None:
        parts.append(f"![{experiment.title}]({figure})")
    if experiment.explanation:
        parts.append(experiment.explanation)
    parts.append(markdown_table(experiment.summary(outcome.results)))
    return "\n\n".join(parts) + "\n"


def write_page(
    path: Path, experiments: Sequence[Experiment], outcomes: dict[str, Outcome], scale: Scale, folder: Path
) -> None:
    """Write all experiments to one page, with copies of their figures next to it."""
    copies = path.parent / "images" / "results"
    copies.mkdir(parents=True, exist_ok=True)
    copied = {}
    for experiment in experiments:
        figure = folder / experiment.name / "figure.png"
        if figure.exists():
            _write(copies / f"{experiment.name}.png", figure.read_bytes())
            copied[experiment.name] = f"images/results/{experiment.name}.png"
    made = f"{machine()} {datetime.now(UTC).date().isoformat()}."
    _write(path, page(experiments, outcomes, scale, copied, made=made))


def page(
    experiments: Sequence[Experiment], outcomes: dict[str, Outcome], scale: Scale, figures: dict[str, str], *, made: str
) -> str:
    """Return all experiments as one page."""
    verdicts = [
        {
            "experiment": experiment.title,
            "in the paper": experiment.shown_in,
            "claim": verdict.claim,
            "verdict": verdict.judgement,
        }
        for experiment in experiments
        for verdict in _verdicts(experiment, outcomes[experiment.name])
    ]
    head = [
        "# Reproduction of the paper's results",
        "Every table and figure of the paper, and some experiments beyond it, at the [scale](experiments.md) "
        f"`{scale}`. Each section has the reasons and figures for its verdicts.",
        *([markdown_table(pd.DataFrame(verdicts))] if verdicts else []),
        f"{made} The seeds of splits and draws count from 0.",
    ]
    sections = [
        section(experiment, outcomes[experiment.name], figure=figures.get(experiment.name))
        for experiment in experiments
    ]
    return "\n\n".join([*head, *sections])


def _verdicts(experiment: Experiment, outcome: Outcome) -> list[Verdict]:
    """Judge the claims, unless units are missing or the scale is quick, which only checks that everything runs."""
    return experiment.verdicts(outcome.results) if outcome.complete and outcome.scale != "quick" else []


def machine() -> str:
    """Describe the versions and the machine of the results."""
    from castlereg import __version__

    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return (
        f"castlereg {__version__}, Python {platform.python_version()}, {packages}; {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores."
    )


def _write(path: Path, content: str | bytes) -> None:
    with atomic_write(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def _drawn(experiment: Experiment, results: pd.DataFrame) -> Figure | None:
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        return None
    style: dict[Any, Any] = {
        "backend": "agg",
        "savefig.facecolor": "white",
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with mpl.rc_context(style):
        return experiment.draw(results)
