"""JSON and named arrays in one safetensors file, with a digest of the whole file.

The metadata in the header are ``sha256``, ``format``, ``version``, ``castlereg`` (the version that wrote the file) and
``model`` (the JSON text). The digest is first, at a known offset. It is the SHA-256 of the file with zeros in place of
the digest, so any change of the file is detected.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import IO, Any

import numpy as np
import safetensors.numpy
from numpy.typing import DTypeLike, NDArray
from safetensors import SafetensorError

from castlereg.persistence.json_content import Unreadable, fields, parse

FORMAT, VERSION = "castlereg model", "2"
MAX_HEADER = 100_000_000  # bytes, also the limit of safetensors; models have a few thousand

_CODES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
DTYPES = {dtype.name: dtype for dtype in map(np.dtype, _CODES)}  # types that both safetensors and NumPy support
Arrays = dict[str, NDArray[Any]]  # arrays by their names in a file
Shape = tuple[int | None, ...]

_PREFIX = 8  # bytes that contain the length of the header
_OPENING = b'{"__metadata__":{"sha256":"'
_ZEROS = b"0" * 64
_DIGEST = slice(_PREFIX + len(_OPENING), _PREFIX + len(_OPENING) + len(_ZEROS))
_SAVED_FILE = "pass a file that castlereg.save wrote"


def pack(model: Any, arrays: Arrays, written_by: str) -> bytes:
    """Return the bytes of a file; the same content gives the same bytes."""
    packed = safetensors.numpy.save({name: np.asarray(array, order="C") for name, array in arrays.items()})
    start = _PREFIX + int.from_bytes(packed[:_PREFIX], "little")
    metadata = {
        "sha256": _ZEROS.decode(),
        "format": FORMAT,
        "version": VERSION,
        "castlereg": written_by,
        "model": json.dumps(model, allow_nan=False),
    }
    # safetensors would write the metadata in a random order
    tensors = json.loads(packed[_PREFIX:start])
    header = json.dumps({"__metadata__": metadata, **tensors}, separators=(",", ":")).encode("ascii")
    header += b" " * (-len(header) % 8)  # arrays are aligned
    if len(header) > MAX_HEADER:
        raise ValueError(
            f"the options and levels of this model take {len(header)} bytes; a model file allows {MAX_HEADER}"
        )
    content = len(header).to_bytes(_PREFIX, "little") + header + packed[start:]
    return content[: _DIGEST.start] + _digest(content) + content[_DIGEST.stop :]


def unpack(file: IO[bytes]) -> tuple[Any, StoredArrays]:
    """Return the JSON and the arrays of a seekable file that :func:`pack` wrote; reject any other file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = file.read(_DIGEST.stop)
    if start.startswith(b"PK\x03\x04") and b"manifest.json" in start:
        raise Unreadable("it was written by castlereg 0.1", "fit the model and save it again with this version")
    if start[_PREFIX : _DIGEST.start] != _OPENING:
        raise Unreadable("it is not a castlereg model file", _SAVED_FILE)
    end = _PREFIX + int.from_bytes(start[:_PREFIX], "little")
    if end > _PREFIX + MAX_HEADER:
        raise Unreadable(f"its header claims {end - _PREFIX} bytes, but the limit is {MAX_HEADER}")
    if end > size:
        raise Unreadable(f"it is incomplete: its header ends at byte {end}, but the file has {size} bytes")
    content = start + file.read()
    model = _checked_model(parse(content[_PREFIX:end], "its header")["__metadata__"])
    if content[_DIGEST] != _digest(content):
        raise Unreadable("it does not match its digest: the file is incomplete, damaged or modified")
    try:
        arrays = safetensors.numpy.load(content)
    except (SafetensorError, LookupError, ValueError) as error:
        raise Unreadable(f"its arrays are not valid safetensors ({error})") from None
    return parse(model, "its model"), StoredArrays(arrays)


def _digest(content: bytes) -> bytes:
    digest = hashlib.sha256(content[: _DIGEST.start] + _ZEROS)
    digest.update(memoryview(content)[_DIGEST.stop :])
    return digest.hexdigest().encode()


def _checked_model(metadata: Any) -> str:
    """Return the JSON text of the model, if the metadata are those of this format and version."""
    if metadata.get("format") != FORMAT:
        raise Unreadable(f"it contains {metadata.get('format')!r}, not a castlereg model", _SAVED_FILE)
    if metadata.get("version") != VERSION:
        raise Unreadable(
            f"it has format version {metadata.get('version')!r}, written by castlereg {metadata.get('castlereg')!r}, "
            f"but this castlereg reads version {VERSION!r}",
            "update castlereg",
        )
    text: str = fields(metadata, "its metadata", sha256=str, format=str, version=str, castlereg=str, model=str).model
    return text


class StoredArrays:
    """Arrays of a file; each must be taken exactly once."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = dict(arrays)

    def take(
        self, name: str, dtype: DTypeLike | None = None, shape: Shape | None = None, finite: bool = False
    ) -> NDArray[Any]:
        """Return an array after checking its dtype and shape (None allows any) and, on request, for finite values."""
        if name not in self._arrays:
            raise Unreadable(f"its array {name!r} is missing")
        array = self._arrays.pop(name)
        if array.dtype.name not in DTYPES or (dtype is not None and array.dtype != dtype):
            raise Unreadable(f"its array {name!r} has dtype {array.dtype}, which does not match the model")
        if shape is not None and (
            array.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True))
        ):
            expected = ", ".join("any" if n is None else str(n) for n in shape)
            raise Unreadable(f"its array {name!r} has shape {array.shape}, but the model needs ({expected})")
        if array.dtype == bool and array.view(np.uint8).max(initial=0) > 1:
            raise Unreadable(f"its array {name!r} has booleans that are neither 0 nor 1")
        if finite and not np.isfinite(array).all():
            raise Unreadable(f"its array {name!r} has values that are not finite")
        return array

    def finish(self) -> None:
        """Reject arrays that were not taken."""
        for name in self._arrays:
            raise Unreadable(f"its array {name!r} does not belong to the model")
