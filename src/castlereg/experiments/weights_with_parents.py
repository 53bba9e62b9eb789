"""Figure 7: learned weights of targets that have parents."""

from __future__ import annotations

import pandas as pd

from castlereg.experiments.description import Verdict
from castlereg.experiments.weight_roles import WeightRoles


class WeightsWithParents(WeightRoles):
    """Parents, children, spouses, siblings and noise."""

    name = "weights_with_parents"
    title = "Learned weights, target with parents"
    shown_in = "Figure 7"
    role = "with_parents"
    kinds = ("parents", "children", "spouses", "siblings", "distant", "noise")

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge whether parents have the largest weights and noise nearly none."""
        mean = self.summary(results).set_index("kind")["mean weight"]
        seen = ", ".join(f"{kind} {value:.3f}" for kind, value in mean.items())
        return [
            Verdict(
                "with parents there, CASTLE predicts from them rather than from children",
                "reproduced" if mean.idxmax() == "parents" else "not reproduced",
                seen,
            ),
            Verdict(
                "weights of noise columns are near zero",
                "reproduced" if mean["noise"] < 0.1 * mean.max() else "partly",
                f"{mean['noise'] / mean.max():.2f} of the largest kind's mean",
            ),
        ]
