"""Figure 8: learned weights for targets without parents."""

from __future__ import annotations

import pandas as pd

from castlereg.paper.experiments.description import Verdict
from castlereg.paper.experiments.weight_roles import WeightRoles


class WeightsWithoutParents(WeightRoles):
    """Weights of children, spouses and noise; without parents there are no siblings."""

    name = "weights_without_parents"
    title = "Learned weights, target without parents"
    shown_in = "Figure 8"
    role = "without_parents"
    kinds = ("children", "spouses", "distant", "noise")

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge whether children have larger weights than spouses."""
        mean = self.summary(results).set_index("kind")["mean weight"]
        means = ", ".join(f"{kind} {value:.3f}" for kind, value in mean.items())
        more = mean["children"] > mean.get("spouses", 0.0)
        return [
            Verdict(
                "if the target has no parents, CASTLE predicts from its children rather than from spouses",
                "reproduced" if more else "not reproduced",
                means,
            )
        ]
