"""Runs of the command line in this process."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner

from castlereg.cli import app


def run(*arguments: Any, stdin: str | None = None) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def done(*arguments: Any, stdin: str | None = None) -> Any:
    """Run a command that succeeds."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result


def check_rejected(message: str, *arguments: Any) -> None:
    """Run a command that ends with exit code 2 and one line, which contains the message; notes may precede it."""
    result = run(*arguments)
    lines = [line for line in result.stderr.splitlines() if not line.startswith("castlereg: note: ")]
    assert result.exit_code == 2, result.output
    assert len(lines) == 1 and lines[0].startswith("castlereg: ") and message in lines[0], result.stderr
