"""Figure 3, middle: average rank against the number of rows per node."""

from __future__ import annotations

from typing import Any

import pandas as pd

from castlereg.paper.experiments.description import Scale, Settings
from castlereg.paper.experiments.synthetic_ranks import SyntheticRanks, worlds


class RankRows(SyntheticRanks):
    """Average ranks with 20 to 200 rows per node."""

    name = "rank_rows"
    title = "Average rank against the number of rows per node"
    shown_in = "Figure 3, middle"
    grows = "rows per node"
    axis = "rows per node"
    claim = "CASTLE has the highest rank at every number of rows; the others catch up at 200 rows per node"

    def units(self, scale: Scale) -> list[Settings]:
        """List problems with a growing number of rows."""
        if scale == "quick":
            cases = [{"n_nodes": 6, "n_rows": 100, "n_noise": 0, "draw": 0}]
            return worlds(cases, scale, cv=2, max_epochs=3, methods=("Baseline", "CASTLE"))
        draws = {10: 10, 50: 5} if scale == "standard" else dict.fromkeys((10, 50, 100, 150), 10)
        cases = [
            {"n_nodes": nodes, "n_rows": alpha * nodes, "n_noise": 0, "draw": draw}
            for alpha in (20, 50, 100, 150, 200)
            for nodes, n_draws in draws.items()
            for draw in range(n_draws)
        ]
        return worlds(cases, scale)

    def ranked(self, results: pd.DataFrame) -> pd.DataFrame:
        """Add ranks and rows per node."""
        per_node: Any = results["n_rows"] // results["n_nodes"]
        return super().ranked(results).assign(**{"rows per node": per_node})
