"""Options of ``castlereg fit`` for the target: its loss and monotone columns."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

import typer

from castlereg.cli.console import stop

LossName = Annotated[
    str | None,
    typer.Option("--loss", help="squared (default), huber, poisson, or quantile levels such as 0.1,0.5,0.9."),
]
Rises = Annotated[
    list[str] | None,
    typer.Option("--rises", help="Column whose increase never lowers the prediction; repeat for several."),
]
Falls = Annotated[
    list[str] | None,
    typer.Option("--falls", help="Column whose increase never raises the prediction; repeat for several."),
]


def target_options(loss: str | None, rises: list[str] | None, falls: list[str] | None) -> dict[str, Any]:
    """Return the target options of estimators that are set.

    >>> target_options("0.1,0.9", ["age"], ["dose"])
    {'loss': Quantiles(levels=(0.1, 0.9)), 'monotone': {'age': 1, 'dose': -1}}
    """
    options: dict[str, Any] = {}
    if loss is not None and loss != "squared":
        options["loss"] = _loss(loss)
    for name in {*(rises or ())} & {*(falls or ())}:
        stop(f"--rises {name} and --falls {name} contradict each other: drop one of them")
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
    """Stop if options cannot be combined with the task or the search; return the task, which a loss determines."""
    if "loss" in given and (len(targets) > 1 or task == "classification"):
        stop("--loss is for one numeric --target: drop it")
    named = "--loss" if "loss" in given else "--rises and --falls"
    if given and search in ("fast", "best"):
        stop(f"{named} cannot be combined with --search {search}: pools set their own losses; use --search paper")
    if given and time_limit is not None:
        stop(f"{named} cannot be combined with --time-limit, which is for --search fast and best: drop one of them")
    return "regression" if "loss" in given else task
