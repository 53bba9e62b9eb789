"""Content of reports without any training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from castlereg import CausalGraph
from castlereg.report import ReportContent
from castlereg.report.content import Evaluation
from castlereg.report.description import Column, Setting
from castlereg.report.graph_view import graph_content
from castlereg.report.scores import score_target
from castlereg.report.training_curves import training_content
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
    """Edges from earlier to later names, of three networks that do not quite agree; the last name is the target."""
    rng = np.random.default_rng(seed)
    p = len(names)
    cause, effect = np.triu_indices(p, k=1)
    kept = np.sort(rng.choice(len(cause), n_edges, replace=False))
    weights = np.zeros((3, p, p))
    weights[:, cause[kept], effect[kept]] = rng.uniform(0.1, 1.0, size=(3, n_edges))
    weights[0] = weights[0].T
    return CausalGraph.from_members(weights, list(names), target=names[-1], replicas=weights)


def handmade(names: tuple[str, ...], n_edges: int = 15) -> ReportContent:
    """A report on a table with these columns, of which the last is the target."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=50)
    methods = ("CASTLE", "plain network", "random forest", "gradient boosting")
    predicted = {method: y + rng.normal(size=50) for method in methods} | {"guess": np.zeros(50)}
    scores = score_target(NumericTarget.fit(y, names[-1]), y, predicted, seed=0)
    classes = np.array(names[:3], dtype=object)
    codes = rng.integers(3, size=50)
    probabilities = {method: rng.dirichlet([1, 1, 1], size=50) for method in predicted}
    of_classes = score_target(ClassTarget(names[-1], np.sort(classes)), classes[codes], probabilities, seed=0)
    history = pd.DataFrame(
        {
            "member": np.repeat([0, 1], 5),
            "epoch": np.tile(np.arange(1, 6), 2),
            "objective": np.tile([900.0, 50.0, 20.0, 12.0, 11.0], 2),
            "validation_loss": [0.9, 0.7, 0.5, 0.6, 0.6, 0.8, 0.7, 0.6, 0.4, 0.5],
        }
    )
    columns = tuple(
        Column(name, "categorical", name == names[-1], names[:2], 9, k, k / 50, f"note on {name}")
        for k, name in enumerate(names)
    )
    return ReportContent(
        title=f"What predicts {names[-1]}",
        model="CASTLE",
        estimator="CastleRegressor",
        date="2026-01-31",
        n_rows=50,
        n_columns=len(names) - 1,
        targets=(names[-1],),
        seed="0",
        evaluation=Evaluation(5, 1000, 0.95, (scores, replace(of_classes, target=names[0])), "How it was measured."),
        graph=graph_content(random_graph(names, n_edges)),
        what_if=handmade_what_if(names),
        training=training_content(history, 0.45),
        columns=columns,
        settings=(Setting("constraints", repr(names[:3]), True),),
        versions=(("castlereg", "1"),),
    )


def handmade_what_if(names: tuple[str, ...]) -> WhatIfContent:
    """A panel in which the first column has numbers, the second levels with these names, the third no known effect."""
    target = names[-1]
    outcomes = (
        Outcome(target, f"mean of {target}", 5.0, False),
        Outcome(names[0], f"probability that {names[0]} is {names[1]}", 0.5, True),
    )

    def curves(cause: str, n_values: int, is_known: bool) -> tuple[Curve, ...]:
        def curve(outcome: Outcome, unit: float) -> Curve:
            caused = [unit * (k + 1) for k in range(n_values)]
            path = f"50% of the graphs that may be true have a path from {cause} to {outcome.target}."
            return Curve(
                is_known=is_known,
                share=0.5,
                path=path,
                remark="" if is_known else f"It is not known whether {cause} has an effect.",
                notes=(f"Few rows have {cause} = {names[2]}.",),
                caused=tuple(caused),
                low=tuple(value - unit / 2 for value in caused),
                high=tuple(value + unit / 2 for value in caused),
                associated=(None, *(2 * value for value in caused[1:])),
                predicted=tuple(1.5 * value for value in caused),
                quantiles=()
                if outcome.is_probability
                else tuple(tuple(value + unit * step for step in (-3, -1, 0, 1, 3)) for value in caused),
                decimals=2,
            )

        return curve(outcomes[0], 1.0), curve(outcomes[1], 0.02)

    levels = names[: min(len(names), 12)]
    columns = (
        SetColumn(
            names[0],
            tuple(f"{k}.5" for k in range(10)),
            tuple(k + 0.5 for k in range(10)),
            "",
            curves(names[0], 10, True),
        ),
        SetColumn(names[1], levels, (), "The 12 most frequent of 40 levels.", curves(names[1], len(levels), True)),
        SetColumn(
            names[2],
            tuple(f"{k}.5" for k in range(8)),
            tuple(k + 0.5 for k in range(8)),
            "",
            curves(names[2], 8, False),
        ),
    )
    return WhatIfContent(outcomes, columns, 9, 30, 50, 100, 0.9, 30, ("A caveat of all answers.",))
