"""Budgets of the code: lines and modules of every part, public names, options, and what a default fit passes through.

``python -m benchmarks.budgets`` prints the figures of this tree; with the ``src`` folder of another version, those of
that. ``tests/test_budgets.py`` compares them with the maxima in ``tests/budgets.json``.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PARTS = {
    "the method": ("castle", "network", "layout", "losses", "target_losses", "monotone", "acyclicity", "regularizers"),
    "table": ("table", "data"),
    "training, search, estimators": ("training", "search", "fitted", "estimators"),
    "causal": ("causal", "discovery", "graph", "structural", "synthetic"),
    "report, evaluation": ("report", "evaluation", "explanation"),
}  # all others: the command line, files, ONNX, PyTorch, small modules
LABORATORY = ("paper", "comparison", "work", "advising", "integrations")  # where version 0.2 had it

_TRACE = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from castlereg import CastleRegressorCV
rng = np.random.default_rng(0)
X = rng.normal(size=(100, 5))
y = X[:, 0] + rng.normal(size=100)
functions, calls = set(), set()
def where(frame):
    path = frame.f_code.co_filename.replace("\\\\", "/")
    return path.rsplit("/castlereg/", 1)[1] if "/castlereg/" in path else None
def on_event(frame, event, argument):
    module = where(frame)
    if event == "call" and module and not frame.f_code.co_name.startswith("<"):  # 3.12 inlines comprehensions
        functions.add((module, getattr(frame.f_code, "co_qualname", frame.f_code.co_name)))
        caller = frame.f_back
        while caller is not None and where(caller) is None:
            caller = caller.f_back
        if caller is not None and where(caller) != module:
            calls.add((where(caller), module))
sys.setprofile(on_event)
CastleRegressorCV(random_state=0).fit(X, y)
sys.setprofile(None)
print(json.dumps([sorted(functions), sorted(calls)]))
"""


def trace_of_fit(src: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the functions that a default fit calls, as (module, function), and the calls between modules."""
    run = subprocess.run(
        [sys.executable, "-c", _TRACE], check=True, capture_output=True, text=True, env={"PYTHONPATH": str(src)}
    )
    functions, calls = json.loads(run.stdout.splitlines()[-1])
    return [tuple(f) for f in functions], [tuple(c) for c in calls]


def part_of(path: Path) -> str:
    """Return the part of the product that a module, relative to the package, belongs to."""
    name = path.parts[0].removesuffix(".py")
    return next((part for part, names in PARTS.items() if name in names), "all others")


def product_modules(src: Path) -> list[Path]:
    """Return the modules of the product, without the laboratory that version 0.2 had inside."""
    package = src / "castlereg"
    paths = [path.relative_to(package) for path in sorted(package.rglob("*.py"))]
    return [path for path in paths if path.parts[0] not in LABORATORY]


def _public_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        names: list[str] = []
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
        yield from (name for name in names if not name.startswith("_"))


def figures(src: Path, fit: bool = True) -> dict[str, Any]:
    """Return the figures of the package in a ``src`` folder; ``fit`` includes those of a traced fit."""
    package = src / "castlereg"
    modules = product_modules(src)
    texts = {path: (package / path).read_text(encoding="utf-8") for path in modules}
    lines: dict[str, int] = {part: 0 for part in (*PARTS, "all others")}
    for path, text in texts.items():
        lines[part_of(path)] += text.count("\n")
    found: dict[str, Any] = {f"lines: {part}": count for part, count in lines.items()}
    found["lines: templates of the report"] = sum(
        path.read_text(encoding="utf-8").count("\n") for path in (package / "report" / "templates").glob("*")
    )
    found["lines"] = sum(lines.values())
    found["modules"] = len(modules)
    found["public names"] = sum(len(list(_public_names(ast.parse(text)))) for text in texts.values())
    found["lines: castle.py"] = texts[Path("castle.py")].count("\n")
    if fit:
        functions, calls = trace_of_fit(src)
        passed = {module for module, _ in functions}
        found["modules of a default fit"] = len(passed)
        found["functions of a default fit"] = len(functions)
        found["calls between modules of a default fit"] = len(calls)
    return found


def options() -> dict[str, int]:
    """Return the number of options of every estimator."""
    import inspect

    from castlereg import estimators

    return {
        f"options: {name}": len(inspect.signature(getattr(estimators, name)).parameters) for name in estimators.__all__
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "src"
    for name, value in figures(folder.resolve()).items():
        print(f"{name}: {value}")
