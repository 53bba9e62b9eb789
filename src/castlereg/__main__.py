"""``castlereg`` and ``python -m castlereg``."""

from __future__ import annotations

import sys

from castlereg.signals import run


def main() -> None:
    """Run the command line, which needs the extra ``castlereg[cli]``."""
    run(_command_line)


def _command_line() -> None:
    try:
        from castlereg.cli import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f'the command line needs {error.name}: pip install "castlereg[cli]"')
    app(prog_name="castlereg")


if __name__ == "__main__":
    main()
