"""All acyclicity functions by name, in the order of the tables in docs/acyclicity.md."""

from __future__ import annotations

from typing import Final

from castlereg.acyclicity import Acyclicity, log_determinant, trace_exponential
from castlereg.paper.acyclicity import spectral_radius, trace_polynomial, truncated_series

FUNCTIONS: Final[dict[str, Acyclicity]] = {
    "expm": trace_exponential,
    "series": truncated_series,
    "logdet": log_determinant,
    "polynomial": trace_polynomial,
    "spectral": spectral_radius,
}
