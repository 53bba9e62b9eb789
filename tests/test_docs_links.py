"""Links lead somewhere, pages are in the navigation, public names are in the reference."""

from __future__ import annotations

import importlib
import re
import sys
import unicodedata
from inspect import ismodule
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def text_of(page: Path) -> str:
    """Text without code, where brackets mean something else."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "code", text)


def anchors_of(page: Path) -> set[str]:
    """Anchors of the headings, as Python-Markdown and GitHub make them."""
    plain = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", plain, flags=re.MULTILINE)
    ascii_only = (unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode() for heading in headings)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in ascii_only}


def test_anchors_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# `fit` sorts, the rows\n\n```\n# no heading\n```\n## Ablation of CASTLE's terms (Table 7)\n")
    assert anchors_of(page) == {"fit-sorts-the-rows", "ablation-of-castles-terms-table-7"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors_of(linked), f"{page.name} links to {target}"
        if page.is_relative_to(DOCS):
            assert linked.is_relative_to(DOCS), f"{target} of {page.name} is outside of the site"


def in_navigation() -> set[str]:
    class Loader(yaml.SafeLoader):
        """Reads what only the site's builder understands as nothing."""

    Loader.add_multi_constructor("!", lambda *_: None)
    config = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)
    found, waiting = set(), list(config["nav"])
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, str):
            found.add(entry)
        else:
            waiting += entry.values() if isinstance(entry, dict) else entry
    return found


def test_every_page_is_in_the_navigation_and_every_entry_exists() -> None:
    decisions = {f"decisions/{path.name}" for path in (DOCS / "decisions").glob("0*.md")}
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert in_navigation() == pages - decisions


def test_every_decision_is_on_the_page_of_decisions() -> None:
    listed = re.findall(r"\]\((\d{4}-[^)]*)\)", (DOCS / "decisions" / "overview.md").read_text(encoding="utf-8"))
    assert listed == sorted(path.name for path in (DOCS / "decisions").glob("0*.md"))


REFERENCE = {
    name for page in (DOCS / "api").glob("*.md") for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
}


@pytest.mark.parametrize(
    "module",
    [
        *("", "acyclicity", "castle", "fitted", "graph", "losses", "network", "search", "synthetic", "training"),
        *("callbacks", "structural", "torch", "work"),
        *("regularizers", "regularizers.engine", "regularizers.norms", "regularizers.protocol"),
        *("paper", "paper.acyclicity", "paper.datasets"),
    ],
)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    if module == "torch":
        pytest.importorskip("torch")
    imported = importlib.import_module(f"castlereg.{module}".rstrip("."))
    own = {
        name
        for name, value in vars(imported).items()
        if not name.startswith("_") and callable(value) and getattr(value, "__module__", "") == imported.__name__
    }
    names = {name for name in getattr(imported, "__all__", own) if not ismodule(getattr(imported, name))}
    shown = {name.rsplit(".", 1)[-1] for name in REFERENCE if module or name.count(".") == 1}
    assert names <= shown


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_every_name_of_the_reference_exists(name: str) -> None:
    module, attribute = name.rsplit(".", 1)
    if module.startswith("castlereg.integrations."):
        pytest.importorskip(module)  # each needs the package that it is for
    if module == "castlereg.torch":
        pytest.importorskip("torch")
    assert hasattr(importlib.import_module(module), attribute)


def test_gallery_quotes_the_examples_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    gallery = importlib.import_module("gallery")
    sections = gallery.sections((DOCS / "gallery.md").read_text(encoding="utf-8"))
    assert tuple(sections) == gallery.EXAMPLES
    for name in gallery.EXAMPLES:
        module = importlib.import_module(name)
        assert sections[name].startswith(gallery.opening(module))
        assert sections[name].endswith(gallery.excerpt(module))
        assert f"images/gallery/{name}" in sections[name]
    for name in ("gallery", "diabetes", *gallery.EXAMPLES):
        del sys.modules[name]


def test_pictures_of_the_gallery_are_small() -> None:
    for path in (DOCS / "images" / "gallery").glob("*.png"):
        assert path.stat().st_size < 150_000, path.name
