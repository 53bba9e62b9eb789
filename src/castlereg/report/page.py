"""Render a report as one self-contained HTML page, and write it to a file."""

from __future__ import annotations

import base64
import datetime
import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from numpy.typing import ArrayLike

from castlereg.atomic_write import atomic_write
from castlereg.causal.drawing import dashes, edge_shape, hidden_svg, printable, prior_svg, shortened
from castlereg.estimators.base import NetworkEstimator, Seed
from castlereg.evaluation import Interval, number
from castlereg.report.content import ReportContent, report_content
from castlereg.report.what_if import Curve, Outcome, SetColumn

if TYPE_CHECKING:
    from jinja2 import Template

_LOG_FROM = 5.0  # values that differ by more than this factor need a logarithmic axis
_ROW = 40.0  # height of a level
_LABEL_LENGTH = 17  # characters of a level next to its row


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
    _template()  # raise for a missing package before training, not after it
    content = report_content(model, X, y, title, evaluate, rivals, what_if, cv, random_state, date, verbose)
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
    folder, data = files("castlereg.report") / "templates", {}
    style, script = (
        "\n".join((folder / f"{name}.{kind}").read_text("utf-8") for name in ("page", "what_if"))
        for kind in ("css", "js")
    )
    if (graph := content.graph) is not None:
        index = {name: i for i, name in enumerate(graph.nodes)}
        data["graph"] = {
            "nodes": [printable(name) for name in graph.nodes],
            "targets": [index[name] for name in graph.targets],
            "edges": [[index[edge.cause], index[edge.effect], *edge[2:]] for edge in graph.edges],
            "shown": graph.shown,
            "total": graph.n_edges,
            "captions": {view.key: view.caption for view in graph.views},
        }
    if (asked := content.what_if) is not None:
        columns = []
        for column in asked.columns:
            curves, n_values = [], len(column.values)
            for curve, outcome in zip(column.curves, asked.outcomes, strict=True):
                texts = [curve.answers(k) for k in range(n_values)]
                curves.append({"texts": texts, "marks": _marks(column, curve, outcome)})
            columns.append({"values": [printable(text) for text in column.values], "curves": curves})
        data["what-if"] = {"columns": columns}
    # The content security policy allows only the script with this hash.
    script_hash = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _template().render(content=content, style=style, script=script, script_hash=script_hash, data=data)


def _marks(column: SetColumn, curve: Curve, outcome: Outcome) -> list[list[float | None]]:
    """Return the coordinates of each value and of its outcomes; those of levels are only that of the row."""
    chart, effect = _effect_chart(column, curve, outcome), curve.effect
    if column.is_levels:
        return [[chart.y(position)] for position in column.positions]
    marks = []
    for k, position in enumerate(column.positions):
        spread = effect.quantiles[k] if curve.effect.direction.is_known and not outcome.is_probability else ()
        caused = effect.estimate[k] if curve.effect.direction.is_known else None
        outcomes = (caused, effect.associated[k], curve.predicted[k], *spread)
        marks.append([chart.x(position), *map(chart.y, outcomes)])
    return marks


@cache
def _template() -> Template:
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
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}  # a browser cannot read NaN
    environment.filters |= {
        "number": number,
        "weight": "{:#.3g}".format,
        "group": "{:,}".format,
        "percent": lambda value: "\N{EN DASH}" if value is None else f"{100 * value:.0f}%",
        # Without control characters that would change the direction of the rest of the sentence.
        "unturned": lambda text: re.sub("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", "", text),
    }
    charts = (_scatter_chart, _curve_chart, _score_axis, _effect_chart, _value_ticks, _lines, _area)
    environment.globals |= {f.__name__.lstrip("_"): f for f in (*charts, edge_shape, dashes, hidden_svg, prior_svg)}
    return environment.get_template("page.html")


# --- axes and coordinates of the charts: the template draws marks and lines there -----------------------


class _Tick(NamedTuple):  # a mark on an axis: its coordinate and its label
    at: float | None
    label: str


@dataclass(frozen=True)
class _Axis:
    """The coordinates of values: ``low`` is at ``start``, and ``high`` at ``end``."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    @classmethod
    def around(cls, values: Iterable[float | None], start: float, end: float, *, is_log: bool = False) -> Self:
        """Return an axis with a margin on both sides of the values, of which None and NaN are ignored."""
        known = [value for value in values if value is not None and not math.isnan(value)]
        low, high = min(known), max(known)
        if is_log:
            factor = (high / low) ** 0.04
            return cls(low / factor, high * factor, start, end, True)
        margin = 0.04 * (high - low) or 0.5 * abs(low) or 1.0
        return cls(low - margin, high + margin, start, end)

    def __call__(self, value: float | None) -> float | None:
        """Return the coordinate of a value; None for None and NaN, where nothing is drawn."""
        if value is None or math.isnan(value):
            return None
        low, high = self.low, self.high
        if self.is_log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return round(float(self.start + (value - low) / (high - low) * (self.end - self.start)), 1)

    def ticks(self, count: int = 5, *, whole: bool = False) -> list[_Tick]:
        """Return about ``count`` round numbers, and only whole ones if ``whole``."""
        marks = (_powers if self.is_log else _round_numbers)(self.low, self.high, count)
        chosen = [mark for mark in marks if not whole or mark == int(mark)]
        return [_Tick(self(mark), f"{mark:,.6g}".replace("-", "\N{MINUS SIGN}")) for mark in chosen]


def _round_numbers(low: float, high: float, count: int) -> list[float]:
    raw = (high - low) / count
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def _powers(low: float, high: float, count: int) -> list[float]:
    """Return 1, 2 and 5 times powers of ten, or only powers if these exceed ``count``."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [mark for k in powers for factor in (1, 2, 5) if low <= (mark := float(f"{factor}e{k}")) <= high]
    tens = [mark for mark in marks if f"{mark:e}".startswith("1.0")]
    return marks if len(marks) <= count + 1 else tens[:: math.ceil(len(tens) / count)] or marks[::2]


class _Chart(NamedTuple):  # the size of a chart and its axes; the vertical one starts at the bottom
    width: float
    height: float
    x: _Axis
    y: _Axis


def _scatter_chart(points: Sequence[tuple[float, float]]) -> _Chart:
    """Return equal axes for points (true, predicted); perfect predictions lie on the diagonal."""
    values = [value for point in points for value in point]
    return _Chart(360, 330, _Axis.around(values, 52, 350), _Axis.around(values, 286, 10))


def _curve_chart(curves: Sequence[tuple[Sequence[float], Sequence[float]]]) -> _Chart:
    """Return the axes of curves over epochs, with a logarithmic one if the values span a large range."""
    epochs, values = ([value for curve in curves for value in curve[part]] for part in (0, 1))
    is_log = min(values) > 0 and max(values) / min(values) > _LOG_FROM
    x = _Axis(min(epochs), max(*epochs, min(epochs) + 1), 52, 410)
    return _Chart(420, 240, x, _Axis.around(values, 200, 10, is_log=is_log))


def _score_axis(scores: Sequence[Interval]) -> _Axis:
    return _Axis.around([end for score in scores for end in (score.low, score.high)], 12, 228)


def _effect_chart(column: SetColumn, curve: Curve, outcome: Outcome) -> _Chart:
    """Return the axes of an outcome: upwards over numbers, which increase to the right; to the right for levels."""
    effect = curve.effect
    values = [*effect.answer.low, *effect.answer.high, *effect.associated, *curve.predicted, outcome.now]
    if curve.effect.direction.is_known:
        values += [*effect.estimate, *effect.quantiles.ravel()]
    n = len(column.values)
    across = _Axis.around(values, 128, 430) if column.is_levels else _Axis.around(values, 246, 10)
    if outcome.is_probability:
        across = _Axis(max(across.low, -0.01), min(across.high, 1.01), across.start, across.end)
    if column.is_levels:
        return _Chart(440, _ROW * n + 36, across, _Axis(-0.5, n - 0.5, 8, _ROW * n + 8))
    return _Chart(440, 274, _Axis(column.positions[0], column.positions[-1], 62, 422), across)


def _value_ticks(column: SetColumn, chart: _Chart) -> list[_Tick]:
    """Label levels by name, round numbers, and dates and a few distinct numbers at their values."""
    if column.is_levels:
        return [_Tick(chart.y(k), shortened(text, _LABEL_LENGTH)) for k, text in enumerate(column.values)]
    is_plain = all(any(c.isdigit() for c in text) and " " not in text and "-" not in text for text in column.values)
    n = len(column.values)
    if is_plain and n > 6:
        return chart.x.ticks()
    chosen = range(0, n, max(1, (n - 1) // 3 if not is_plain else 1))
    return [_Tick(chart.x(column.positions[k]), column.values[k]) for k in chosen]


def _lines(chart: _Chart, x: Sequence[float], y: Sequence[float | None]) -> list[str]:
    """Return points of polylines, interrupted where there is no value."""
    parts: list[list[str]] = [[]]
    for across, up in zip(map(chart.x, x), map(chart.y, y), strict=True):
        if up is None:
            parts.append([])
        else:
            parts[-1].append(f"{across},{up}")
    return [" ".join(part) for part in parts if part]


def _area(chart: _Chart, x: Sequence[float], low: Sequence[float], high: Sequence[float]) -> str:
    """Return points of the polygon between two lines."""
    return " ".join(_lines(chart, [*x, *reversed(x)], [*low, *reversed(high)]))
