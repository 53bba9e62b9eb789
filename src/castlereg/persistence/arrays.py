"""Named arrays as safetensors: written once, read once, by name, dtype and shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import DTypeLike, NDArray
from safetensors import SafetensorError

from castlereg.persistence.refusal import Unreadable

# What safetensors and NumPy both have.
DTYPES: Mapping[str, np.dtype[Any]] = {
    name: np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    )
}


class ArrayWriter:
    """Collects arrays under names of their own."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}

    def add(self, name: str, array: Any) -> None:
        """Add an array of booleans or numbers."""
        array = np.asarray(array)
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
        assert name not in self._arrays
        assert array.dtype.name in DTYPES
        self._arrays[name] = array

    def add_next(self, array: NDArray[Any]) -> str:
        """Add an array under a number, and return the name."""
        name = f"values/{len(self._arrays)}"
        self.add(name, array)
        return name

    def to_bytes(self) -> bytes:
        """Return all arrays as safetensors."""
        return safetensors.numpy.save(self._arrays)


class ArrayReader:
    """Gives arrays out, each once.

    Parameters
    ----------
    content : bytes
        Safetensors.
    """

    def __init__(self, content: bytes) -> None:
        try:
            self._arrays = safetensors.numpy.load(content)
        except (SafetensorError, KeyError, ValueError) as error:
            raise Unreadable(f"its arrays are no safetensors ({error})") from None

    def take(
        self, name: str, dtype: DTypeLike | None = None, shape: tuple[int | None, ...] | None = None
    ) -> NDArray[Any]:
        """Return an array of this dtype and shape, None being any.

        Parameters
        ----------
        name : str
        dtype : dtype, optional
        shape : tuple of int or None, optional

        Returns
        -------
        array
        """
        if name not in self._arrays:
            raise Unreadable(f"its array {name!r} is missing")
        array = self._arrays.pop(name)
        if array.dtype.name not in DTYPES or (dtype is not None and array.dtype != dtype):
            raise Unreadable(f"its array {name!r} is of {array.dtype}, which does not fit the model")
        if shape is not None and not _fits(array.shape, shape):
            wanted = ", ".join("any" if n is None else str(n) for n in shape)
            raise Unreadable(f"its array {name!r} has shape {array.shape}, where the model needs ({wanted})")
        return array

    def take_finite(self, name: str, dtype: DTypeLike, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """Return an array as above, and refuse NaN and infinity."""
        array = self.take(name, dtype, shape)
        if not np.isfinite(array).all():
            raise Unreadable(f"its array {name!r} has values that are not finite")
        return array

    def finish(self) -> None:
        """Refuse arrays that nobody asked for."""
        for name in self._arrays:
            raise Unreadable(f"its array {name!r} does not belong to the model")


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        want is None or have == want for have, want in zip(shape, wanted, strict=True)
    )
