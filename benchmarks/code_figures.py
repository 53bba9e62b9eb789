"""Figures of the code: how long the method is, how many modules a fit uses, how large the package is.

Run ``python -m benchmarks.code_figures [folder of src]``; with the ``src`` of another version, figures of that.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_ROAD = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from castlereg import CastleRegressorCV
rng = np.random.default_rng(0)
X = rng.normal(size=(100, 5))
y = X[:, 0] + rng.normal(size=100)
seen = set()
def on_event(frame, event, argument):
    path = frame.f_code.co_filename.replace("\\\\", "/")
    if event == "call" and "/castlereg/" in path:
        seen.add(path.rsplit("/castlereg/", 1)[1])
sys.setprofile(on_event)
CastleRegressorCV(cv=3, max_epochs=2, random_state=0).fit(X, y)
sys.setprofile(None)
print(json.dumps(sorted(seen)))
"""
_PAPER = ("paper", "experiments", "datasets", "bound.py")  # the last three: where 0.1 had the paper


def modules_on_the_road(src: Path) -> list[str]:
    """Return the modules of castlereg that ``CastleRegressorCV.fit`` calls functions of."""
    run = subprocess.run(
        [sys.executable, "-c", _ROAD], check=True, capture_output=True, text=True, env={"PYTHONPATH": str(src)}
    )
    modules: list[str] = json.loads(run.stdout.splitlines()[-1])
    return modules


def _functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the name of every function, and its lines without the docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            yield node.name, (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def figures(src: Path) -> dict[str, object]:
    """Return the figures of the package in a ``src`` folder."""
    package = src / "castlereg"
    files = sorted(package.rglob("*.py"))
    core = [path for path in files if path.relative_to(package).parts[0] not in _PAPER]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in core}
    functions = [
        (lines, f"{path.relative_to(package)}::{name}")
        for path, tree in trees.items()
        for name, lines in _functions(tree)
    ]
    method = next(path for path in (package / "castle.py", package / "objective.py") if path.exists())
    road = modules_on_the_road(src)
    return {
        "lines of the method's file": (method.name, _lines([method])),
        "modules on the road of CastleRegressorCV.fit": len(road),
        "lines of src": _lines(files),
        "lines of src outside the paper's room": _lines(core),
        "modules outside the paper's room": len(core),
        "classes outside the paper's room": sum(
            isinstance(node, ast.ClassDef) for tree in trees.values() for node in ast.walk(tree)
        ),
        "longest function, without its docstring": max(functions),
        "longest files": sorted(((_lines([path]), str(path.relative_to(package))) for path in core), reverse=True)[:3],
        "the road": road,
    }


def _lines(paths: list[Path]) -> int:
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "src"
    for name, value in figures(folder.resolve()).items():
        print(f"{name}: {value}")
