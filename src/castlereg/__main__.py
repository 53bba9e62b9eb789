"""``castlereg`` and ``python -m castlereg``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, which is an extra."""
    try:
        from castlereg.cli import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f'the command line needs {error.name}: pip install "castlereg[cli]"')
    app()


if __name__ == "__main__":
    main()
