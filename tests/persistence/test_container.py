"""The container: what is packed is unpacked, and nothing else is."""

from __future__ import annotations

import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from castlereg.persistence.container import DTYPES, MAX_HEADER, StoredArrays, _digest, pack, unpack
from castlereg.persistence.json_content import Unreadable

MODEL = {"name": 'a "quoted" \ud800 name', "list": [1, 2.5, None]}
ARRAYS = {
    **{name: np.array([[1, 0], [0, 1]], dtype) for name, dtype in DTYPES.items()},
    **{"scalar": np.array(3.5), "empty": np.empty((0, 4)), "swapped": np.arange(3, dtype=">i4")},
    "transposed": np.arange(6).reshape(2, 3).T,
}
SMALL = pack({"a": 1}, {"x": np.arange(3, dtype=np.int8)}, "0")


def header_of(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the data of a file."""
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def with_header(header: Any, data: bytes) -> bytes:
    """A file with this header, as text or to be written as JSON, and a digest that is right."""
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    content = len(text).to_bytes(8, "little") + text + data
    return content[:35] + _digest(content) + content[99:]


def unpacked(content: bytes) -> tuple[Any, StoredArrays]:
    return unpack(io.BytesIO(content))


def test_what_is_packed_is_unpacked() -> None:
    content = pack(MODEL, ARRAYS, "1.2")
    assert content == pack(MODEL, ARRAYS, "1.2")
    model, arrays = unpacked(content)
    assert model == MODEL
    for name, array in ARRAYS.items():
        read = arrays.take(name, array.dtype.newbyteorder("="), array.shape)
        np.testing.assert_array_equal(read, array)
    arrays.finish()


def test_every_flipped_bit_is_noticed() -> None:
    for position in range(len(SMALL)):
        for bit in range(8):
            flipped = bytearray(SMALL)
            flipped[position] ^= 1 << bit
            with pytest.raises(Unreadable):
                unpacked(bytes(flipped))


def test_every_truncation_is_noticed() -> None:
    for length in range(len(SMALL)):
        with pytest.raises(Unreadable):
            unpacked(SMALL[:length])


def test_the_header_helper_gives_a_right_digest() -> None:
    assert unpacked(with_header(*header_of(SMALL)))[0] == {"a": 1}


def tensors(**entries: Any) -> bytes:
    """A header with the metadata of a model and these tensors."""
    metadata = header_of(SMALL)[0]["__metadata__"]
    return with_header({"__metadata__": metadata, **entries}, bytes(8))


def entry(dtype: str = "F32", shape: tuple[int, ...] = (2,), start: int = 0, end: int = 8, **more: Any) -> Any:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end], **more}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(tensors(), id="no tensors for the data"),
        pytest.param(tensors(a=entry(shape=(4,), end=16)), id="offsets outside"),
        pytest.param(tensors(a=entry(start=8, end=0)), id="offsets backwards"),
        pytest.param(tensors(a=entry(start=-8)), id="negative offsets"),
        pytest.param(tensors(a=entry(), b=entry()), id="overlapping"),
        pytest.param(tensors(a=entry(), b=entry(shape=(1,), start=4)), id="partly overlapping"),
        pytest.param(tensors(a=entry(shape=(1,), start=4)), id="a hole"),
        pytest.param(tensors(a=entry(shape=(1,), end=4)), id="data left over"),
        pytest.param(tensors(a=entry(shape=(2**62, 2**62))), id="an overflowing shape"),
        pytest.param(tensors(a=entry(), b=entry(shape=(0, 2**62, 2**62), start=8)), id="empty and overflowing"),
        pytest.param(tensors(a=entry(shape=(-2,))), id="a negative shape"),
        pytest.param(tensors(a=entry(shape=(3,))), id="a shape of another size"),
        pytest.param(tensors(a=entry("F8_E4M3", (8,))), id="a dtype that NumPy lacks"),
        pytest.param(tensors(a=entry("OBJECT", (8,))), id="an unknown dtype"),
        pytest.param(tensors(a={}), id="a tensor without fields"),
        pytest.param(tensors(a=None), id="a tensor that is null"),
        pytest.param(tensors(**{"\ud800": entry()}), id="a name that is not Unicode"),
    ],
)
def test_tensors_that_lie_are_rejected(content: bytes) -> None:
    with pytest.raises(Unreadable, match="its arrays are not valid safetensors"):
        unpacked(content)


def test_headers_with_a_field_twice_are_rejected() -> None:
    text = SMALL[8 : 8 + int.from_bytes(SMALL[:8], "little")].rstrip()
    metadata, tensor = text[: text.index(b',"x"')], text[text.index(b',"x"') : -1]
    for twice in (
        metadata + tensor + tensor + b"}",
        metadata + tensor + b"," + metadata[1:] + b"}",
        metadata[:-1] + b',"version":"3"}' + tensor + b"}",
        metadata + tensor[:-1] + b',"dtype":"U8"}}',
    ):
        with pytest.raises(Unreadable, match=r"its header is not JSON .*twice"):
            unpacked(with_header(twice, b"\0\1\2"))


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 200_000, b"}", b'a":NaN}}', b'\xff"}}', b'"}}{}', b'",}}'])
def test_headers_that_are_not_json_are_rejected(text: bytes) -> None:
    with pytest.raises(Unreadable):
        unpacked(with_header(b'{"__metadata__":{"sha256":"' + b"0" * 64 + text, b""))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"version": "3", "castlereg": "9.0", "more": "1"}, "format version '3', written by castlereg '9.0'"),
        ({"version": "1"}, "format version '1'"),
        ({"version": 2}, "format version 2,"),
        ({"version": None}, "format version None"),
        ({"format": "a graph"}, "it contains 'a graph', not a castlereg model"),
        ({"more": "1"}, "its metadata has an unknown field 'more'"),
        ({"castlereg": 1}, "castlereg of its metadata is 1, which is not a valid str"),
        ({"model": {}}, "model of its metadata is a dict, which is not a valid str"),
    ],
)
def test_metadata_that_do_not_fit_are_rejected(changed: dict[str, Any], message: str) -> None:
    header, data = header_of(SMALL)
    with pytest.raises(Unreadable, match=message):
        unpacked(with_header({**header, "__metadata__": {**header["__metadata__"], **changed}}, data))


@pytest.mark.parametrize("name", ["sha256", "format", "version", "castlereg", "model"])
def test_metadata_that_are_missing_are_rejected(name: str) -> None:
    header, data = header_of(SMALL)
    metadata = {key: value for key, value in header["__metadata__"].items() if key != name}
    with pytest.raises(Unreadable):
        unpacked(with_header({**header, "__metadata__": metadata}, data))


@pytest.mark.parametrize("digest", ["", "0" * 63, "0" * 64, "f" * 64, "0" * 65, "é" * 64])
def test_another_digest_is_rejected(digest: str) -> None:
    header, data = header_of(SMALL)
    text = json.dumps({**header, "__metadata__": {**header["__metadata__"], "sha256": digest}}, separators=(",", ":"))
    with pytest.raises(Unreadable, match="does not match its digest"):
        unpacked(len(text).to_bytes(8, "little") + text.encode() + data)


@pytest.mark.parametrize("length", [MAX_HEADER + 1, 2**40, 2**63, 2**64 - 1])
def test_a_huge_header_is_rejected_before_it_is_read(length: int, tmp_path: Path) -> None:
    """Even when the file, which takes no room on disk, is as long as it says."""
    path = tmp_path / "sparse"
    with open(path, "wb") as file:
        file.write(length.to_bytes(8, "little") + SMALL[8:])
        file.truncate(MAX_HEADER + 100)
    tracemalloc.start()
    with open(path, "rb") as file, pytest.raises(Unreadable, match=r"claims .* but the limit is 100000000"):
        unpack(file)
    with open(path, "r+b") as file:
        file.write(MAX_HEADER.to_bytes(8, "little"))
        file.truncate(MAX_HEADER)
    with open(path, "rb") as file, pytest.raises(Unreadable, match="it is incomplete"):
        unpack(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_a_large_file_of_another_kind_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with open(path, "wb") as file:
        file.truncate(2**36)
    tracemalloc.start()
    with open(path, "rb") as file, pytest.raises(Unreadable, match="not a castlereg model file"):
        unpack(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_booleans_are_zero_or_one() -> None:
    header, _ = header_of(pack({}, {"x": np.array([True, False])}, "0"))
    _, arrays = unpacked(with_header(header, b"\1\2"))
    with pytest.raises(Unreadable, match="neither 0 nor 1"):
        arrays.take("x")


def test_arrays_are_taken_once_with_their_dtype_and_shape() -> None:
    arrays = {"x": np.zeros((2, 3)), "nan": np.array([np.nan]), "complex": np.zeros(2, np.complex64)}
    for take, message in (
        (lambda stored: stored.take("y"), "'y' is missing"),
        (lambda stored: (stored.take("x"), stored.take("x")), "'x' is missing"),
        (lambda stored: stored.take("x", np.float32), "'x' has dtype float64"),
        (lambda stored: stored.take("x", None, (2, 4)), r"shape \(2, 3\), but the model needs \(2, 4\)"),
        (lambda stored: stored.take("x", None, (None,)), r"the model needs \(any\)"),
        (lambda stored: stored.take("complex"), "'complex' has dtype complex64"),
        (lambda stored: stored.take("nan", finite=True), "not finite"),
        (lambda stored: stored.finish(), "does not belong"),
    ):
        with pytest.raises(Unreadable, match=message):
            take(StoredArrays(arrays))
    assert StoredArrays(arrays).take("x", np.float64, (2, None)).shape == (2, 3)


def test_too_much_text_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castlereg.persistence.container.MAX_HEADER", 1000)
    with pytest.raises(ValueError, match="a model file allows 1000"):
        pack({"a": "x" * 1000}, {}, "0")
