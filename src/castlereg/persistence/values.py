"""Values of options and results as JSON, with an explicit rule for each kind.

None, booleans, integers, finite numbers, texts and lists are represented by themselves. Anything else is
``{"kind": name, "value": content}``, where the name is one of those below: it is looked up in this module
and never imported.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import model_selection as splitters

from castlereg import regularizers
from castlereg.causal.graph import EdgeConstraints
from castlereg.estimators.recipe import Recipe
from castlereg.notices import warn_user
from castlereg.persistence.container import DTYPES, Arrays, StoredArrays
from castlereg.persistence.json_content import Unreadable, checked, fields
from castlereg.target_losses import Huber, Poisson, Quantiles

_MAX_DEPTH = 12
_MAX_CHARACTERS = 50_000_000  # of a text array, in which every text takes the space of the longest

CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(regularizers.Castle, regularizers.L1, regularizers.L2, regularizers.Dropout, regularizers.Autoencoder),
        *(regularizers.BatchNorm, regularizers.Corruption, regularizers.InputNoise, regularizers.MixUp),
        *(regularizers.DeepLasso, regularizers.Tangos),
        *(EdgeConstraints, Recipe, Huber, Poisson, Quantiles),
        *(splitters.KFold, splitters.StratifiedKFold, splitters.GroupKFold, splitters.StratifiedGroupKFold),
        *(splitters.ShuffleSplit, splitters.StratifiedShuffleSplit, splitters.GroupShuffleSplit),
        *(splitters.TimeSeriesSplit, splitters.PredefinedSplit, splitters.LeaveOneOut, splitters.LeaveOneGroupOut),
    )
}
"""Classes whose objects are written as constructor arguments, which are attributes of the same names."""


class NoWrittenForm(Exception):
    """A value that only pickle could store."""


LOST = {"kind": "lost", "value": None}
"""The placeholder for an option that only pickle could store."""


def write_option(name: str, value: Any, arrays: Arrays) -> Any:
    """Write an option, or :data:`LOST` with a warning, because no option is needed to predict."""
    with_value = dict(arrays)
    try:
        content = write_value(value, with_value)
    except NoWrittenForm as error:
        advice = "" if name.endswith("_") else "; set it before you fit again"
        warn_user(
            f"{name}={value!r} is not saved: {error}. The loaded model makes the same predictions, but has "
            f"{name}=None{advice}"
        )
        return LOST
    arrays |= with_value  # without arrays of a value that was not saved
    return content


def write_value(value: Any, arrays: Arrays, depth: int = 0) -> Any:
    """Return a value as JSON; arrays of numbers are added to the others."""
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    if depth > _MAX_DEPTH:
        raise NoWrittenForm("it is nested too deeply")

    def inner(values: Any) -> list[Any]:
        return [write_value(item, arrays, depth + 1) for item in values]

    if type(value) is list:
        return inner(value)
    kind, content = _written(value, arrays, inner)
    return {"kind": kind, "value": content}


def _written(value: Any, arrays: Arrays, inner: Callable[[Any], list[Any]]) -> tuple[str, Any]:
    """Return the kind of a value and its content."""
    cls, dtype = type(value), getattr(value, "dtype", None)
    if cls is float:
        return "float", repr(value)
    if cls is tuple:
        return "tuple", inner(value)
    if cls is dict:
        return "dict", [inner(pair) for pair in value.items()]
    if CLASSES.get(cls.__name__) is cls:
        names = inspect.signature(cls).parameters
        return cls.__name__, dict(zip(names, inner(getattr(value, name) for name in names), strict=True))
    if isinstance(dtype, np.dtype) and dtype.name in DTYPES:
        if isinstance(value, np.generic):
            return "numpy number", [dtype.name, *inner([value.item()])]
        if cls is np.ndarray:
            return "array", _add(value, arrays)
        if cls is np.ma.MaskedArray:
            return "masked array", [_add(value.data, arrays), _add(np.ma.getmaskarray(value), arrays)]
    if cls is np.ndarray and value.ndim == 1 and value.dtype.kind == "O":
        return "object array", inner(value)
    if cls is np.ndarray and value.ndim == 1 and value.dtype.kind == "U":
        width = value.dtype.itemsize // np.dtype("U1").itemsize
        if width * len(value) > _MAX_CHARACTERS:
            raise NoWrittenForm("it is too long")
        return "text array", {"width": width, "texts": value.tolist()}
    raise NoWrittenForm(f"{cls.__name__} objects can only be pickled")


def _add(array: NDArray[Any], arrays: Arrays) -> str:
    name = f"values/{len(arrays)}"
    arrays[name] = array
    return name


def read_value(content: Any, arrays: StoredArrays, depth: int = 0) -> Any:
    """Undo :func:`write_value`."""
    if depth > _MAX_DEPTH:
        raise Unreadable("a value is nested too deeply")

    def inner(values: Any) -> list[Any]:
        return [read_value(item, arrays, depth + 1) for item in checked(values, list, "a value")]

    if type(content) is list:
        return inner(content)
    if type(content) is not dict:
        return checked(content, float, "a value") if type(content) is float else content
    tagged = fields(content, "a value", kind=str, value=object)
    return _read(tagged.kind, tagged.value, arrays, inner)


def _read(kind: str, content: Any, arrays: StoredArrays, inner: Callable[[Any], list[Any]]) -> Any:
    """Undo :func:`_written`."""
    match kind, content:
        case "float", "nan" | "inf" | "-inf":
            return float(content)
        case "tuple", list():
            return tuple(inner(content))
        case "dict", list():
            pairs = {key: value for key, value in map(inner, content)}
            if len(pairs) == len(content):
                return pairs
        case "numpy number", [str(name), number] if name in DTYPES:
            (number,), make = inner([number]), DTYPES[name].type
            if type(number) is type(make(0).item()):
                return make(number)
        case "array", str(name):
            return arrays.take(name)
        case "masked array", [str(name), str(mask)]:
            data = arrays.take(name)
            return np.ma.MaskedArray(data, arrays.take(mask, bool, data.shape))
        case "text array", dict():
            stored = fields(content, "a text array", width=int, texts=list[str])
            size = stored.width * max(len(stored.texts), 1)
            if size <= _MAX_CHARACTERS and max(map(len, stored.texts), default=0) <= stored.width:
                return np.array(stored.texts, f"U{stored.width}")
        case "object array", list():
            array = np.empty(len(content), object)
            for i, item in enumerate(inner(content)):  # a slice would unpack lists
                array[i] = item
            return array
        case _, dict() if kind in CLASSES:  # arguments that are newer than the file keep their defaults
            if content.keys() <= inspect.signature(CLASSES[kind]).parameters.keys():
                return CLASSES[kind](**dict(zip(content, inner([*content.values()]), strict=True)))
    raise Unreadable(f"a value has the unknown kind {kind!r}, or its content is invalid")
