"""Tables 3 and 5: ten methods on the paper's regression tables."""

from __future__ import annotations

from typing import ClassVar

import pandas as pd

from castlereg.paper.experiments import printed
from castlereg.paper.experiments.real_tables import RealTables


class RealRegression(RealTables):
    """Standardized mean squared error on the regression tables."""

    name = "real_regression"
    title = "Regression on real tables"
    shown_in = "Tables 3 and 5"
    task = "regression"
    tables = ("BH", "WQ", "FB", "BC", "SP", "CM")
    bundled = "diabetes"
    printed: ClassVar[pd.DataFrame] = printed.REGRESSION
