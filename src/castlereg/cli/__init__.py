"""The command line: thin wrappers around public functions."""

from castlereg.cli.app import app

__all__ = ["app"]
