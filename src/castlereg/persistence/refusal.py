"""The one error of a model file."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A file that is no whole model: the message names the path, the reason and what to do."""


class Unreadable(Exception):
    """Why content is refused, before the path is known.

    Parameters
    ----------
    reason : str
    advice : str
        What to do about it.
    """

    def __init__(self, reason: str, advice: str = "get or save the file anew, it is not as castlereg.save wrote it"):
        super().__init__(reason)
        self.reason, self.advice = reason, advice
