"""Figure 7: learned weights for targets with parents."""

from __future__ import annotations

import numpy as np
import pandas as pd

from castlereg.paper.experiments.description import Verdict
from castlereg.paper.experiments.weight_roles import WeightRoles


class WeightsWithParents(WeightRoles):
    """Weights of parents, children, spouses, siblings and noise."""

    name = "weights_with_parents"
    title = "Learned weights, target with parents"
    shown_in = "Figure 7"
    role = "with_parents"
    kinds = ("parents", "children", "spouses", "siblings", "distant", "noise")

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge whether parents have the largest weights and noise nearly none."""
        frame = self.summary(results).set_index("kind")
        mean = frame["mean weight"]
        error = frame["sd over graphs"] / frame["graphs"] ** 0.5
        means = ", ".join(f"{kind} {value:.3f} +- {error[kind]:.3f}" for kind, value in mean.items())
        lead = mean["parents"] - mean["children"]
        clear = lead > 2 * float(np.hypot(error["parents"], error["children"]))
        return [
            Verdict(
                "if the target has parents, CASTLE predicts from them rather than from its children",
                "reproduced" if clear else "partly" if lead > 0 else "not reproduced",
                f"mean weights: {means}; the lead of parents is {'more' if clear else 'less'} than two standard errors",
            ),
            Verdict(
                "weights of noise columns are near zero",
                "reproduced" if mean["noise"] < 0.1 * mean.max() else "partly",
                f"{mean['noise'] / mean.max():.2f} of the largest mean weight of a kind",
            ),
        ]
