"""Our searches, and variants without the causal terms or without CASTLE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.accuracy.cells import Data
from castlereg import CastleClassifierCV, CastleRegressorCV, NetworkClassifierCV, NetworkRegressorCV
from castlereg.regularizers import L2, Dropout

_PLAIN = [[], [L2(0.01)], [L2(0.1)], [Dropout(0.2)]]


def _castle(**options: Any) -> Callable[[Data], Any]:
    return lambda data: (CastleClassifierCV if data.classes else CastleRegressorCV)(random_state=0, **options)


def _network(**options: Any) -> Callable[[Data], Any]:
    return lambda data: (NetworkClassifierCV if data.classes else NetworkRegressorCV)(random_state=0, **options)


OURS: dict[str, Callable[[Data], Any]] = {
    "paper": _castle(search="paper"),
    "fast": _castle(search="fast"),
    "best": _castle(search="best"),
    "best without causal terms": _network(search="best"),
    "plain network": _network(candidates=_PLAIN),
}


def predict(name: str, data: Data) -> Any:
    """Fit a search; return values, or probabilities in the order of the sorted classes."""
    model = OURS[name](data).fit(data.X, data.y)
    return model.predict_proba(data.X_test) if data.classes else model.predict(data.X_test)
