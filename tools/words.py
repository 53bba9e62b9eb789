"""List words that the glossary replaces, in what people read: pages, docstrings, comments and messages.

``python tools/words.py [FILES]`` checks these files, or all, and ends with 1 if there are any.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("src", "paper/src", "benchmarks", "examples", "tools", "kernels/src", "docs", "README.md", "CONTRIBUTING.md")
# What to write, and patterns of what it replaces; no match is part of a longer word, an identifier or code.
GLOSSARY = {
    "missing values": r"(?<!generalization )gaps?|cells? (that are|that is) not there",
    "raises, is rejected": r"refus(e|es|ed|ing)",
    "validation rows, early stopping": r"rows to stop by|stopped by",
    "is predicted": r"(is|are|was|were|be|been|being) (well |better |worse )?told",
    "uses, depends on, is related": r"leans? on|hangs? (on|together)",
    "acyclicity function": r"measures? of cycles",
    "edge strength": r"edges? (is|are) worth|what an? [a-z]+ is worth",
    "n": r"so many",
    "is available": r"(can|could|to) be had",
    "its own": r"of (its|their|your|our|one's) own(?!\s+\w)",
    "again; also; a sentence of its parts": r"anew|likewise|whoever|thereof|hence",
    "next to, in addition to": r"beside",
    "is duplicated, appears twice": r"(come|comes|stand|stands) twice",
    "represents, is next to, is self-contained": r"stands? (for|beside|alone)",
    "works with, can be combined with": r"(go|goes) (with|together)",
    "is not a": r"(?<!there )is no (?!(\w+er|more|less|such)\b)[a-z]+",
    "only, otherwise": r"[^.,:;(]{1,40} (alone|else)(?=[.;)])",
    "what is kept": r"nothing is lost",
    "reports it": r"says so",
}
WORDS = {write: re.compile(rf"(?<![\w`-])({words})(?![\w`-])", re.IGNORECASE) for write, words in GLOSSARY.items()}


def prose_of(path: Path) -> Iterator[str]:
    """Yield what people read: strings and comments of Python, everything but the code of a page."""
    if path.suffix != ".py":
        yield re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        return
    kinds = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1))
    with tokenize.open(path) as file:
        yield from (token.string for token in tokenize.generate_tokens(file.readline) if token.type in kinds)


def offences(path: Path) -> Iterator[str]:
    """Yield a line for each word to replace."""
    for prose in prose_of(path):
        text = re.sub(r"\s+", " ", prose)
        for write, pattern in WORDS.items():
            for match in pattern.finditer(text):
                yield f"{path}: ...{text[max(0, match.start() - 30) : match.end() + 30]}...; write: {write}"


def main() -> None:
    """Check files."""
    listed = subprocess.run(["git", "ls-files", *FOLDERS], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    names = [name for name in sys.argv[1:] or listed if name.endswith((".py", ".md", ".html"))]
    found = [line for name in names if name != "tools/words.py" for line in offences(Path(name))]
    sys.exit("\n".join(found) or 0)


if __name__ == "__main__":
    main()
