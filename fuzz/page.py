"""The figures of a campaign: ``fuzz/results.json``, and the table of ``docs/robustness.md`` that is written from it."""

from __future__ import annotations

import datetime
import json
import platform
import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

import castlereg
from castlereg.markdown import markdown_table
from fuzz.campaign import PARTS, ROOT, Log

RESULTS, PAGE = ROOT / "fuzz" / "results.json", ROOT / "docs" / "robustness.md"
_BEGIN, _END = "<!-- figures: python -m fuzz --record -->", "<!-- end of figures -->"


def record(logs: Mapping[str, Log]) -> None:
    """Update the counts of the parts that were run, and write the page."""
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name, log in logs.items():
        results[name] = {
            "cases": len(log.answers),
            "findings": len(log.findings()),
            "counts": dict(sorted(log.totals().items())),
            "seconds": round(log.seconds()),
            "castlereg": castlereg.__version__,
            "python": platform.python_version(),
            "date": datetime.date.today().isoformat(),
        }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


def rendered(page: str, results: Mapping[str, Any]) -> str:
    """Return a page with the figures inserted."""
    rows = [
        {
            "part": f"`{name}`",
            "what": part.about,
            "cases": f"{results[name]['cases']:,}",
            "counted": ", ".join(f"{number:,} {count}" for count, number in results[name]["counts"].items()),
            "findings left": f"{results[name]['findings']:,}",
        }
        for name, part in PARTS.items()
        if name in results
    ]
    dates = sorted({result["date"] for result in results.values()})
    versions = sorted({f"castlereg {result['castlereg']}, Python {result['python']}" for result in results.values()})
    seconds = sum(result["seconds"] for result in results.values())
    about = f"{'; '.join(versions)}; {' and '.join(dates)}; {seconds / 3600:.1f} hours on one core."
    figures = f"{markdown_table(pd.DataFrame(rows))}\n\n{about}"
    pattern = re.compile(re.escape(_BEGIN) + ".*" + re.escape(_END), re.DOTALL)
    return pattern.sub(lambda _: f"{_BEGIN}\n\n{figures}\n\n{_END}", page)
