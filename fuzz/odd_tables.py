"""Whole problems: a table in some form, a target, weights, and an estimator with its options."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from castlereg import (
    CastleClassifier,
    CastleClassifierCV,
    CastleMultiOutput,
    CastleRegressor,
    CastleRegressorCV,
    NetworkClassifier,
    NetworkMultiOutput,
    NetworkRegressor,
    Recipe,
)
from castlereg.regularizers import L2, Dropout
from fuzz.odd_columns import NAMES, ODD, TAME, TEXTS, Rng, with_missing

# Most tables have one of these structures and are odd in all else: a new structure is compiled in half a second.
_STRUCTURES, _IN_A_ROW = 60, 50


@dataclass
class Problem:
    """A problem to fit; ``names`` are the column names as text."""

    X: Any
    y: Any
    weight: Any
    estimator: Any
    names: list[str]
    frame: pd.DataFrame | None = None  # of which X was made
    about: dict[str, Any] = field(default_factory=dict)


def problem(seed: int) -> Problem:
    """Draw a problem."""
    rng = np.random.default_rng([1, seed])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        is_tame = rng.random() < 0.7
        structure = np.random.default_rng([2, seed // _IN_A_ROW % _STRUCTURES]) if is_tame else rng
        n = _rows(rng, is_tame)
        kinds = structure.choice(list(TAME) if is_tame else [*TAME, *TAME, *ODD], structure.integers(1, 6)).tolist()
        if not is_tame and rng.random() < 0.02:
            kinds = []
        has_missing = structure.random(len(kinds)) < 0.3
        series = [_series({**TAME, **ODD}[kind](rng, n)) for kind in kinds]
        series = [
            _masked(rng, column, is_tame) if missing else column
            for column, missing in zip(series, has_missing, strict=True)
        ]
        if series and not is_tame and rng.random() < 0.1:
            series[-1] = series[0].copy()  # the same column twice
        frame = _named(rng, series, n, odd=rng.random() < 0.3)
        if not is_tame and rng.random() < 0.05 and n:
            where = np.arange(n) == rng.integers(n)  # a row without values
            frame = frame.apply(lambda column: _emptied(column, where))
        task = str(structure.choice(["numbers", "classes", "classes", "numbers", "several"]))
        y = _target(structure, rng, n, task, is_tame)
        X = frame if rng.random() < 0.75 else _form(rng, frame)
        weight = None if rng.random() < 0.85 else _weight(rng, n, is_tame)
        estimator = _estimator(structure, rng, task, frame)
    return Problem(X, y, weight, estimator, [str(name) for name in frame.columns], frame, {"kinds": kinds, "rows": n})


def _rows(rng: Rng, is_tame: bool) -> int:
    if is_tame:
        return int(rng.integers(18, 31)) if rng.random() < 0.9 else int(rng.integers(1, 18))
    return int(rng.choice([rng.integers(0, 20), rng.integers(20, 31), rng.integers(20, 31), rng.integers(40, 63)]))


def _series(values: Any) -> pd.Series:
    """Return a column; text is sometimes stored as objects and sometimes, as pandas does, in Arrow's memory."""
    try:
        return pd.Series(values)
    except UnicodeError:
        return pd.Series(values, dtype=object)


def _masked(rng: Rng, column: pd.Series, is_tame: bool) -> pd.Series:
    try:
        return with_missing(rng, column, is_tame)
    except (TypeError, ValueError, NotImplementedError):  # types without missing values
        return column


def _emptied(column: pd.Series, where: Any) -> pd.Series:
    try:
        return column.mask(where)
    except (TypeError, ValueError, NotImplementedError):
        return column


def _named(rng: Rng, series: list[pd.Series], n: int, odd: bool) -> pd.DataFrame:
    frame = pd.concat(series, axis=1) if series else pd.DataFrame(index=range(n))
    if odd:
        names: list[Any] = rng.choice(np.array(NAMES, object), len(series), replace=bool(rng.random() < 0.15)).tolist()
        if rng.random() < 0.1 and names:
            names[0] = [0, 1.5, None, ("t", 1), pd.Timestamp("2020-01-01"), b"x", np.nan, True][int(rng.integers(8))]
    else:
        names = [f"c{k}" for k in range(len(series))]
    index = np.empty(len(names), object)
    for k, name in enumerate(names):
        index[k] = name
    frame.columns = pd.Index(index, dtype=object, tupleize_cols=False)
    if rng.random() < 0.1:
        frame.index = pd.Index(rng.integers(0, 3, n))
    return frame


def _target(structure: Rng, rng: Rng, n: int, task: str, is_tame: bool) -> Any:
    odd = not is_tame and rng.random() < 0.3
    if task == "several":
        first = pd.Series(rng.normal(size=n) * 10.0 ** rng.integers(-3, 4))
        second = pd.Series(rng.permutation(np.resize(np.array(["u", "v", "w"], object), n)))
        third = pd.Series(rng.permutation(np.resize([0, 1], n)))
        names = ["r", "s", "t"] if rng.random() < 0.8 else rng.choice(np.array(NAMES, object), 3).tolist()
        y = pd.concat([first, second, third][: 2 + structure.integers(2)], axis=1)
        y.columns = pd.Index(names[: y.shape[1]], dtype=object)
        return y if not odd else y.mask(pd.DataFrame(rng.random(y.shape) < 0.1))
    if odd:
        kinds = {**TAME, **ODD}
        values = _series(kinds[str(rng.choice(list(kinds)))](rng, n))
        return values if rng.random() < 0.5 else values.to_numpy()
    if task == "numbers":
        y = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4)
        if rng.random() < 0.15:
            y = np.asarray(
                [y * 1e35, y * 1e-300, 1e15 + y, rng.integers(0, 2, n), np.full(n, 3.0)][int(rng.integers(5))]
            )
    else:
        two: list[Any] = [["no", "yes"], [0, 1], [False, True], [-1, 1], [1e300, -1e300], ["", "?"], [2**62, 2**62 + 1]]
        three: list[Any] = [
            ["a", "b", "c"],
            [0.0, 0.5, 2.0],
            list(TEXTS[10:13]),
            list(TEXTS[-3:]),
            [3, 1, 2],
            ["é", "e\u0301", "E"],
        ]
        labels = two if structure.random() < 0.5 else three
        chosen = labels[int(rng.integers(len(labels)))]
        codes = rng.permutation(np.resize(np.arange(len(chosen)), n))
        if rng.random() < 0.2 and n:  # one row of another class
            codes[:] = 0
            codes[rng.integers(n)] = 1
        y = np.array(chosen, object if isinstance(chosen[0], str) else None)[codes]
    draw = rng.random()
    if draw < 0.3:
        name = str(rng.choice(np.array(NAMES, object)))
        return _series(y).rename(name if rng.random() < 0.8 else None)
    if draw < 0.35:
        return y.tolist()
    if draw < 0.4:
        return y[:, None]
    if draw < 0.42:
        return y[: n // 2]
    if draw < 0.45 and task == "classes":
        return y if "\ud800" in y else pd.Series(y, dtype="category")
    return y


def _form(rng: Rng, frame: pd.DataFrame) -> Any:
    """Convert a frame to another form: an array, lists, a polars frame, or an unknown type."""
    import polars as pl
    import scipy.sparse as sp

    draw = rng.integers(12)
    try:
        if draw < 3:
            return frame.to_numpy()
        if draw == 3:
            return frame.to_numpy().tolist()
        if draw < 6:
            return pl.from_pandas(frame.rename(columns=str))
        if draw == 6:
            return np.asfortranarray(frame.to_numpy(np.float64))
        if draw == 7:
            return frame.to_numpy(np.float32)[::-1]
        if draw == 8:
            return frame.to_numpy().astype(str)
        if draw == 9:
            return np.ma.masked_invalid(frame.to_numpy(np.float64))
        if draw == 10:
            return sp.csr_matrix(frame.to_numpy(np.float64))
        odd: list[Any] = [
            frame.iloc[:, 0],
            None,
            "text",
            3,
            [],
            [[]],
            frame.to_numpy()[None],
            frame.to_dict(),
            [1, [2]],
        ]
        return odd[int(rng.integers(len(odd)))]
    except Exception:  # not a table that this form can hold
        return frame


def _weight(rng: Rng, n: int, is_tame: bool) -> Any:
    weight = rng.random(n) + 0.01
    draw = rng.integers(3 if is_tame else 12)
    if draw == 1 and n:
        weight[rng.integers(n)] = 0.0
    elif draw == 2:
        weight = weight * 10.0 ** rng.integers(-30, 30)
    elif draw == 3:
        weight = weight * 0
    elif draw == 4:
        weight = -weight
    elif draw == 5 and n:
        weight[0] = rng.choice([np.nan, np.inf, 1e300, 1e-320])
    elif draw == 6:
        weight = weight[:-1]
    elif draw == 7:
        return ["x"] * n
    elif draw == 8:
        return pd.Series(weight, index=rng.permutation(n))
    elif draw == 9:
        return weight * 1e-320
    elif draw == 10:
        return np.full(n, 1e306)
    return weight


def _estimator(structure: Rng, rng: Rng, task: str, frame: pd.DataFrame) -> Any:
    """Choose an estimator for the task; options that change the program are drawn with the structure."""
    options: dict[str, Any] = {
        "hidden_layer_sizes": [(4,), (4,), (3, 3), ()][int(structure.integers(4))],
        "max_epochs": 1 + int(rng.integers(2)),
        "random_state": int(rng.integers(100)),
        "recipe": Recipe(batch_size=16),
    }
    is_castle, is_cv = structure.random() < 0.7, structure.random() < 0.12
    if structure.random() < 0.3:
        options["recipe"] = Recipe(scaling="robust", batch_size=16)
    if structure.random() < 0.15 and not is_cv:
        options |= {"n_members": 2, "bootstrap": bool(rng.random() < 0.5)}
    if frame.shape[1] and rng.random() < 0.1:
        options["categorical_features"] = [int(rng.integers(frame.shape[1]))]
    if task == "classes" and rng.random() < 0.2:
        options["class_weight"] = "balanced"
    if is_cv and task != "several":
        cv = CastleRegressorCV if task == "numbers" else CastleClassifierCV
        return cv((0.01, 0.1), cv=2, **options)
    if is_castle:
        if structure.random() < 0.15:
            options["objective"] = "graph"
        classes: dict[str, Any] = {
            "numbers": CastleRegressor,
            "classes": CastleClassifier,
            "several": CastleMultiOutput,
        }
        return classes[task](0.05, **options)
    regularizers = [(), (L2(0.01),), (Dropout(0.2),)][int(structure.integers(3))]
    plain: dict[str, Any] = {"numbers": NetworkRegressor, "classes": NetworkClassifier, "several": NetworkMultiOutput}
    return plain[task](regularizers, **options)
