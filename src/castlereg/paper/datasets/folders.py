"""Search path for tables: the folder in ``CASTLEREG_DATA``, then the user's data folder."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_data_path

VARIABLE = "CASTLEREG_DATA"


def data_folder() -> Path:
    """Return the user's data folder for castlereg, the default of the platform; downloads are saved there.

    Returns
    -------
    Path
        The folder may not exist yet.

    Examples
    --------
    >>> data_folder().name
    'castlereg'
    """
    return user_data_path("castlereg", appauthor=False)


def folders() -> dict[str, Path]:
    """Return the folders to search, in order, by their names in messages."""
    custom = os.environ.get(VARIABLE)
    first = {VARIABLE: Path(custom)} if custom else {}
    return {**first, "the user's data folder": data_folder()}
