"""``castlereg`` and ``python -m castlereg``."""

from __future__ import annotations

import signal
import sys
from typing import Any, NoReturn


def main() -> None:
    """Run the command line, which is an extra."""
    signal.signal(signal.SIGTERM, _end)
    try:
        from castlereg.cli import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f'the command line needs {error.name}: pip install "castlereg[cli]"')
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    app(prog_name="castlereg")


def _end(number: int, _: Any) -> NoReturn:
    """Leave as after an error, so that unfinished files are removed."""
    print("castlereg: terminated", file=sys.stderr)
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
