"""Options of a network in one flat dict of numbers and strings, for the searches of other packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from castlereg.estimators.recipe import Recipe
from castlereg.regularizers import Dropout

_BY_ROWS = ((2000, 32, 0.001, 200), (20_000, 128, 0.002, 100), (float("inf"), 256, 0.003, 50))  # up to this many rows
_OF_RECIPE = {field.name for field in fields(Recipe)}


def usual_options(n_rows: int) -> dict[str, Any]:
    """Return flat options that are safe for tables of this many rows: two layers of 32 units, trained as in the paper.

    Embeddings and more units help on some tables and harm on others, so they are left to a search.

    Parameters
    ----------
    n_rows : int
        Long tables get larger batches and fewer epochs.

    Examples
    --------
    >>> usual_options(500)
    {'width': 32, 'batch_size': 32, 'learning_rate': 0.001, 'max_epochs': 200}
    """
    batch_size, learning_rate, epochs = next(options for most, *options in _BY_ROWS if n_rows <= most)
    return {"width": 32, "batch_size": batch_size, "learning_rate": learning_rate, "max_epochs": epochs}


def estimator_options(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Sort flat options into those of :class:`castlereg.CastleRegressor` and :class:`castlereg.CastleClassifier`.

    Parameters
    ----------
    flat : dict
        Options of the estimator; details of training, which become a :class:`castlereg.Recipe`; ``width`` and
        ``depth`` (2 by default) of the hidden layers; and the rate of ``dropout``.

    Examples
    --------
    >>> options = estimator_options({"reg_beta": 0.1, "width": 32, "schedule": "cosine", "dropout": 0.2})
    >>> options["hidden_layer_sizes"], options["regularizers"], options["recipe"].schedule
    ((32, 32), (Dropout(rate=0.2),), 'cosine')
    """
    options = {name: value for name, value in flat.items() if name not in _OF_RECIPE}
    recipe = {name: value for name, value in flat.items() if name in _OF_RECIPE}
    width, depth, dropout = options.pop("width", None), options.pop("depth", None), options.pop("dropout", 0)
    if width is not None:
        options["hidden_layer_sizes"] = (int(width),) * int(2 if depth is None else depth)
    elif depth is not None:
        raise ValueError(f"depth={depth!r} needs width, the number of units in each hidden layer; pass both")
    if dropout:
        options["regularizers"] = (*options.get("regularizers", ()), Dropout(dropout))
    return {**options, "recipe": Recipe(**recipe)} if recipe else options
