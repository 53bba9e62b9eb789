"""The laboratory as a package: its names, what it uses of castlereg, and the map from the paper to the code."""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import castlereg
import castlereg_paper

ROOT = Path(__file__).parents[2]
PRODUCT, LABORATORY = Path(castlereg.__file__).parent, Path(castlereg_paper.__file__).parent
MAP = [
    [cell.strip() for cell in line.strip().strip("|").split("|")]
    for line in (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("|") and not line.startswith(("| paper", "| ---"))
]
NAMES = sorted(
    {name for row in MAP for name in re.findall(r"`((?:castlereg|castlereg_paper|benchmarks)\.[\w.]+)`", row[-1])}
)


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield module and name of every import in a file, at whatever depth."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def test_the_product_does_not_import_it() -> None:
    importing = [path for path in PRODUCT.rglob("*.py") if any("castlereg_paper" in name for name, _ in imports(path))]
    assert importing == []


def test_it_uses_public_names_and_the_core_only_in_the_protocol() -> None:
    core = ("estimators.base", "search", "table", "training")
    for path in LABORATORY.rglob("*.py"):
        for module, name in imports(path):
            if module.split(".")[0] == "castlereg":
                assert not any(re.match("_[^_]", part) for part in [*module.split("."), name]), (
                    path.name,
                    module,
                    name,
                )
                is_core = module.startswith(tuple(f"castlereg.{part}" for part in core))
                assert not is_core or path.name == "protocol.py" or is_for_types(path, module), (path.name, module)


def is_for_types(path: Path, module: str) -> bool:
    """Return whether a module is imported for types only."""
    text = path.read_text("utf-8")
    return f"    from {module} import" in text and f"\nfrom {module} import" not in text


def test_all_its_names_exist() -> None:
    assert castlereg_paper.__all__ == sorted(castlereg_paper.__all__) == dir(castlereg_paper)
    for name in castlereg_paper.__all__:
        assert getattr(castlereg_paper, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'bounds'"):
        _ = castlereg_paper.bounds


def test_importing_it_loads_nothing_yet() -> None:
    script = "import sys, castlereg_paper\nassert not [n for n in sys.modules if 'castlereg_paper.' in n or n == 'jax']"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_the_map_exists(name: str) -> None:
    assert pkgutil.resolve_name(name) is not None


def test_every_row_of_the_map_has_code_or_says_that_it_has_none() -> None:
    for row in MAP:
        assert len(row) == 3, row
        assert re.search(r"`(castlereg|castlereg_paper|benchmarks)\.|no code", row[-1]), row


def test_every_equation_table_and_figure_has_a_row() -> None:
    listed = " ".join(row[0] for row in MAP)
    expected = [f"{kind} {i}" for kind in ("eq.", "Table", "Figure") for i in range(1, 9)]
    missing = [item for item in [*expected, "eq. 9 to 12", "Algorithm 1", "Theorem 1"] if item not in listed]
    assert not missing
