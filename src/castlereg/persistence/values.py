"""Values of options and results as JSON, each kind by a rule written here.

None, booleans, whole numbers, finite numbers, texts and lists are themselves in JSON. All else is
``{"kind": name, "is": content}``, where the name is one of :data:`KINDS`: a name in a file is looked up there and
nowhere else.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from castlereg.graph import EdgeConstraints
from castlereg.persistence.arrays import DTYPES, ArrayReader, ArrayWriter
from castlereg.persistence.json_content import Content
from castlereg.persistence.refusal import Unreadable
from castlereg.regularizers import L1, L2, Autoencoder, BatchNorm, Castle, Dropout, InputNoise, MixUp

_DEEPEST = 12
_MOST_CHARACTERS = 50_000_000  # of a text array, which takes as many for every text as for the longest


class NoWrittenForm(Exception):
    """A value that only pickle could store."""


Write = Callable[[Any, ArrayWriter, int], Any]
Read = Callable[[Content, ArrayReader, int], Any]


class Kind(NamedTuple):
    """A kind of value: which values are of it, and how it is written and read."""

    fits: Callable[[Any], bool]
    write: Write  # to what stands under "is"
    read: Read  # of an object with the field "is"


def write_value(value: Any, arrays: ArrayWriter, depth: int = 0) -> Any:
    """Write a value as JSON; arrays of numbers go to the others.

    Parameters
    ----------
    value : object
    arrays : ArrayWriter
    depth : int
        How many values this one is in.

    Returns
    -------
    object
        For :func:`json.dumps`.
    """
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    if depth > _DEEPEST:
        raise NoWrittenForm("it is nested too deeply")
    if type(value) is list:
        return [write_value(one, arrays, depth + 1) for one in value]
    for name, kind in KINDS.items():
        if kind.fits(value):
            return {"kind": name, "is": kind.write(value, arrays, depth + 1)}
    raise NoWrittenForm(f"a {type(value).__name__} has no form but pickle's")


def read_value(content: Any, arrays: ArrayReader, depth: int = 0) -> Any:
    """Undo :func:`write_value`.

    Parameters
    ----------
    content : object
        Parsed JSON.
    arrays : ArrayReader
    depth : int

    Returns
    -------
    object
    """
    if depth > _DEEPEST:
        raise Unreadable("a value is nested too deeply")
    if type(content) is list:
        return [read_value(one, arrays, depth + 1) for one in content]
    if type(content) is not dict:
        return Content({"value": content}, "a value").number("value") if type(content) is float else content
    tagged = Content(content, "a value")
    tagged.only("kind", "is")
    return KINDS[tagged.text("kind", KINDS)].read(tagged, arrays, depth + 1)


# --- numbers and containers --------------------------------------------------------------------------

_UNUSUAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def _write_unusual(value: float, arrays: ArrayWriter, depth: int) -> str:
    return repr(value)


def _read_unusual(content: Content, arrays: ArrayReader, depth: int) -> float:
    return _UNUSUAL[content.text("is", _UNUSUAL)]


def _write_tuple(value: tuple[Any, ...], arrays: ArrayWriter, depth: int) -> list[Any]:
    return [write_value(one, arrays, depth) for one in value]


def _read_tuple(content: Content, arrays: ArrayReader, depth: int) -> tuple[Any, ...]:
    return tuple(read_value(one, arrays, depth) for one in content.items("is"))


def _write_dict(value: dict[Any, Any], arrays: ArrayWriter, depth: int) -> list[Any]:
    return [[write_value(key, arrays, depth), write_value(one, arrays, depth)] for key, one in value.items()]


def _read_dict(content: Content, arrays: ArrayReader, depth: int) -> dict[Any, Any]:
    pairs = [_read_tuple(Content({"is": pair}, "a dict"), arrays, depth) for pair in content.items("is")]
    try:
        read = dict(pairs)
    except (TypeError, ValueError) as error:
        raise Unreadable(f"a dict has no pairs of key and value ({error})") from None
    if len(read) != len(pairs):
        raise Unreadable("a dict has a key twice")
    return read


# --- NumPy -------------------------------------------------------------------------------------------


def _write_scalar(value: np.generic, arrays: ArrayWriter, depth: int) -> list[Any]:
    return [value.dtype.name, write_value(value.item(), arrays, depth)]


def _read_scalar(content: Content, arrays: ArrayReader, depth: int) -> Any:
    if len(content.items("is")) != 2:
        raise Unreadable("a NumPy number is no pair of dtype and number")
    name, number = (read_value(one, arrays, depth) for one in content.items("is"))
    dtype = DTYPES.get(name) if type(name) is str else None
    if dtype is None or type(number) is not type(dtype.type(0).item()):
        raise Unreadable(f"{number!r} is no NumPy number of dtype {name!r}")
    try:
        return dtype.type(number)
    except OverflowError as error:
        raise Unreadable(f"{number!r} is no {name} ({error})") from None


def _write_array(value: Any, arrays: ArrayWriter, depth: int) -> str:
    return arrays.add_next(value)


def _read_array(content: Content, arrays: ArrayReader, depth: int) -> Any:
    return arrays.take(content.text("is"))


def _write_masked(value: np.ma.MaskedArray[Any, Any], arrays: ArrayWriter, depth: int) -> list[str]:
    return [arrays.add_next(np.asarray(value.data)), arrays.add_next(np.ma.getmaskarray(value))]


def _read_masked(content: Content, arrays: ArrayReader, depth: int) -> Any:
    names = content.texts("is")
    if len(names) != 2:
        raise Unreadable("a masked array is no pair of values and mask")
    data = arrays.take(names[0])
    return np.ma.MaskedArray(data, arrays.take(names[1], bool, data.shape))


def _write_texts(value: Any, arrays: ArrayWriter, depth: int) -> dict[str, Any]:
    width = value.dtype.itemsize // np.dtype("U1").itemsize
    if width * len(value) > _MOST_CHARACTERS:
        raise NoWrittenForm("it is too long")
    return {"width": width, "texts": value.tolist()}


def _read_texts(content: Content, arrays: ArrayReader, depth: int) -> Any:
    stored = content.part("is")
    stored.only("width", "texts")
    width, texts = stored.integer("width"), stored.texts("texts")
    if width * len(texts) > _MOST_CHARACTERS or max(map(len, texts), default=0) > width:
        raise Unreadable(f"{len(texts)} texts do not fit into an array of width {width}")
    return np.array(texts, f"U{width}")


def _write_objects(value: Any, arrays: ArrayWriter, depth: int) -> list[Any]:
    return [write_value(one, arrays, depth) for one in value]


def _read_objects(content: Content, arrays: ArrayReader, depth: int) -> Any:
    items = content.items("is")
    read = np.empty(len(items), object)
    for i, one in enumerate(items):
        read[i] = read_value(one, arrays, depth)
    return read


def _is_array(value: Any) -> bool:
    return type(value) is np.ndarray


# --- objects of castlereg and splitters of scikit-learn ----------------------------------------------


def _object_kind(cls: type, names: Iterable[str]) -> Kind:
    """Describe a class by the arguments it is made with, which it keeps under the same names.

    Those that a file does not have, because they came later, are left at their defaults.
    """
    names = tuple(names)

    def write(value: Any, arrays: ArrayWriter, depth: int) -> dict[str, Any]:
        return {name: write_value(getattr(value, name), arrays, depth) for name in names}

    def read(content: Content, arrays: ArrayReader, depth: int) -> Any:
        stored = content.part("is")
        given = stored.among(names)
        try:
            return cls(**{name: read_value(stored.any(name), arrays, depth) for name in given})
        except (TypeError, ValueError, AttributeError) as error:
            raise Unreadable(f"its {cls.__name__} has options that do not fit ({error})") from None

    return Kind(lambda value: type(value) is cls, write, read)


_DATACLASSES: tuple[type, ...] = (
    *(Castle, L1, L2, Dropout, Autoencoder, BatchNorm, InputNoise, MixUp),
    EdgeConstraints,
)
_SHUFFLED_FOLDS = ("n_splits", "shuffle", "random_state")
_SHARES = ("n_splits", "test_size", "train_size", "random_state")
_SPLITTERS: dict[type, tuple[str, ...]] = {
    KFold: _SHUFFLED_FOLDS,
    StratifiedKFold: _SHUFFLED_FOLDS,
    GroupKFold: _SHUFFLED_FOLDS,
    StratifiedGroupKFold: _SHUFFLED_FOLDS,
    ShuffleSplit: _SHARES,
    StratifiedShuffleSplit: _SHARES,
    GroupShuffleSplit: _SHARES,
    TimeSeriesSplit: ("n_splits", "max_train_size", "test_size", "gap"),
    PredefinedSplit: ("test_fold",),
    LeaveOneOut: (),
    LeaveOneGroupOut: (),
}

KINDS: dict[str, Kind] = {
    "float": Kind(lambda v: type(v) is float, _write_unusual, _read_unusual),
    "tuple": Kind(lambda v: type(v) is tuple, _write_tuple, _read_tuple),
    "dict": Kind(lambda v: type(v) is dict, _write_dict, _read_dict),
    "numpy number": Kind(lambda v: isinstance(v, np.generic) and v.dtype.name in DTYPES, _write_scalar, _read_scalar),
    "array": Kind(lambda v: _is_array(v) and v.dtype.name in DTYPES, _write_array, _read_array),
    "masked array": Kind(
        lambda v: type(v) is np.ma.MaskedArray and v.dtype.name in DTYPES,
        _write_masked,
        _read_masked,
    ),
    "text array": Kind(lambda v: _is_array(v) and v.dtype.kind == "U" and v.ndim == 1, _write_texts, _read_texts),
    "object array": Kind(lambda v: _is_array(v) and v.dtype == object and v.ndim == 1, _write_objects, _read_objects),
    **{cls.__name__: _object_kind(cls, (field.name for field in dataclasses.fields(cls))) for cls in _DATACLASSES},
    **{cls.__name__: _object_kind(cls, names) for cls, names in _SPLITTERS.items()},
}
"""All kinds of values that a model file may hold, by their names in it."""
