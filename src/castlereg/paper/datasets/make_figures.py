"""Rewrite ``figures.json``: ``python -m castlereg.paper.datasets.make_figures FOLDER``, a folder with all tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from castlereg.paper.datasets.catalogue import all_files
from castlereg.paper.datasets.cells import read_cells
from castlereg.paper.datasets.verification import figures_of, to_json


def main(folder: Path, written: Path = Path(__file__).with_name("figures.json")) -> None:
    """Compute the figures of all tables of the catalogue."""
    figures = {file: to_json(figures_of(read_cells(folder / file))) for file in sorted(all_files())}
    lines = (f" {json.dumps(file)}: {json.dumps(content)}" for file, content in figures.items())
    written.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
