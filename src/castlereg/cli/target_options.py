"""Options of ``castlereg fit`` for the target: its loss, and the columns it rises or falls with."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

import typer

from castlereg.cli.console import stop

LossName = Annotated[
    str | None,
    typer.Option("--loss", help="squared (default), huber, poisson, or levels of quantiles such as 0.1,0.5,0.9."),
]
Rises = Annotated[
    list[str] | None, typer.Option("--rises", help="Column with which the prediction never falls; may be repeated.")
]
Falls = Annotated[
    list[str] | None, typer.Option("--falls", help="Column with which the prediction never rises; may be repeated.")
]


def target_options(loss: str | None, rises: list[str] | None, falls: list[str] | None) -> dict[str, Any]:
    """Return the options of estimators that are about the target, those that are given.

    >>> target_options("0.1,0.9", ["age"], ["dose"])
    {'loss': Quantiles(levels=(0.1, 0.9)), 'monotone': {'age': 1, 'dose': -1}}
    """
    options: dict[str, Any] = {}
    if loss is not None and loss != "squared":
        options["loss"] = _loss(loss)
    for name in {*(rises or ())} & {*(falls or ())}:
        stop(f"--rises {name} and --falls {name} contradict each other: give one of them")
    if rises or falls:
        options["monotone"] = dict.fromkeys(rises or (), 1) | dict.fromkeys(falls or (), -1)
    return options


def _loss(text: str) -> Any:
    from castlereg.losses import Quantiles
    from castlereg.target_losses import target_loss

    levels = None
    with suppress(ValueError):
        levels = tuple(float(part) for part in text.split(","))
    if levels is not None:
        return Quantiles(levels)
    target_loss(text)  # raises for a typo
    return text


def check_target_options(
    given: dict[str, Any], targets: list[str], task: str, search: str | None, time_limit: float | None
) -> str:
    """Stop for options that do not go with the task or the search; return the task, which a loss decides."""
    if "loss" in given and (len(targets) > 1 or task == "classification"):
        stop("--loss is for one --target of numbers: leave it out")
    named = "--loss" if "loss" in given else "--rises and --falls"
    if given and search in ("fast", "best"):
        stop(f"{named} and --search {search} do not go together: a pool has losses of its own; use --search paper")
    if given and time_limit is not None:
        stop(f"{named} and --time-limit do not go together: only pools have a time limit; leave it out")
    return "regression" if "loss" in given else task
