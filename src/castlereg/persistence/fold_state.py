"""What cross-validation leaves: the choice among candidates, the folds, their networks and held-out scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.data.rows import Coding
from castlereg.estimators.fitted_network import FittedNetwork
from castlereg.persistence.container import Arrays, StoredArrays
from castlereg.persistence.errors import Unreadable
from castlereg.persistence.json_content import checked, fields
from castlereg.persistence.network_state import read_networks, write_networks
from castlereg.persistence.values import read_value, write_option, write_value

_VALUES = {"results": dict, "index": int, "params": dict, "score": float, "folds": list, "seeds": list, "scores": list}


@dataclass(frozen=True)
class FoldState:
    """The results of a search over folds, and the networks of the chosen candidate."""

    results: dict[str, Any]
    index: int
    params: dict[str, Any]
    score: float
    folds: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    seeds: list[int]  # of the folds
    scores: list[list[NDArray[np.float64]]]  # of held-out rows, by fold and target
    regularizers: Any
    networks: FittedNetwork
    fold_of: NDArray[np.int64]  # (members,), the fold of each network


def write_folds(state: FoldState, final: FittedNetwork, arrays: Arrays) -> dict[str, Any]:
    """Return the choice as JSON; fold networks that are the final ones are not written twice."""
    same = _have_same_weights(state.networks, final)
    arrays["fold_of"] = state.fold_of
    return {
        **{name: write_value(getattr(state, name), arrays) for name in _VALUES},
        "regularizers": write_option("best_regularizers_", state.regularizers, arrays),
        "networks": None if same else write_networks(state.networks, "fold_networks", arrays),
    }


def read_folds(content: Any, final: FittedNetwork, coding: Coding, arrays: StoredArrays) -> FoldState:
    """Undo :func:`write_folds`."""
    stored = fields(content, "its choice", networks=dict | None, regularizers=object, **dict.fromkeys(_VALUES, object))
    values = {name: read_value(getattr(stored, name), arrays) for name in _VALUES}
    for name, kind in _VALUES.items():
        if type(values[name]) is not kind:
            raise Unreadable(f"{name} of its choice is a {type(values[name]).__name__} and not a {kind.__name__}")
    same = stored.networks is None
    networks = final if same else read_networks(stored.networks, "fold_networks", coding, arrays)
    fold_of = arrays.take("fold_of", np.int64, (networks.n_members,))
    state = FoldState(
        **values, regularizers=read_value(stored.regularizers, arrays), networks=networks, fold_of=fold_of
    )
    _check(state, len(coding.targets))
    return state


def _check(state: FoldState, n_targets: int) -> None:
    """Raise if the parts do not fit each other."""
    checked(state.index, int, "index of its choice")
    checked(state.seeds, list[int], "seeds of its folds")
    for fold in state.folds:
        if type(fold) is not tuple or len(fold) != 2 or not all(_is_vector(rows, "i") for rows in fold):
            raise Unreadable("its folds are not pairs of row numbers")
    for scores in state.scores:
        if type(scores) is not list or len(scores) != n_targets or not all(_is_vector(row, "f") for row in scores):
            raise Unreadable("the held-out scores of a fold do not fit the targets")
    if len(state.seeds) != len(state.folds) or len(state.scores) != len(np.unique(state.fold_of)):
        raise Unreadable(f"it has {len(state.folds)} folds, and other numbers of seeds or held-out scores")


def _have_same_weights(a: FittedNetwork, b: FittedNetwork) -> bool:
    arrays = (jax.tree.leaves((network.parameters, network.standardization)) for network in (a, b))
    return all(map(np.array_equal, *arrays))


def _is_vector(value: Any, kind: str) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == kind
