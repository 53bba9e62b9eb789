"""Our searches, and variants without the causal terms or without CASTLE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from benchmarks.accuracy.cells import Data
from castlereg import Castle, CastleClassifierCV, CastleRegressorCV
from castlereg.regularizers import L2, Dropout

_PLAIN = ((), (L2(0.01),), (L2(0.1),), (Dropout(0.2),))
_NOT_CAUSAL = Castle(reconstruction=False, acyclicity=None)


def _castle(**options: Any) -> Callable[[Data], Any]:
    return lambda data: (CastleClassifierCV if data.classes else CastleRegressorCV)(random_state=0, **options)


@dataclass
class _PlainNetwork:
    """Networks without CASTLE, with the regularizers that have the lowest loss on the folds of the paper's grid."""

    data: Data

    def fit(self, X: Any, y: Any) -> Self:
        options: dict[str, Any] = {"search": "paper", "castle": _NOT_CAUSAL, "reg_betas": (0.0,)}
        searches = [_castle(**options, regularizers=others)(self.data).fit(X, y) for others in _PLAIN]
        best = min(searches, key=lambda search: search.validation_loss_)
        self.predict, self.predict_proba = best.predict, getattr(best, "predict_proba", None)
        return self


OURS: dict[str, Callable[[Data], Any]] = {
    "paper": _castle(search="paper"),
    "fast": _castle(search="fast"),
    "best": _castle(search="best"),
    "best without causal terms": _castle(search="best", castle=_NOT_CAUSAL),
    "plain network": _PlainNetwork,
}


def predict(name: str, data: Data) -> Any:
    """Fit a search; return values, or probabilities in the order of the sorted classes."""
    model = OURS[name](data).fit(data.X, data.y)
    return model.predict_proba(data.X_test) if data.classes else model.predict(data.X_test)
