"""Date, environment and command of measured figures: a small file next to them, and a sentence for pages."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from castlereg_paper.pages import machine

NAME = "about.json"


def write_about(folder: Path, command: str) -> None:
    """Write the date, versions, machine and command of new figures to their folder."""
    about = {"date": datetime.now(UTC).date().isoformat(), "machine": machine().rstrip("."), "command": command}
    (folder / NAME).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def about_sentence(folder: Path) -> str:
    """Return a sentence on the date, the environment and the command of the figures in a folder."""
    about = json.loads((folder / NAME).read_text(encoding="utf-8"))
    return f"Measured on {about['date']} by `{about['command']}` with {about['machine']}."
