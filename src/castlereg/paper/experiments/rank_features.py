"""Figure 3, left: average rank against the number of features."""

from __future__ import annotations

from castlereg.paper.experiments.description import Scale, Settings
from castlereg.paper.experiments.synthetic_ranks import SyntheticRanks, worlds


class RankFeatures(SyntheticRanks):
    """Average ranks on graphs of growing size, with fifty rows per node."""

    name = "rank_features"
    title = "Average rank against the number of nodes"
    shown_in = "Figure 3, left"
    grows = "n_nodes"
    axis = "nodes"
    claim = "CASTLE has the highest rank of all methods at every number of features, and does not degrade"

    def units(self, scale: Scale) -> list[Settings]:
        """List graphs of growing size."""
        if scale == "quick":
            cases = [{"n_nodes": 6, "n_rows": 100, "n_noise": 0, "draw": 0}]
            return worlds(cases, scale, cv=2, max_epochs=3, methods=("Baseline", "CASTLE"))
        draws = {10: 10, 50: 10, 100: 10, 150: 3} if scale == "standard" else dict.fromkeys((10, 50, 100, 150), 10)
        cases = [
            {"n_nodes": nodes, "n_rows": 50 * nodes, "n_noise": 0, "draw": draw}
            for nodes, n_draws in draws.items()
            for draw in range(n_draws)
        ]
        return worlds(cases, scale)
