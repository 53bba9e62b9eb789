"""From content to one self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from castlereg.graph.drawing.svg import printable
from castlereg.report.charts import curve_chart, scatter_chart, whisker_chart
from castlereg.report.content import ReportContent
from castlereg.report.graph_view import GraphContent
from castlereg.report.scores import decimals_of, number

if TYPE_CHECKING:
    from jinja2 import Template


def render(content: ReportContent) -> str:
    """Turn the content of a report, from :func:`report_content`, into an HTML page.

    The same content gives the same page. It is self-contained: its security policy makes the browser block any font,
    picture, style or script from elsewhere. Text from the data is shown and never run.
    """
    script = _asset("page.js")
    return page_template().render(
        content=content,
        style=_asset("page.css"),
        script=script,
        script_hash=_hash(script),
        graph_data=json_for_page(_graph_data(content.graph)) if content.graph is not None else "",
    )


def json_for_page(data: Any) -> str:
    r"""Write JSON that is safe in a script element: in ASCII, without ``<``, ``>`` and ``&``.

    Examples
    --------
    >>> json_for_page(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _graph_data(graph: GraphContent) -> dict[str, Any]:
    """Return the data of the script; edges refer to nodes by their indices."""
    index = {name: i for i, name in enumerate(graph.nodes)}
    return {
        "nodes": [printable(name) for name in graph.nodes],
        "targets": [index[name] for name in graph.targets],
        "edges": [
            [index[e.cause], index[e.effect], e.weight, e.confidence, e.direction, e.directed] for e in graph.edges
        ],
        "shown": graph.shown,
        "total": graph.n_edges,
        "networks": graph.n_networks,
    }


@cache
def page_template() -> Template:
    """Load the template."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError("a report needs jinja2; install it with: pip install 'castlereg[report]'") from None
    environment = Environment(
        loader=PackageLoader("castlereg.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # str itself, not Markup, which is what macros return.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters |= {"number": number, "weight": _weight, "percent": _percent}
    environment.globals |= {
        "scatter_chart": scatter_chart,
        "curve_chart": curve_chart,
        "whisker_chart": whisker_chart,
        "decimals_of": decimals_of,
    }
    return environment.get_template("page.html")


@cache
def _asset(name: str) -> str:
    return (files("castlereg.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Return the hash by which the page's policy allows the script."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _weight(value: float) -> str:
    """Write the weight of an edge with three significant digits."""
    return f"{value:#.3g}"


def _percent(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{100 * value:.0f}%"
