"""The paper's ten methods with the strengths it tries, and methods that users define."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from castlereg.options import did_you_mean
from castlereg.regularizers import L1, L2, Autoencoder, BatchNorm, Castle, Dropout, InputNoise, MixUp, Regularizer
from castlereg.regularizers.protocol import check_regularizers

Candidates = tuple[tuple[Regularizer, ...], ...]

# The paper's grids ("Benchmarks"). For the noise it prints {0.1, 0.01, 0.01}.
L1_STRENGTHS = L2_STRENGTHS = (0.1, 0.01, 0.001)
DROPOUT_RATES = (0.2, 0.5)
NOISE_SIGMAS = (0.1, 0.01)
CASTLE_BETAS = (0.001, 0.01, 0.1, 1.0)

# Each method is a sequence of candidates that differ in strength; the best by validation loss is taken.
PAPER_METHODS: dict[str, Candidates] = {
    "Baseline": ((),),
    "L1": tuple((L1(strength),) for strength in L1_STRENGTHS),
    "L2": tuple((L2(strength),) for strength in L2_STRENGTHS),
    **{f"Dropout {rate}": ((Dropout(rate),),) for rate in DROPOUT_RATES},
    "SAE": ((Autoencoder(),),),
    "Batch Norm": ((BatchNorm(),),),
    "Input Noise": tuple((InputNoise(sigma),) for sigma in NOISE_SIGMAS),
    "MixUp": ((MixUp(),),),
    "CASTLE": tuple((Castle(beta),) for beta in CASTLE_BETAS),
}


def checked_methods(methods: Any, hidden_layer_sizes: tuple[int, ...] | None = None) -> dict[str, Candidates]:
    """Check the option ``methods`` of :func:`castlereg.compare`, and return the candidates of each method by its name.

    With ``hidden_layer_sizes``, also check that the regularizers suit a network of these widths.

    Examples
    --------
    >>> checked_methods(["Baseline", "Dropout 0.2"])
    {'Baseline': ((),), 'Dropout 0.2': ((Dropout(rate=0.2),),)}
    >>> checked_methods({"both": [Dropout(0.2), L2(0.01)]})
    {'both': ((Dropout(rate=0.2), L2(strength=0.01)),)}
    """
    if isinstance(methods, str):
        methods = PAPER_METHODS if methods == "paper" else [methods]
    if isinstance(methods, Mapping):
        grids = {str(name): value for name, value in methods.items()}
    elif isinstance(methods, Iterable):
        grids = {name: _paper_method(name) for name in methods}
    else:
        raise ValueError(
            f"methods={methods!r} must be 'paper', a sequence of method names, or a mapping of names to regularizers"
        )
    if not grids:
        raise ValueError("methods is empty; name at least one method")
    return {name: _candidates(name, grid, hidden_layer_sizes) for name, grid in grids.items()}


def _paper_method(name: Any) -> Candidates:
    if isinstance(name, str) and name in PAPER_METHODS:
        return PAPER_METHODS[name]
    raise ValueError(
        f"unknown method {name!r}{did_you_mean(str(name), PAPER_METHODS, cutoff=0.4) or '.'} "
        f"The paper's methods are {', '.join(PAPER_METHODS)}. "
        "For other regularizers, pass a mapping such as {'mine': [Dropout(0.2), L2(0.01)]}."
    )


def _candidates(name: str, value: Any, sizes: tuple[int, ...] | None) -> Candidates:
    is_grid = isinstance(value, Sequence) and value and all(isinstance(item, list | tuple) for item in value)
    try:
        candidates = tuple(check_regularizers(candidate, sizes) for candidate in (value if is_grid else [value]))
    except ValueError as error:
        raise ValueError(f"method {name!r}: {error}") from error
    if len({tuple(map(type, candidate)) for candidate in candidates}) > 1:
        raise ValueError(
            f"method {name!r} has candidates with different regularizers; candidates may differ only in strength, so "
            "give each combination its own name"
        )
    return candidates
