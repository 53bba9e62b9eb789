"""Words that the glossary replaces are not in what people read: pages, docstrings, comments, messages, the report."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [
    path
    for folder in ("src", "benchmarks", "examples", "fuzz", "kernels/src", "docs/hooks")
    for path in (ROOT / folder).rglob("*.py")
]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "kernels/README.md")),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "src").rglob("*.html"),
]

# What is not to be written, and what is written instead.
GLOSSARY = {
    r"(?<!generalization )gaps?": "missing values",
    r"cells? (that are|that is) not there": "missing values",
    r"refus(e|es|ed|ing)": "raises, is rejected",
    r"(rows to stop by|stopped by)": "validation rows, early stopping",
    r"(is|are|was|were|be|been|being) (well |better |worse )?told": "is predicted",
    r"leans? on": "uses",
    r"hangs? (on|together)": "depends on, is related",
    r"measures? of cycles": "acyclicity function",
    r"edges? (is|are) worth": "edge strength",
    r"so many": "n",
    r"(can|could|to) be had": "is available",
    r"of (its|their|your|our|one's) own(?!\s+\w)": "its own",
    r"(anew|likewise|whoever|thereof|hence)": "again; also; a sentence of its parts",
    r"beside": "next to, in addition to",
    r"(come|comes|stand|stands) twice": "is duplicated, appears twice",
    r"stands? (for|beside|alone)": "represents, is next to, is self-contained",
    r"(go|goes) (with|together)": "works with, can be combined with",
    r"(?<!there )is no (?!(\w+er|more|less|such)\b)[a-z]+": "is not a",
    r"[^.,:;(]{1,40} (alone|else)(?=[.;)])": "only, otherwise",
    r"nothing is lost": "what is kept",
    r"says so": "reports it",
    r"what an? [a-z]+ is worth": "strength",
}
WORDS = {re.compile(rf"(?<![\w`-]){p}(?![\w`-])", re.IGNORECASE): word for p, word in GLOSSARY.items()}


def prose_of(path: Path) -> Iterator[str]:
    """Yield what people read: of Python, strings and comments; of a page, everything but its code."""
    if path.suffix == ".py":
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type in (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)):
                    yield token.string
        return
    yield re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def offences(path: Path) -> list[str]:
    found = []
    for prose in prose_of(path):
        text = re.sub(r"\s+", " ", prose)
        for pattern, word in WORDS.items():
            for match in pattern.finditer(text):
                context = text[max(0, match.start() - 30) : match.end() + 30]
                found.append(f"{path.relative_to(ROOT)}: ...{context}...; write: {word}")
    return found


@pytest.mark.parametrize(
    ("text", "is_offence"),
    [
        ("An edge leans on rows.", True),
        ("It has a way of its own.", True),
        ("to standard output, File else.", True),
        ("if nothing else matters", False),
        ("the `beside` option and best-of-own", False),
        ("X is no matrix", True),
        ("it is no better", False),
    ],
)
def test_offences_are_found(text: str, is_offence: bool) -> None:
    assert any(pattern.search(text) for pattern in WORDS) == is_offence


def test_sources_have_no_word_that_the_glossary_replaces() -> None:
    assert [offence for path in SOURCES for offence in offences(path)] == []


def test_pages_have_no_word_that_the_glossary_replaces() -> None:
    assert [offence for path in PAGES for offence in offences(path)] == []
