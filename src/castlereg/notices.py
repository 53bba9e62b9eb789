"""Warnings that point to the user's line of code, and the default of progress bars."""

from __future__ import annotations

import contextlib
import sys
import warnings
from pathlib import Path

_OURS = (str(Path(__file__).parent), contextlib.__file__)  # the latter runs our context managers


class FitWarning(UserWarning):
    """A reason to doubt a fit: few rows, a rare class, a grid that is too narrow, predictions without skill."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the first line outside of castlereg.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("column 'age' is constant")
    >>> str(caught[0].message)
    "column 'age' is constant"
    """
    level = 1
    frame = sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def shows_progress(verbose: bool | None) -> bool:
    """Return ``verbose``; None shows a progress bar only in a terminal or notebook."""
    return bool(sys.stderr.isatty() or "ipykernel" in sys.modules if verbose is None else verbose)
