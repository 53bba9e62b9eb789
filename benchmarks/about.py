"""When, with what and by which command figures were measured: a small file beside them, and a sentence for pages."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from castlereg.paper.experiments.results import machine

NAME = "about.json"


def write_about(folder: Path, command: str) -> None:
    """Write the date, version, machine and command of figures that were just measured into their folder."""
    about = {"date": datetime.now(UTC).date().isoformat(), "machine": machine().rstrip("."), "command": command}
    (folder / NAME).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def about_sentence(folder: Path) -> str:
    """Say when, with what and by which command the figures of a folder were measured."""
    about = json.loads((folder / NAME).read_text(encoding="utf-8"))
    return f"Measured on {about['date']} by `{about['command']}` with {about['machine']}."
