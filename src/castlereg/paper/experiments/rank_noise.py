"""Figure 3, right: average rank against the number of pure noise columns."""

from __future__ import annotations

from castlereg.paper.experiments.description import Scale, Settings
from castlereg.paper.experiments.synthetic_ranks import SyntheticRanks, worlds


class RankNoise(SyntheticRanks):
    """Average ranks with a growing number of columns that are unrelated to the target."""

    name = "rank_noise"
    title = "Average rank against the number of noise columns"
    shown_in = "Figure 3, right"
    grows = "n_noise"
    axis = "noise columns"
    claim = "CASTLE has the highest rank at every number of noise columns, while SAE degrades"

    def units(self, scale: Scale) -> list[Settings]:
        """List graphs with a growing number of noise columns."""
        if scale == "quick":
            cases = [{"n_nodes": 4, "n_rows": 100, "n_noise": 2, "draw": 0}]
            return worlds(cases, scale, cv=2, max_epochs=3, methods=("Baseline", "CASTLE"))
        nodes, n_draws = 50, 3 if scale == "standard" else 10
        cases = [
            {"n_nodes": nodes, "n_rows": 50 * nodes, "n_noise": noise, "draw": draw}
            for noise in (0, 20, 40, 60, 80, 100)
            for draw in range(n_draws)
        ]
        return worlds(cases, scale)
