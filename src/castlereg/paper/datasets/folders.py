"""Where tables are looked for: the folder in ``CASTLEREG_DATA``, then the user's data folder."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_data_path

VARIABLE = "CASTLEREG_DATA"


def data_folder() -> Path:
    """Return the user's data folder for castlereg, where its platform keeps such data; downloads go there.

    Returns
    -------
    Path
        It need not exist.

    Examples
    --------
    >>> data_folder().name
    'castlereg'
    """
    return user_data_path("castlereg", appauthor=False)


def folders() -> dict[str, Path]:
    """Return the folders to look in, in order, by what they are called in messages."""
    own = os.environ.get(VARIABLE)
    first = {VARIABLE: Path(own)} if own else {}
    return {**first, "the user's data folder": data_folder()}
