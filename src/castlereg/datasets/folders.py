"""Where tables are looked for: the folder in ``CASTLEREG_DATA``, then the user's data folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "CASTLEREG_DATA"


def data_folder() -> Path:
    """Return the user's data folder for castlereg, by the custom of the platform; downloads are kept there.

    Returns
    -------
    Path
        Which need not exist.

    Examples
    --------
    >>> data_folder().name
    'castlereg'
    """
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "castlereg"


def folders() -> dict[str, Path]:
    """Return the folders to look in, in order, by what they are called in messages."""
    own = os.environ.get(VARIABLE)
    first = {VARIABLE: Path(own)} if own else {}
    return {**first, "the user's data folder": data_folder()}
