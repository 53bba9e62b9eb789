"""Values of options and results as JSON, each kind by a rule written here.

None, booleans, integers, finite numbers, texts and lists are themselves in JSON. Anything else is
``{"kind": name, "value": content}``, where the name is one of :data:`KINDS`: a name in a file is looked up there and
nowhere else.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn import model_selection as splitters

from castlereg import regularizers
from castlereg.graph import EdgeConstraints
from castlereg.notices import warn_user
from castlereg.persistence.container import DTYPES, StoredArrays
from castlereg.persistence.errors import Unreadable
from castlereg.persistence.json_content import checked, fields
from castlereg.regularizers.released_castle import ReleasedCastle

Arrays = dict[str, NDArray[Any]]
"""Arrays to write, by their names in the file."""

_MAX_DEPTH = 12
_MAX_CHARACTERS = 50_000_000  # of a text array, which takes as many for every text as for the longest

# Objects are written as the arguments of their constructor, which they keep under the same names.
_CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(regularizers.Castle, regularizers.L1, regularizers.L2, regularizers.Dropout, regularizers.Autoencoder),
        *(regularizers.BatchNorm, regularizers.InputNoise, regularizers.MixUp, ReleasedCastle, EdgeConstraints),
        *(splitters.KFold, splitters.StratifiedKFold, splitters.GroupKFold, splitters.StratifiedGroupKFold),
        *(splitters.ShuffleSplit, splitters.StratifiedShuffleSplit, splitters.GroupShuffleSplit),
        *(splitters.TimeSeriesSplit, splitters.PredefinedSplit, splitters.LeaveOneOut, splitters.LeaveOneGroupOut),
    )
}


_BUILT_IN = ("float", "tuple", "dict", "numpy number", "array", "masked array", "text array", "object array")
KINDS = frozenset((*_BUILT_IN, *_CLASSES))
"""All kinds of values that a model file may hold, by their names in it."""


class NoWrittenForm(Exception):
    """A value that only pickle could store."""


def write_option(name: str, value: Any, arrays: Arrays) -> Any:
    """Write an option, or None with a warning if only pickle could store it: no option is needed to predict."""
    try:
        return write_value(value, arrays)
    except NoWrittenForm as error:
        warn_user(
            f"{name}={value!r} is not saved: {error}. The loaded model predicts the same and has {name}=None; "
            "set it before you fit again"
        )
        return None


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
    if _CLASSES.get(cls.__name__) is cls:
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
    raise NoWrittenForm(f"a {cls.__name__} can only be pickled")


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
    if tagged.kind not in KINDS:
        raise Unreadable(f"a value is of a kind {tagged.kind!r} that castlereg does not know")
    return _read(tagged.kind, tagged.value, arrays, inner)


def _read(kind: str, content: Any, arrays: StoredArrays, inner: Callable[[Any], list[Any]]) -> Any:
    """Undo :func:`_written`."""
    match kind:
        case "float":
            return float(checked(content, Literal["nan", "inf", "-inf"], "a number"))
        case "tuple":
            return tuple(inner(content))
        case "dict":
            return _dict([inner(pair) for pair in checked(content, list, "a dict")])
        case "numpy number":
            return _numpy_number(*_pair(inner(content), "a NumPy number"))
        case "array":
            return arrays.take(checked(content, str, "the name of an array"))
        case "masked array":
            values, mask = _pair(checked(content, list[str], "a masked array"), "a masked array")
            data = arrays.take(values)
            return np.ma.MaskedArray(data, arrays.take(mask, bool, data.shape))
        case "text array":
            stored = fields(content, "a text array", width=int, texts=list[str])
            return _text_array(stored.width, stored.texts)
        case "object array":
            return _object_array(inner(content))
    return _object(_CLASSES[kind], checked(content, dict, f"its {kind}"), inner)


def _pair(items: list[Any], where: str) -> list[Any]:
    if len(items) != 2:
        raise Unreadable(f"{where} is not a pair")
    return items


def _dict(pairs: list[list[Any]]) -> dict[Any, Any]:
    try:
        read = {key: value for key, value in pairs}
    except (TypeError, ValueError) as error:
        raise Unreadable(f"a dict is not made of pairs of key and value ({error})") from None
    if len(read) != len(pairs):
        raise Unreadable("a dict has a key twice")
    return read


def _numpy_number(name: Any, number: Any) -> Any:
    dtype = DTYPES.get(name) if type(name) is str else None
    if dtype is None or type(number) is not type(dtype.type(0).item()):
        raise Unreadable(f"{number!r} is not a NumPy number of dtype {name!r}")
    try:
        return dtype.type(number)
    except OverflowError as error:
        raise Unreadable(f"{number!r} is not of dtype {name!r} ({error})") from None


def _text_array(width: int, texts: list[str]) -> NDArray[Any]:
    if width * max(len(texts), 1) > _MAX_CHARACTERS or max(map(len, texts), default=0) > width:
        raise Unreadable(f"{len(texts)} texts do not fit into an array of width {width}")
    return np.array(texts, f"U{width}")


def _object_array(items: list[Any]) -> NDArray[Any]:
    array = np.empty(len(items), object)
    for i, item in enumerate(items):  # a slice would unpack lists
        array[i] = item
    return array


def _object(cls: type, options: dict[str, Any], inner: Callable[[Any], list[Any]]) -> Any:
    """Make an object; arguments that a file does not have, because they came later, are left at their defaults."""
    unknown = options.keys() - inspect.signature(cls).parameters.keys()
    if unknown:
        raise Unreadable(f"its {cls.__name__} has unknown options {sorted(unknown)}")
    try:
        return cls(**dict(zip(options, inner(list(options.values())), strict=True)))
    except (TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"its {cls.__name__} has options that do not fit ({error})") from None
