"""What people read: for each experiment a table in Markdown and CSV, the figure, and a page of them all."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from castlereg.atomic_write import atomic_write
from castlereg.markdown import markdown_table
from castlereg.paper.experiments.description import Experiment, Scale, Verdict
from castlereg.paper.experiments.runner import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "scikit-learn", "pandas", "optax")


def write_results(experiment: Experiment, outcome: Outcome, folder: Path) -> list[Path]:
    """Write the table and the figure of an experiment into its own folder.

    Parameters
    ----------
    experiment : Experiment
    outcome : Outcome
    folder : Path

    Returns
    -------
    list of Path
        What was written: ``table.csv``, ``table.md`` and, where matplotlib is there and there is something to draw,
        ``figure.png``.
    """
    own = folder / experiment.name
    own.mkdir(parents=True, exist_ok=True)
    table = experiment.summary(outcome.results)
    written = [own / "table.csv", own / "table.md"]
    _write(written[0], table.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    _write(written[1], section(experiment, outcome, level=1))
    figure = _drawn(experiment, outcome.results)
    if figure is not None:
        written.append(own / "figure.png")
        with atomic_write(written[-1]) as file:
            figure.savefig(file, dpi=110)
        figure.clear()
    return written


def section(experiment: Experiment, outcome: Outcome, *, level: int = 2, figure: str | None = None) -> str:
    """Write one experiment as a section of Markdown.

    Parameters
    ----------
    experiment : Experiment
    outcome : Outcome
    level : int
        Of the heading.
    figure : str, optional
        Where the picture is.

    Returns
    -------
    str
    """
    done = outcome.n_units - len(outcome.failed)
    parts = [f"{'#' * level} {experiment.title} ({experiment.shown_in})"]
    if not outcome.complete:
        parts.append(f"**{done} of {outcome.n_units} units done.** " + " ".join(outcome.messages))
    if outcome.scale == "quick":
        parts.append("At the quick scale, which shows that everything runs: the figures say nothing about the paper.")
    verdicts = _verdicts(experiment, outcome)
    if verdicts:
        parts.append(markdown_table(pd.DataFrame([vars(one) for one in verdicts])))
    if figure is not None:
        parts.append(f"![{experiment.title}]({figure})")
    if experiment.notes():
        parts.append(experiment.notes())
    parts.append(markdown_table(experiment.summary(outcome.results)))
    return "\n\n".join(parts) + "\n"


def write_page(
    path: Path, experiments: Sequence[Experiment], outcomes: dict[str, Outcome], scale: Scale, folder: Path
) -> None:
    """Write all experiments as one page, with copies of their figures beside it.

    Parameters
    ----------
    path : Path
    experiments : sequence of Experiment
    outcomes : dict of str to Outcome
    scale : str
    folder : Path
        Where :func:`write_results` put the figures.
    """
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
    experiments: Sequence[Experiment],
    outcomes: dict[str, Outcome],
    scale: Scale,
    figures: dict[str, str],
    *,
    made: str,
) -> str:
    """Write all experiments as one page.

    Parameters
    ----------
    experiments : sequence of Experiment
    outcomes : dict of str to Outcome
    scale : str
    figures : dict of str to str
        Where the pictures are, seen from the page, by experiment; not all have one.
    made : str
        A sentence on when and with what the results were made.

    Returns
    -------
    str
    """
    verdicts = [
        {
            "experiment": experiment.title,
            "in the paper": experiment.shown_in,
            "claim": one.claim,
            "verdict": one.judgement,
        }
        for experiment in experiments
        for one in _verdicts(experiment, outcomes[experiment.name])
    ]
    head = [
        "# The paper's results, run again",
        f"Every table and figure of the paper, and some beyond it, at the scale `{scale}` "
        "([what that means](experiments.md)). Each section has the reasons and figures for its verdicts.",
        *([markdown_table(pd.DataFrame(verdicts))] if verdicts else []),
        f"{made} Splits and draws count their seeds from 0.",
    ]
    sections = [
        section(experiment, outcomes[experiment.name], figure=figures.get(experiment.name))
        for experiment in experiments
    ]
    return "\n\n".join([*head, *sections])


def _verdicts(experiment: Experiment, outcome: Outcome) -> list[Verdict]:
    """Judge the claims, unless units are missing or the sizes only show that everything runs."""
    return experiment.verdicts(outcome.results) if outcome.complete and outcome.scale != "quick" else []


def machine() -> str:
    """Say what the results were had with."""
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
    with mpl.rc_context({"backend": "agg", "savefig.facecolor": "white"}):
        return experiment.draw(results)
