"""Run the code and commands of pages, and write what they print below them.

``python examples/page_outputs.py [PAGE ...]`` runs the blocks of Python and of commands from top to bottom in an empty
folder, and rewrites every block of text directly below one of them. Without names it takes all pages that have such
blocks. ``make docs`` does so, and a test compares the text with what the code prints.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(
    r"^```(?P<language>python|bash)\n(?P<code>.*?)^```\n(?:\n*```text\n(?P<text>.*?)^```\n)?", re.DOTALL | re.MULTILINE
)


def pages_with_output() -> list[Path]:
    """Return the pages that show what their code prints."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [page for page in pages if any(match["text"] is not None for match in _BLOCK.finditer(page.read_text()))]


def printed(page: Path) -> Iterator[tuple[str | None, str]]:
    """Run a page in the current folder; yield, for each block of code, the text below it and what it prints.

    Commands are run on pages that show the output of some; installations never are.
    """
    names = {"__name__": "__main__"}  # dataclasses look their module up
    blocks = list(_BLOCK.finditer(page.read_text(encoding="utf-8")))
    runs_commands = any(block["language"] == "bash" and block["text"] is not None for block in blocks)
    for block in blocks:
        output = ""
        if block["language"] == "python":
            with contextlib.redirect_stdout(io.StringIO()) as written:
                exec(compile(block["code"], page.name, "exec"), names)
            output = written.getvalue()
        elif runs_commands and not block["code"].startswith("pip "):
            output = _printed_by_commands(block["code"], may_fail=(block["text"] or "").startswith("castlereg: "))
        yield block["text"], as_shown(output)


def _printed_by_commands(commands: str, *, may_fail: bool) -> str:
    """Run commands with the castlereg of this Python; standard error is shown only if they should fail."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "200"}
    ended = subprocess.run(["bash", "-e", "-c", commands], text=True, capture_output=True, env=environment)
    if ended.returncode and not may_fail:
        raise RuntimeError(f"{commands}{ended.stderr}")
    return ended.stdout + (ended.stderr if ended.returncode else "")


def as_shown(output: str) -> str:
    """Return output without blanks at the ends of its lines."""
    return "".join(f"{line.rstrip()}\n" for line in output.rstrip().splitlines())


def write(page: Path) -> None:
    """Write the output of a page below its code."""
    outputs = iter([output for _, output in printed(page)])

    def with_output(match: re.Match[str]) -> str:
        output = next(outputs)
        if match["text"] is None:
            return match[0]
        start, end = match.start("text") - match.start(), match.end("text") - match.start()
        return f"{match[0][:start]}{output}{match[0][end:]}"

    page.write_text(_BLOCK.sub(with_output, page.read_text(encoding="utf-8")), encoding="utf-8")


def main(pages: list[Path]) -> None:
    """Write the output of pages, each run in its own empty folder."""
    import matplotlib as mpl

    mpl.use("agg")
    warnings.simplefilter("ignore")
    for page in pages:
        print(page.name, flush=True)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            os.environ.setdefault("COLUMNS", "100")
            write(page)


if __name__ == "__main__":
    main([Path(name).resolve() for name in sys.argv[1:]] or pages_with_output())
