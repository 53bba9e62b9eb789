"""The ten methods of the paper with their grids of strengths, two later methods, and custom ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from castlereg.options import did_you_mean
from castlereg.regularizers import (
    L1,
    L2,
    Autoencoder,
    BatchNorm,
    Castle,
    DeepLasso,
    Dropout,
    InputNoise,
    MixUp,
    Regularizer,
    Tangos,
)
from castlereg.regularizers.protocol import check_regularizers

Candidates = tuple[tuple[Regularizer, ...], ...]

CASTLE_BETAS = (0.001, 0.01, 0.1, 1.0)

# The paper's grids ("Benchmarks"); for the noise it prints {0.1, 0.01, 0.01}. Each method is a sequence of candidates
# that differ in strength; the one with the lowest validation loss is chosen.
PAPER_METHODS: dict[str, Candidates] = {
    "Baseline": ((),),
    "L1": ((L1(0.1),), (L1(0.01),), (L1(0.001),)),
    "L2": ((L2(0.1),), (L2(0.01),), (L2(0.001),)),
    "Dropout 0.2": ((Dropout(0.2),),),
    "Dropout 0.5": ((Dropout(0.5),),),
    "SAE": ((Autoencoder(),),),
    "Batch Norm": ((BatchNorm(),),),
    "Input Noise": ((InputNoise(0.1),), (InputNoise(0.01),)),
    "MixUp": ((MixUp(),),),
    "CASTLE": tuple((Castle(beta),) for beta in CASTLE_BETAS),
}

# Published after the paper, with as many candidates as CASTLE and L1. The strengths are within the ranges that their
# authors use; see the notes of the two regularizers.
LATER_METHODS: dict[str, Candidates] = {
    "TANGOS": tuple((Tangos(*strengths),) for strengths in ((0.1, 0.1), (0.1, 1.0), (1.0, 0.1), (1.0, 1.0))),
    "Deep Lasso": ((DeepLasso(1.0),), (DeepLasso(0.1),), (DeepLasso(0.01),)),
}

_METHODS = PAPER_METHODS | LATER_METHODS


def checked_methods(methods: Any, hidden_layer_sizes: tuple[int, ...] | None = None) -> dict[str, Candidates]:
    """Return the candidates of each method in the option ``methods``; check them for a network of these widths.

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
        grids = {name: _method(name) for name in methods}
    else:
        raise ValueError(
            f"methods={methods!r} must be 'paper', a sequence of method names, or a mapping of names to regularizers"
        )
    if not grids:
        raise ValueError("methods is empty; pass at least one method")
    return {name: _candidates(name, grid, hidden_layer_sizes) for name, grid in grids.items()}


def _method(name: Any) -> Candidates:
    if isinstance(name, str) and name in _METHODS:
        return _METHODS[name]
    raise ValueError(
        f"unknown method {name!r}{did_you_mean(str(name), _METHODS, cutoff=0.4) or '.'} "
        f"The paper's methods are {', '.join(PAPER_METHODS)}; later ones are {', '.join(LATER_METHODS)}. "
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
