"""One small model, and the content of its report, for all tests of this folder."""

from __future__ import annotations

import datetime
from contextlib import AbstractContextManager
from unittest import mock

import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

from castlereg import CastleRegressor
from castlereg.report import ReportContent, report_content
from castlereg.search import recipe

Fitted = tuple[CastleRegressor, pd.DataFrame, pd.Series]
DATE = datetime.date(2026, 1, 31)


def short_search() -> AbstractContextManager[object]:
    """Train the candidates of a search for three epochs only."""
    return mock.patch.multiple(recipe, _EPOCHS=((10**6, 3),), _FEWEST_EPOCHS=3)


@pytest.fixture(scope="session")
def fitted() -> Fitted:
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X, y = X.iloc[:60, :4], y.iloc[:60].rename("progression")
    # On as many rows as one of two folds has: one program trains them all.
    return CastleRegressor(max_epochs=3, n_members=2, random_state=3).fit(X[:30], y[:30]), X, y


@pytest.fixture(scope="session")
def content(fitted: Fitted) -> ReportContent:
    return report_content(*fitted, cv=2, date=DATE)
