"""Figure 8: learned weights of targets that have no parents."""

from __future__ import annotations

import pandas as pd

from castlereg.paper.experiments.description import Verdict
from castlereg.paper.experiments.weight_roles import WeightRoles


class WeightsWithoutParents(WeightRoles):
    """Children, spouses and noise: there are no siblings without parents."""

    name = "weights_without_parents"
    title = "Learned weights, target without parents"
    shown_in = "Figure 8"
    role = "without_parents"
    kinds = ("children", "spouses", "distant", "noise")

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge whether children come before spouses."""
        mean = self.summary(results).set_index("kind")["mean weight"]
        seen = ", ".join(f"{kind} {value:.3f}" for kind, value in mean.items())
        more = mean["children"] > mean.get("spouses", 0.0)
        return [
            Verdict(
                "without parents, CASTLE predicts from children rather than spouses",
                "reproduced" if more else "not reproduced",
                seen,
            )
        ]
