"""What knowledge of edges gains on the paper's example graph: paired draws, errors and graph scores.

``python -m benchmarks.known_edges``
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from castlereg import CastleRegressor, CausalGraph, EdgeConstraints
from castlereg.graph.scores import graph_scores
from castlereg.synthetic import example_dag, sample

N_DRAWS = 10


def _known(dag: pd.DataFrame) -> dict[str, dict[str, Any]]:
    causes = [str(name) for name in dag.index[dag["Y"] != 0]]
    others = [str(name) for name in dag.index if name not in [*causes, "Y"]]
    cause, effect = np.nonzero(dag.to_numpy())
    edges = pd.DataFrame({"cause": dag.index[cause], "effect": dag.columns[effect]})
    return {
        "nothing": {},
        "true parents required": {"constraints": EdgeConstraints(required=[(name, "Y") for name in causes])},
        "true non-parents forbidden": {"constraints": EdgeConstraints(forbidden=[(name, "Y") for name in others])},
        "true graph": {"graph": CausalGraph.from_edges(edges, target="Y", nodes=list(dag.columns))},
    }


def run(n_rows: int = 200) -> pd.DataFrame:
    """Return the test error and the scores of the graph for each kind of knowledge, as means over draws."""
    dag = example_dag()
    table = []
    for draw in range(N_DRAWS):
        data = sample(dag, n_rows + 2000, random_state=draw)
        train, test = data.iloc[:n_rows], data.iloc[n_rows:]
        for name, known in _known(dag).items():
            model = CastleRegressor(random_state=draw, constraints=known.get("constraints"))
            model.fit(train.drop(columns="Y"), train["Y"], graph=known.get("graph"))
            error = ((model.predict(test.drop(columns="Y")) - test["Y"]) ** 2).mean() / train["Y"].var()
            scores = graph_scores(model.graph_, dag)
            table.append({"known": name, "draw": draw, "test error": error, **scores[["f1", "auroc"]]})
    frame = pd.DataFrame(table).pivot(index="draw", columns="known")
    rows = []
    for name in _known(dag):
        row: dict[str, Any] = {"known": name}
        for score in ("test error", "f1", "auroc"):
            gain = frame[score][name] - frame[score]["nothing"]
            row |= {score: frame[score][name].mean(), f"{score}, change": gain.mean()}
            row |= {f"{score}, error of change": gain.std() / np.sqrt(N_DRAWS)}
        row["draws with a lower error"] = int((frame["test error"][name] < frame["test error"]["nothing"]).sum())
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Print the tables of some numbers of rows."""
    for n in (100, 200, 500):
        print(f"\n{n} rows")
        print(run(n).round(4).T.to_string())


if __name__ == "__main__":
    main()
