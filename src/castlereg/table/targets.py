"""Targets: numbers or classes, the rule that distinguishes them, their encoding and the decoding of outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit, softmax
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from castlereg.layout import Node
from castlereg.notices import warn_user
from castlereg.table.reading import (
    ALWAYS_MISSING,
    FEW,
    MISSING_MARKS,
    are_codes,
    as_dates,
    as_float,
    as_numbers,
    check_names,
    check_range,
    check_unicode,
    is_frame,
    shown,
    what_is_wrong,
)
from castlereg.table.schema import SMALLEST_RANGE, center_and_spread, is_constant
from castlereg.target_losses import TargetLoss


@dataclass(frozen=True)
class NumericTarget:
    """A numeric target, with its mean and standard deviation, or the center and spread that its loss uses."""

    name: str
    center: float
    spread: float
    loss: TargetLoss | None = None  # None for the squared error

    is_numeric: ClassVar[bool] = True

    @classmethod
    def fit(cls, y: NDArray[np.float64], name: str, loss: TargetLoss | None = None) -> NumericTarget:
        """Measure a target, shape (rows,)."""
        if is_constant(y):
            if 0 < y.max() - y.min() <= SMALLEST_RANGE:
                raise ValueError(f"{name} varies by less than {SMALLEST_RANGE:g}: rescale it")
            raise ValueError(f"{name} is {y[0]:g} in every row: there is nothing to learn from a constant target")
        if loss is None:
            return cls(name, *center_and_spread(y))
        loss.check(y, name)
        return cls(name, *loss.center_and_spread(y, float(y.mean()), float(y.std())), loss)

    @property
    def node(self) -> Node:
        """Node of the target."""
        return Node(target=True, loss=self.loss)

    def checked(self, y: NDArray[Any], what: str = "y") -> NDArray[np.float64]:
        """Check other values of the target and return them as numbers; ``what`` is their name in messages."""
        numbers = _as_target(y, what)
        if self.loss is not None:
            self.loss.check(numbers, what)
        return numbers

    def encode(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the channel, shape (rows, 1)."""
        return (y[:, None] - self.center) / self.spread

    def decode(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert outputs, shape (..., outputs), to values of shape (...), or (..., outputs) with a loss."""
        if self.loss is None:
            return outputs[..., 0] * self.spread + self.center
        return self.loss.meaning(outputs[..., : self.loss.n_outputs]) * self.spread + self.center

    def predicted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert decoded values to those that ``predict`` returns, shape (...)."""
        return values if self.loss is None else values @ self.loss.shares

    def errors(self, values: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the loss of every row, shape (rows,), given decoded values."""
        return np.square(values - y) if self.loss is None else self.loss.errors(self._scaled(values), self._scaled(y))

    def errors_of_predictions(self, predicted: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the loss of every row, given the result of ``predict``; both of shape (rows,)."""
        if self.loss is None:
            return np.square(predicted - y)
        return self.loss.errors_of_predictions(self._scaled(predicted), self._scaled(y))

    def constant(self, y: NDArray[np.float64], weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the best constant prediction for every row, decoded: the mean, or the constant of the loss."""
        if self.loss is None:
            return np.full(len(y), np.average(y, weights=weight))
        values = self.loss.constant(self._scaled(y)) * self.spread + self.center
        return np.broadcast_to(values, (len(y), len(values)))

    def _scaled(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return (values - self.center) / self.spread


@dataclass(frozen=True)
class ClassTarget:
    """A target of two or more classes."""

    name: str
    classes: NDArray[Any]  # sorted

    is_numeric: ClassVar[bool] = False

    @classmethod
    def fit(cls, y: NDArray[Any], name: str) -> ClassTarget:
        """Find the classes of a target, shape (rows,)."""
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(f"{name} has only one class, {classes.tolist()[0]!r}: a classifier needs at least two")
        _check_classes(classes, len(y), name)
        return cls(name, classes)

    @property
    def node(self) -> Node:
        """Node of the target: binary, or categorical for three or more classes."""
        n_classes = len(self.classes)
        return Node("binary", target=True) if n_classes == 2 else Node("categorical", n_classes, target=True)

    def checked(self, y: NDArray[Any], what: str = "y") -> NDArray[Any]:
        """Check that the classes of other values are known, and return the values."""
        self.codes(y, what)
        return y

    def codes(self, y: NDArray[Any], what: str = "y") -> NDArray[np.int64]:
        """Return the class number of each row; ``what`` is the name of the values in messages."""
        try:
            codes = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
            unknown = self.classes[codes] != y
        except TypeError:  # text instead of numbers, or numbers instead of text
            unknown = np.ones(len(y), bool)
        if unknown.any():
            raise ValueError(
                f"{what} has class {y.tolist()[int(np.argmax(unknown))]!r}, which is not in the training data; known "
                f"classes are {self.classes.tolist()}"
            )
        return codes

    def encode(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Return the channels: 0 or 1 for two classes, shape (rows, 1), otherwise one channel per class."""
        codes = self.codes(y)
        return codes[:, None].astype(np.float64) if len(self.classes) == 2 else np.eye(len(self.classes))[codes]

    def decode(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert outputs, shape (..., outputs), to probabilities of shape (..., classes)."""
        if len(self.classes) == 2:
            positive = expit(outputs[..., 0])
            return np.stack([1 - positive, positive], axis=-1)
        return softmax(outputs[..., : len(self.classes)], axis=-1)

    def predicted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities unchanged."""
        return values


def _check_classes(classes: NDArray[Any], n_rows: int, name: str) -> None:
    """Raise for texts that are numbers, dates, identifiers or free text; integers as text may be class numbers."""
    texts = [label for label in classes.tolist() if isinstance(label, str)]
    if len(texts) <= FEW:
        return
    numbers = _plain_numbers(texts)
    if numbers is not None and not np.array_equal(numbers, np.floor(numbers)):
        wrong: str | None = f"numbers, such as {shown(texts)}: predict them with a regressor"
    elif as_dates(texts):
        wrong = f"dates, such as {shown(texts)}: convert them to numbers, such as days"
    else:
        wrong = what_is_wrong(texts)
    if wrong is not None:
        raise ValueError(f"{name} has text that looks like {wrong}")
    if 2 * len(texts) > n_rows:
        raise ValueError(
            f"{name} has text with hardly any repeated values ({len(texts)} different values in {n_rows} rows, such as "
            f"{shown(texts)}): {'choose another target' if numbers is None else 'use a regressor'}"
        )


def _plain_numbers(texts: Sequence[str]) -> NDArray[np.float64] | None:
    """Read texts as numbers; None if one of them is not a number, or if they are codes."""
    numbers = None if are_codes(texts) else as_numbers(texts)
    return None if numbers is None or np.isnan(numbers).any() else numbers


Target = NumericTarget | ClassTarget
TargetKind = Literal["numbers", "classes", "any"]


def check_target(column: NDArray[Any], name: str, kind: TargetKind) -> NDArray[Any]:
    """Check and convert the values of a target of numbers or classes, shape (rows,)."""
    return _as_target(column, name) if kind == "numbers" else _as_classes(column, name)


def fit_target(column: NDArray[Any], name: str, kind: TargetKind, loss: TargetLoss | None = None) -> Target:
    """Learn how to encode a target of numbers, optionally with its own loss, or of classes."""
    return NumericTarget.fit(column, name, loss) if kind == "numbers" else ClassTarget.fit(column, name)


def target_kinds(y: Any, kind: TargetKind) -> list[TargetKind]:
    """Return the kind of each target; ``"any"`` infers it from the values, see :func:`inferred_task`."""
    columns, _ = _columns(y, "y")
    if kind != "any":
        return [kind] * len(columns)
    return ["numbers" if inferred_task(column)[0] == "regression" else "classes" for column in columns]


def read_target(y: Any, what: str = "y") -> tuple[list[NDArray[Any]], list[str]]:
    """Read one or several targets with their names, by default ``what``, and raise for missing values."""
    columns, names = _columns(y, what)
    if len(columns) == 1 and not is_frame(y) and columns[0] is not y and _values(y).ndim == 2:
        warn_user(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
            "(n_samples, ), for example using ravel().",
            DataConversionWarning,
        )
    values = [_values(column) for column in columns]
    for stored, column, name in zip(columns, values, names, strict=True):
        missing = _is_missing(stored)
        if np.any(missing):
            described = what if len(columns) == 1 else f"{what}'s column {name!r}"
            row = int(np.argmax(missing))
            mark = repr(str(column[row])) if isinstance(column[row], str) else "NaN or None"
            raise ValueError(
                f"{described} has {int(missing.sum())} missing values ({mark}), first in row {row}: drop rows "
                "without a target"
            )
    return [_without_objects(column) for column in values], names


def _is_missing(target: Any) -> NDArray[np.bool_]:
    """Return which values of a target are missing: NaN, None, and text that marks it; ``-`` only among numbers."""
    values = _values(target)
    missing = np.asarray(pd.isna(values), bool)
    if values.dtype.kind not in "OUS" or isinstance(getattr(target, "dtype", None), pd.CategoricalDtype):
        return missing
    codes, levels = pd.factorize(values.astype(object))
    texts = [level for level in levels if isinstance(level, str)]
    numbers = None if are_codes(texts) else as_numbers(texts)
    among_numbers = numbers is not None and (len(texts) < len(levels) or not np.isnan(numbers).all())
    marks = MISSING_MARKS if among_numbers else ALWAYS_MISSING
    is_mark = [isinstance(level, str) and level.strip() in marks for level in levels]
    return missing | np.array([*is_mark, False])[codes]


def has_targets(y: Any) -> NDArray[np.bool_]:
    """Return which rows have no missing target."""
    return ~np.any([_is_missing(column) for column in _columns(y, "y")[0]], axis=0)


def _columns(y: Any, what: str) -> tuple[list[Any], list[str]]:
    """Return the targets as stored, and their names."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None")
    if is_frame(y):
        names = [str(name) for name in y.columns]
        columns = [y.iloc[:, j] if hasattr(y, "iloc") else y[name] for j, name in enumerate(y.columns)]
    elif hasattr(y, "to_numpy") and len(y.shape) == 1:
        name = getattr(y, "name", None)
        columns, names = [y], [what if name is None or name == "" else str(name)]
    else:
        values = _values(y)
        if values.ndim not in (1, 2):
            raise ValueError(
                f"y should be a 1d array or have a column for each target, got an array of shape {values.shape}"
            )
        columns = [values] if values.ndim == 1 else list(values.T)
        names = [what] if len(columns) == 1 else [f"{what}{k}" for k in range(len(columns))]
    if not columns:
        raise ValueError(f"{what} has no columns: pass at least one target")
    check_names(names, what)
    return columns, names


def _as_target(column: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Convert a target to finite numbers, also from text; raise for any other value."""
    if column.dtype.kind not in "biuf":
        values = column.tolist()
        if values and all(isinstance(value, str) for value in values):
            values = _numbers_of_texts(values, name)
        for row, value in enumerate(values):
            if not isinstance(value, Number) or isinstance(value, complex):
                raise ValueError(
                    f"{name} has {value!r} in row {row}, which is not a number: for classes, use a classifier"
                )
        column = np.array([as_float(value) for value in values])
    numbers: NDArray[np.float64] = column.astype(np.float64)
    check_range(numbers[:, None], [name], "y")
    return numbers


def _numbers_of_texts(values: list[str], name: str) -> list[Any]:
    """Read texts as numbers; leave other texts unchanged, unless there is a common reason to report."""
    texts = list(dict.fromkeys(values))
    numbers = {text: number[0] for text in texts if (number := as_numbers([text])) is not None}
    numbers = {text: number for text, number in numbers.items() if not np.isnan(number)}
    if 2 * len(numbers) < len(texts) and (wrong := what_is_wrong(texts)) is not None:
        raise ValueError(f"{name} has text that looks like {wrong}")
    return [numbers.get(value, value) for value in values]


def _as_classes(column: NDArray[Any], name: str) -> NDArray[Any]:
    """Check that a target consists of classes that can be sorted."""
    if column.dtype.kind == "O":
        sorts = {str if isinstance(value, str) else type(value) for value in column}
        if str in sorts and len(sorts) > 1:
            raise ValueError(
                f"{name} mixes text with {', '.join(sorted(s.__name__ for s in sorts - {str}))}: convert it to text"
            )
    if column.dtype.kind == "f" and np.isinf(column).any():
        raise ValueError(f"{name} contains infinity in row {int(np.argmax(np.isinf(column)))}, which is not a class")
    with np.errstate(invalid="ignore"):  # scikit-learn converts numbers to integers, even those that are too large
        check_classification_targets(column)
    if column.dtype.kind in "OU":
        check_unicode([str(value) for value in set(column) if isinstance(value, str)], name)
    return column


def _values(y: Any) -> NDArray[Any]:
    """Convert a series or array-like to an array; nullable and categorical series become their values."""
    if issparse(y):
        raise TypeError("y is sparse: pass a dense array, for example y.toarray()")
    if isinstance(y, pd.Index | pd.api.extensions.ExtensionArray):
        y = pd.Series(y)
    if isinstance(y, pd.Series):
        dtype = y.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            y = pd.Series(np.asarray(y))
        elif isinstance(dtype, pd.StringDtype):
            return y.to_numpy(dtype=object, na_value=None)
        elif pd.api.types.is_extension_array_dtype(dtype):
            has_lists = any(isinstance(value, list | tuple | set | dict | np.ndarray) for value in y)
            y = y.to_numpy(dtype=object, na_value=None) if has_lists or y.isna().any() else np.array(y.tolist())
    elif hasattr(y, "to_numpy") and not isinstance(y, np.ndarray):
        y = y.to_numpy()
    try:
        values = np.asarray(y)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError("y has rows of different lengths: pass one number or class for each row and target") from None
    for row, value in enumerate(values if values.dtype == object else ()):
        if isinstance(value, list | tuple | set | dict) or (values.ndim == 1 and isinstance(value, np.ndarray)):
            raise ValueError(f"y has {shown([str(value)])} in row {row}: pass one number or class for each row")
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: y has complex numbers")
    if values.dtype.kind in "mM":
        raise ValueError("y has dates: convert them to numbers, such as days")
    return values


_MOST_CLASSES = 10


def inferred_task(y: Any) -> tuple[Literal["regression", "classification"], str]:
    """Infer the task from the values of a target; return it with the reason.

    Text, booleans, categories and a few integers that repeat (2 to 10 values, each in two rows on average) are classes;
    other numbers, also as objects or text, are a regression. Other text that could not be classes raises.
    """
    is_pandas = isinstance(y, pd.Series | pd.Index | pd.api.extensions.ExtensionArray)
    values = pd.Series(y if is_pandas else np.asarray(y).ravel())
    values = values[~_is_missing(values)]
    if not isinstance(values.dtype, pd.CategoricalDtype) and pd.api.types.infer_dtype(values) == "string":
        codes, texts = pd.factorize(values.to_numpy(object))
        numbers = _plain_numbers(list(texts))
        if numbers is None:
            _check_classes(texts, len(values), str(getattr(y, "name", None) or "y"))
        else:
            values = pd.Series(numbers[codes])
    if values.dtype == object:
        if pd.api.types.infer_dtype(values) == "decimal":
            return "regression", "numbers"
        values = pd.Series(_without_objects(values.to_numpy()))
    distinct = values.nunique()
    few = min(_MOST_CLASSES, max(2, len(values) // 2))
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if not is_number or (2 <= distinct <= few and bool((values == values.round()).all())):
        return "classification", f"{distinct} classes"
    return "regression", "numbers"


def plain_target(column: pd.Series) -> pd.Series:
    """Convert text in a target without missing values to numbers or booleans; return other targets unchanged."""
    values = _without_objects(_values(column))
    if isinstance(column.dtype, pd.CategoricalDtype) or values.dtype != object:
        return column.astype(values.dtype) if column.dtype == object else column
    codes, texts = pd.factorize(values)
    numbers = _plain_numbers(list(texts)) if all(isinstance(text, str) for text in texts) else None
    if numbers is None:
        return column
    is_boolean = texts[0].strip()[0] in "TtFf"
    return pd.Series((numbers.astype(bool) if is_boolean else numbers)[codes], column.index, name=column.name)


def _without_objects(values: NDArray[Any]) -> NDArray[Any]:
    """Convert numbers or booleans stored as objects to an array of their type; return other values unchanged."""
    stored = pd.api.types.infer_dtype(values, skipna=False) if values.dtype == object else ""
    return np.array(values.tolist()) if stored in ("integer", "floating", "mixed-integer-float", "boolean") else values


ClassWeight = Mapping[Any, float] | str | Sequence[Any] | None


def check_class_weight(class_weight: ClassWeight) -> None:
    """Raise unless the option is None, "balanced" or a dict, or a list of these."""
    for entry in class_weight if isinstance(class_weight, list | tuple) else [class_weight]:
        if not (entry is None or isinstance(entry, Mapping) or (isinstance(entry, str) and entry == "balanced")):
            raise ValueError(f"class_weight={entry!r} must be None, 'balanced' or a dict of classes to weights")
