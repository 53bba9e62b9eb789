"""The error of a model file."""

from __future__ import annotations

# How Python, NumPy and constructors reject content that is of the right type and yet impossible.
DOES_NOT_FIT = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError)


class ModelFileError(ValueError):
    """A file that is not a whole model: the message names the path, the reason and what to do."""


class Unreadable(Exception):
    """Why content is rejected and what to do about it, raised where the path is not known."""

    def __init__(self, reason: str, advice: str = "get the file again or save the model again"):
        super().__init__(reason)
        self.reason, self.advice = reason, advice
