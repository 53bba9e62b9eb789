"""What holds the package together: imports point one way, nobody uses private names of others, budgets hold."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks import budgets

import castlereg
from castlereg import estimators

PACKAGE = Path(castlereg.__file__).parent
BUDGETS: dict[str, int] = json.loads((Path(__file__).parent / "budgets.json").read_text(encoding="utf-8"))

# From the bottom to the top: a module imports only from its own and lower levels. Parts of one level do not import each
# other.
LEVELS: list[tuple[str, ...]] = [
    ("options", "notices", "random_streams", "atomic_write", "signals", "forks"),
    ("target_losses",),
    ("layout",),
    ("table", "network"),
    ("losses", "acyclicity", "monotone"),
    ("castle",),
    ("regularizers", "causal"),
    ("training",),
    ("search", "callbacks"),
    ("estimators",),
    ("persistence", "onnx", "evaluation", "torch"),
    ("report",),
    ("cli",),
]
RANK = {name: rank for rank, names in enumerate(LEVELS) for name in names}


def modules() -> Iterator[tuple[str, Path, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part not in ("__init__", "__main__"):
            yield part, path, ast.parse(path.read_text(encoding="utf-8"))


def imports(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield the parts of castlereg that a module imports, and whether it does so only for types."""
    for_types = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            names = [node.module] if node.module != "castlereg" else [f"castlereg.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "castlereg" and len(parts) > 1:
                yield parts[1], id(node) in for_types


def home(name: str) -> str:
    """Return the part that a name of the package's face comes from."""
    return castlereg._HOMES.get(name, "estimators").split(".")[0] if name in castlereg.__all__ else name


def test_every_part_has_a_level() -> None:
    assert {part for part, _, _ in modules()} == set(RANK)


def test_imports_point_one_way() -> None:
    wrong = []
    for part, path, tree in modules():
        for name, for_types in imports(tree):
            target = home(name)
            if target in RANK and target != part and not for_types and RANK[target] >= RANK[part]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {target}")
    assert not wrong


def test_the_product_does_not_import_the_laboratory() -> None:
    assert not [path for _, path, _ in modules() if "castlereg_paper" in path.read_text(encoding="utf-8")]


def own_private_names(tree: ast.Module) -> set[str]:
    """Return the private names that a module defines, sets or declares."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make"}  # public in spite of their names


def test_no_private_attribute_of_another_package_is_used() -> None:
    known: dict[str, set[str]] = {}
    for part, _, tree in modules():
        known.setdefault(part, set()).update(own_private_names(tree))
    everywhere = set().union(*known.values())
    wrong = []
    for part, path, tree in modules():
        for node in ast.walk(tree):
            name = node.attr if isinstance(node, ast.Attribute) else ""
            if name[:1] == "_" != name[1:2] and name in everywhere - known[part] - NAMED_TUPLES:
                wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno} uses {name}")
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("castlereg."):
                target = (node.module or "").split(".")[1]
                if target != part:
                    wrong += [
                        f"{path.relative_to(PACKAGE)}:{node.lineno} imports {alias.name}"
                        for alias in node.names
                        if alias.name.startswith("_")
                    ]
    assert not wrong


# --- budgets -------------------------------------------------------------------------------------------


def test_nothing_exceeds_its_budget() -> None:
    """What grew is printed; raise a maximum only with something to show for it."""
    figures = budgets.figures(PACKAGE.parent) | budgets.options()
    assert figures.keys() == BUDGETS.keys()
    assert not {name: (value, BUDGETS[name]) for name, value in figures.items() if value > BUDGETS[name]}


@pytest.mark.parametrize("name", estimators.__all__)
def test_estimators_have_few_classes(name: str) -> None:
    own = [kind for kind in getattr(estimators, name).__mro__ if kind.__module__.startswith("castlereg")]
    assert len(own) <= 6
    assert inspect.isclass(own[0])
