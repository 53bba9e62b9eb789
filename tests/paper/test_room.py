"""The paper's room: what it shows, and that nobody outside depends on it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import castlereg
from castlereg import paper

PACKAGE = Path(castlereg.__file__).parent
COMMANDS = {"cli/paper.py"}  # its commands import it when they run


def imported(tree: ast.AST) -> Iterator[str]:
    """Names of the modules that this code imports, at whatever depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_nothing_outside_imports_it() -> None:
    outside = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    importing = {
        name
        for name, path in outside.items()
        if not name.startswith("paper/")
        and any(module.startswith("castlereg.paper") for module in imported(ast.parse(path.read_text("utf-8"))))
    }
    assert importing == COMMANDS


@pytest.mark.parametrize("module", ["castlereg", "castlereg.cli", "castlereg.causal.synthetic"])
def test_it_is_not_imported_by(module: str) -> None:
    script = f"import sys, {module}\nassert not [name for name in sys.modules if name.startswith('castlereg.paper')]"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_all_its_names_exist() -> None:
    assert paper.__all__ == sorted(paper.__all__) == dir(paper)
    for name in paper.__all__:
        assert getattr(paper, name).__name__.rsplit(".", 1)[-1] == name
    with pytest.raises(AttributeError, match="has no attribute 'bounds'"):
        _ = paper.bounds


def test_importing_it_loads_nothing_yet() -> None:
    script = "import sys, castlereg.paper\nassert not [name for name in sys.modules if 'castlereg.paper.' in name]"
    subprocess.run([sys.executable, "-c", script], check=True)
