"""Content of reports without any training."""

from __future__ import annotations

import numpy as np
import pandas as pd

from castlereg import CausalGraph
from castlereg.causal import Effect
from castlereg.causal.effects import Answer, Direction
from castlereg.report import ReportContent
from castlereg.report.content import _graph_content, _TableColumn, _training
from castlereg.report.scores import Comparison, _score_target
from castlereg.report.what_if import Curve, Outcome, SetColumn, WhatIfContent
from castlereg.table.targets import ClassTarget, NumericTarget

HOSTILE = (
    "<script>document.title = 'broken'</script>",
    "</script><img src=x onerror=\"document.title = 'broken'\">",
    '"><svg onload="document.title = \'broken\'">',
    "quotes \" ' ` & &amp; &lt;",
    "line\nbreak\tand\u2028others\u2029",
    "castle \N{EUROPEAN CASTLE} \N{WOMAN}\N{ZERO WIDTH JOINER}\N{WOMAN}",
    "\u05e2\u05d1\u05e8\u05d9\u05ea and \u202e turned",
    "long " * 60,
    "{{ 7 * 7 }} {% raw %} ${1}",
    "javascript:document.title='broken'",
    "constructor",
    "</style></title></textarea><!--",
)


def random_graph(names: tuple[str, ...], n_edges: int, seed: int = 0) -> CausalGraph:
    """Edges from earlier to later names, some of an uncertain direction; the last name is the target."""
    rng = np.random.default_rng(seed)
    p = len(names)
    cause, effect = np.triu_indices(p, k=1)
    kept = np.sort(rng.choice(len(cause), n_edges, replace=False))
    weights, confidence, direction = np.zeros((3, p, p))
    at, back = (cause[kept], effect[kept]), (effect[kept], cause[kept])
    weights[at] = rng.uniform(0.1, 1.0, n_edges)
    confidence[at] = confidence[back] = rng.uniform(0.5, 1.0, n_edges)
    direction[at] = rng.uniform(0.5, 1.0, n_edges)
    direction[back] = 1 - direction[at]
    hidden, prior = np.full((2, p, p), np.nan)
    hidden[at] = hidden[back] = 0.1
    hidden[[0, 1], [1, 0]] = 0.9
    prior[at[0][0], at[1][0]] = 0.7
    shapes = np.where(confidence > 0, direction, np.nan)
    evidence = {"hidden_array": hidden, "shapes_array": shapes, "prior_array": prior}
    return CausalGraph(names, (names[-1],), weights, confidence, direction, **evidence)


def handmade(names: tuple[str, ...], n_edges: int = 15) -> ReportContent:
    """A report on a table with these columns, of which the last is the target."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=50)
    methods = ("CASTLE", "plain network", "random forest", "gradient boosting")
    predicted = {method: y + rng.normal(size=50) for method in methods} | {"guess": np.zeros(50)}
    scores = _score_target(NumericTarget.fit(y, names[-1]), y, predicted, seed=0)
    classes = np.array(names[:3], dtype=object)
    codes = rng.integers(3, size=50)
    probabilities = {method: rng.dirichlet([1, 1, 1], size=50) for method in predicted}
    of_classes = _score_target(ClassTarget(names[-1], np.sort(classes)), classes[codes], probabilities, seed=0)
    history = pd.DataFrame(
        {
            "member": np.repeat([0, 1], 5),
            "epoch": np.tile(np.arange(1, 6), 2),
            "objective": np.tile([900.0, 50.0, 20.0, 12.0, 11.0], 2),
            "validation_loss": [0.9, 0.7, 0.5, 0.6, 0.6, 0.8, 0.7, 0.6, 0.4, 0.5],
        }
    )
    columns = tuple(
        _TableColumn(name, "categorical", name == names[-1], names[:2], 9, k, k / 50, f"note on {name}", 0.1 * k)
        for k, name in enumerate(names)
    )
    return ReportContent(
        title=f"What predicts {names[-1]}",
        estimator="CastleRegressor",
        date="2026-01-31",
        n_rows=50,
        n_columns=len(names) - 1,
        targets=(names[-1],),
        seed="0",
        evaluation=Comparison(0.95, (scores, of_classes._replace(target=names[0])), "How it was measured."),
        graph=_graph_content(random_graph(names, n_edges)),
        what_if=handmade_what_if(names),
        training=_training(history, 0.45),
        columns=columns,
        settings=(("constraints", repr(names[:3]), True),),
        versions=(("castlereg", "1"),),
    )


def handmade_what_if(names: tuple[str, ...]) -> WhatIfContent:
    """A panel in which the first column has numbers, the second levels with these names, the third no known effect."""
    target = names[-1]
    outcomes = (
        Outcome(target, f"mean of {target}", 5.0),
        Outcome(names[0], f"probability that {names[0]} is {names[1]}", 0.5, level=names[1]),
    )

    def curves(cause: str, n_values: int, share: float) -> tuple[Curve, ...]:
        def curve(outcome: Outcome, unit: float) -> Curve:
            caused, nothing = unit * np.arange(1.0, n_values + 1), np.full(n_values, np.nan)
            quantiles = caused[:, None] + unit * np.array([-3, -1, 0, 1, 3])
            effect = Effect(
                cause,
                outcome.target,
                outcome.level,
                (None,) * n_values,
                Answer(caused, caused - unit / 2, caused + unit / 2, nothing, nothing),
                quantiles * (np.nan if outcome.is_probability else 1.0),
                np.where(np.arange(n_values) > 0, 2 * caused, np.nan),  # no row has the first value
                Direction(share, 0.0),
                0.9,
                (f"Few rows have {cause} = {names[2]}.",),
            )
            return Curve(effect, 1.5 * caused, decimals=2)

        return curve(outcomes[0], 1.0), curve(outcomes[1], 0.02)

    def numbers(name: str, n_values: int, share: float) -> SetColumn:
        positions = tuple(k + 0.5 for k in range(n_values))
        return SetColumn(name, tuple(map(str, positions)), positions, False, "", curves(name, n_values, share))

    levels, note = names[: min(len(names), 12)], "The 12 most frequent of 40 levels."
    at = tuple(map(float, range(len(levels))))
    columns = (
        numbers(names[0], 10, 1.0),
        SetColumn(names[1], levels, at, True, note, curves(names[1], len(levels), 1.0)),
        numbers(names[2], 8, 0.5),
    )
    return WhatIfContent(outcomes, columns, 9, 30, 50, 100, 0.9, 30, ("A caveat of all answers.",))
