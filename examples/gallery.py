"""Run the gallery and write its page, ``docs/gallery.md``, with the output and the figures of every example.

``make docs`` runs it. An example whose table is missing keeps the section and the figures of its last run.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
from tqdm import tqdm

import diabetes
from castlereg import CastleRegressor

EXAMPLES = ("healthcare", "housing", "marketing", "noisy_columns", "knowledge", "what_if", "own_loop")
DOCS = Path(__file__).resolve().parents[1] / "docs"

_OPENING = """---
hide: [navigation]
---

# Gallery

Seven examples, each a standalone script: `python examples/housing.py` prints the output shown here and saves its
figures to the folder `demo`. [Datasets](datasets.md) explains where some of the tables come from; an example whose
table is missing prints a message. `make docs` runs all examples and rewrites this page.
"""


def main(page: Path = DOCS / "gallery.md", pictures: Path = DOCS / "images" / "gallery") -> None:
    """Run all examples and write the page."""
    known = sections(page.read_text(encoding="utf-8")) if page.exists() else {}
    for name in tqdm(EXAMPLES, desc="gallery", disable=None):
        module = importlib.import_module(name)
        printed = io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            with contextlib.redirect_stdout(printed):
                drawn = module.main(Path(folder))
            if "CASTLEREG_DATA" in printed.getvalue():  # the message for a missing table
                print(f"{name}: its section stays unchanged. {printed.getvalue()}", file=sys.stderr)
                continue
            pictures.mkdir(parents=True, exist_ok=True)
            for path in drawn:
                shutil.copy(path, pictures)
        known[name] = section(module, printed.getvalue(), drawn)
    text = "\n".join([_OPENING, *(f"<!-- {name} -->\n{known[name]}" for name in EXAMPLES if name in known)])
    page.write_text(text, encoding="utf-8")
    model = CastleRegressor(constraints=diabetes.KNOWN, max_epochs=1, random_state=0).fit(*diabetes.table())
    diabetes.save(model.graph_.plot(max_edges=14), pictures.parent / "diabetes_graph.png")


def sections(text: str) -> dict[str, str]:
    """Split the page into the sections of its examples."""
    parts = re.split(r"^<!-- (\w+) -->\n", text, flags=re.MULTILINE)
    return {name: body.rstrip("\n") + "\n" for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def section(module: ModuleType, printed: str, drawn: list[Path]) -> str:
    """Return the section of an example: description, figures, output and main function."""
    images = "\n\n".join(f"![{path.stem.replace('_', ' ')}](images/gallery/{path.name})" for path in drawn)
    printed = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    return f"{opening(module)}\n\n{images}\n\n```text\n{printed}\n```\n\n{excerpt(module)}"


def opening(module: ModuleType) -> str:
    """Turn the docstring into a heading and a paragraph."""
    title, text = inspect.getdoc(module).split("\n\n", 1)  # type: ignore[union-attr]
    return f"## {title.rstrip('.')}\n\n{text.strip().replace('``', '`')}"


def excerpt(module: ModuleType) -> str:
    """Quote the main function; the page does not run it."""
    return f"The main function of `examples/{module.__name__}.py`:\n\n```py\n{inspect.getsource(module.main)}```\n"


if __name__ == "__main__":
    mpl.use("agg")
    main()
