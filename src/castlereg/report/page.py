"""Render a report as one self-contained HTML page, and write it to a file."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from castlereg.atomic_write import atomic_write
from castlereg.causal.graph.drawing.svg import printable
from castlereg.digits import number
from castlereg.estimators.base import NetworkEstimator, Seed
from castlereg.report.charts import curve_chart, scatter_chart, whisker_chart
from castlereg.report.content import ReportContent, report_content
from castlereg.report.effect_chart import effect_chart
from castlereg.report.graph_view import GraphContent
from castlereg.report.what_if_answers import answers_at, data_for_script, table_rows

if TYPE_CHECKING:
    from jinja2 import Template

_STYLES = ("page.css", "what_if.css")
_SCRIPTS = ("page.js", "what_if.js")


def write_report(
    model: NetworkEstimator,
    X: ArrayLike,
    y: ArrayLike,
    path: str | Path,
    *,
    title: str | None = None,
    evaluate: bool = True,
    rivals: bool = True,
    what_if: bool = True,
    cv: int = 5,
    random_state: Seed = None,
    date: datetime.date | None = None,
    verbose: bool | None = None,
) -> Path:
    """Write a self-contained HTML report on a fitted model: its scores, its graph and the course of training.

    Parameters
    ----------
    model : fitted estimator of castlereg
    X : DataFrame of pandas or polars, or array-like of shape (rows, features)
        The table that the model was fitted on.
    y : array-like of shape (rows,) or (rows, targets)
        Its targets.
    path : str or Path
        File to write, usually ``something.html``; missing folders are created.
    title : str, optional
        Title of the page; by default built from the names of the targets.
    evaluate : bool
        Whether to cross-validate the model and compare it with the plain network and a constant prediction. This trains
        ``cv`` clones of the model, with equal row weights; without it, the report takes a few seconds.
    rivals : bool
        Whether to also cross-validate scikit-learn's random forest and gradient boosting on the same folds; they are
        trained on at most 20,000 rows.
    what_if : bool
        Whether to add a panel that shows the effects of setting columns to values, next to plain associations; it takes
        a few seconds. Models without a graph and tables with fewer than 50 rows have no such panel.
    cv : int
        Number of folds.
    random_state : int, RandomState, Generator or None
        Seed of folds, networks and intervals; by default the seed of the model if it is a number, otherwise a new one.
        The page shows it, and the same seed gives the same page.
    date : date, optional
        Date shown on the page; by default today.
    verbose : bool, optional
        Show a progress bar; by default in a terminal or notebook.

    Notes
    -----
    An estimator that chooses its regularization strengths by cross-validation is evaluated as the single estimator with
    these strengths and the same number of networks; the page states this.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressor, write_report
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = CastleRegressor(max_epochs=3, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(model, X, y, f"{folder}/report.html", evaluate=False)
    ...     page.name
    'report.html'
    """
    page_template()  # raise for a missing package before training, not after it
    content = report_content(
        model,
        X,
        y,
        title=title,
        evaluate=evaluate,
        rivals=rivals,
        what_if=what_if,
        cv=cv,
        random_state=random_state,
        date=date,
        verbose=verbose,
    )
    page = render(content).encode()
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(file) as stream:
        stream.write(page)
    return file


def render(content: ReportContent) -> str:
    """Render the content of a report, from :func:`report_content`, as an HTML page.

    The same content gives the same page. The page is self-contained: its content security policy blocks all external
    fonts, images, styles and scripts. Text from the data is escaped and never executed.
    """
    style, script = map(_joined, (_STYLES, _SCRIPTS))
    return page_template().render(
        content=content,
        style=style,
        script=script,
        # The content security policy allows only the script with this hash.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        graph_data="" if content.graph is None else json_for_page(_graph_data(content.graph)),
        what_if_data="" if content.what_if is None else json_for_page(data_for_script(content.what_if)),
    )


def _joined(names: Iterable[str]) -> str:
    return "\n".join((files("castlereg.report") / "templates" / name).read_text("utf-8") for name in names)


def json_for_page(data: Any) -> str:
    r"""Return JSON that is safe in a script element: ASCII only, without ``<``, ``>`` and ``&``.

    >>> json_for_page(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _graph_data(graph: GraphContent) -> dict[str, Any]:
    """Return the data of the script; edges refer to nodes by index."""
    index = {name: i for i, name in enumerate(graph.nodes)}
    return {
        "nodes": [printable(name) for name in graph.nodes],
        "targets": [index[name] for name in graph.targets],
        "edges": [
            [index[e.cause], index[e.effect], e.weight, e.confidence, e.direction, e.directed] for e in graph.edges
        ],
        "shown": graph.shown,
        "total": graph.n_edges,
        "captions": {view.key: view.caption for view in graph.views},
    }


@cache
def page_template() -> Template:
    """Load the template."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError("a report needs jinja2: install it with pip install 'castlereg[report]'") from None
    environment = Environment(
        loader=PackageLoader("castlereg.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Only str itself: macros return Markup.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters |= {
        "number": number,
        "weight": "{:#.3g}".format,
        "group": "{:,}".format,
        "unturned": unturned,
        "percent": _percent,
    }
    functions = (scatter_chart, curve_chart, whisker_chart, effect_chart, table_rows, answers_at)
    environment.globals |= {f.__name__: f for f in functions}
    return environment.get_template("page.html")


def unturned(text: str) -> str:
    r"""Remove bidirectional control characters, which would change the direction of the rest of the sentence.

    >>> unturned("Into y: a\u202eb, c.")
    'Into y: ab, c.'
    """
    return re.sub("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", "", text)


def _percent(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{100 * value:.0f}%"
