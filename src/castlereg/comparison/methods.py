"""The paper's ten methods with the strengths it tries, and how users name others."""

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


def checked_methods(methods: Any) -> dict[str, Candidates]:
    """Turn what a user gave into methods with candidates.

    Parameters
    ----------
    methods : "paper", sequence of str, or mapping
        The paper's ten; some of them by name; or names of your own, each with a sequence of regularizers or with a
        sequence of such sequences, the candidates.

    Returns
    -------
    dict of str to tuple of tuple of Regularizer

    Examples
    --------
    >>> checked_methods(["Baseline", "Dropout 0.2"])
    {'Baseline': ((),), 'Dropout 0.2': ((Dropout(rate=0.2),),)}
    >>> checked_methods({"both": [Dropout(0.2), L2(0.01)]})
    {'both': ((Dropout(rate=0.2), L2(strength=0.01)),)}
    """
    if isinstance(methods, str) and methods == "paper":
        return dict(PAPER_METHODS)
    if isinstance(methods, Mapping):
        chosen = {str(name): _candidates(str(name), value) for name, value in methods.items()}
    elif isinstance(methods, Iterable):
        names = [methods] if isinstance(methods, str) else list(methods)
        chosen = {name: _named(name) for name in names}
    else:
        raise ValueError(
            f"methods={methods!r} must be 'paper', names of methods, or a mapping of names to regularizers"
        )
    if not chosen:
        raise ValueError("methods is empty: give at least one")
    return chosen


def _named(name: Any) -> Candidates:
    if isinstance(name, str) and name in PAPER_METHODS:
        return PAPER_METHODS[name]
    hint = did_you_mean(str(name), PAPER_METHODS, cutoff=0.4) or "."
    raise ValueError(
        f"methods has {name!r}, which is none of {', '.join(PAPER_METHODS)}{hint} For your own regularizers give a "
        "mapping such as {'mine': [Dropout(0.2), L2(0.01)]}"
    )


def _candidates(name: str, value: Any) -> Candidates:
    try:
        is_grid = isinstance(value, Sequence) and value and all(isinstance(one, list | tuple) for one in value)
        candidates = tuple(check_regularizers(one) for one in (value if is_grid else [value]))
    except ValueError as error:
        raise ValueError(f"method {name!r}: {error}") from error
    kinds = {tuple(type(one) for one in candidate) for candidate in candidates}
    if len(kinds) > 1:
        raise ValueError(
            f"method {name!r} has candidates with different regularizers: candidates differ in strength; give each its "
            "own name"
        )
    return candidates
