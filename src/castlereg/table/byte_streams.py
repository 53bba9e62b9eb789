"""The bytes of a table, decompressed in memory and never on disk, and the kind of file they come from."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst", ".zip")
_LARGEST_UNPACKED = 1 << 30  # bytes; larger zips must not exceed the ratio below
_LARGEST_RATIO = 200


# Exceptions from damaged files. zipfile raises EINVAL; an OSError with any other number comes from the disk.
_DAMAGES = (EOFError, OSError, NotImplementedError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


@dataclass(frozen=True)
class ByteSource:
    """A file, compressed or not, or the content of standard input; it can be opened as often as needed."""

    path: Path
    compression: str = ""  # a suffix of COMPRESSIONS
    member: str = ""  # of a zip
    content: bytes | None = field(default=None, repr=False)  # of standard input

    def __str__(self) -> str:
        return "standard input" if self.content is not None else f"file {str(self.path)!r}"

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the bytes for reading; damaged compressed files raise a ValueError."""
        try:
            with self._stream() as stream:
                yield stream
        except _DAMAGES as error:
            if not self.compression or getattr(error, "errno", None) not in (None, errno.EINVAL):
                raise
            reason = " ".join(str(error).split()) or "it is truncated"
            raise ValueError(
                f"{self} cannot be decompressed as {self.compression} ({reason}): get a new copy of the file"
            ) from None

    def _stream(self) -> Any:
        if self.content is not None:
            return io.BytesIO(self.content)
        if self.compression == ".zip":
            return _zip_stream(self.path, self.member)
        return _OPENERS[self.compression](self.path)

    @contextmanager
    def lines(self, encoding: str) -> Iterator[io.TextIOWrapper]:
        """Open the file as text, with line ends unchanged."""
        with self.open() as stream, io.TextIOWrapper(stream, encoding=encoding, newline="") as text:
            yield text

    def start(self, n_bytes: int = 4096) -> bytes:
        """Return the first bytes."""
        with self.open() as stream:
            return bytes(stream.read(n_bytes))


@contextmanager
def _zip_stream(path: Path, member: str) -> Iterator[BinaryIO]:
    with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        yield cast(BinaryIO, stream)


def _zstandard(path: Path) -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError("reading .zst needs the package pyarrow: pip install 'castlereg[arrow]'") from None
    return pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")


_OPENERS: dict[str, Callable[[Path], Any]] = {
    "": lambda path: path.open("rb"),
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _zstandard,
}


def table_in_zip(path: Path, suffixes: Sequence[str]) -> str:
    """Return the name of the only table in a zip: its only file, or its only file with the suffix of a table."""
    named = [
        info for info in check_zip(path) if info.filename.strip("./")
    ]  # a damaged zip may contain files without names
    files = [info for info in named if not info.is_dir() and not _is_hidden(info.filename)]
    tables = [info for info in files if PurePosixPath(info.filename.lower()).suffix in suffixes] or files
    if len(tables) != 1:
        names = ", ".join(repr(info.filename) for info in tables[:10]) + (", ..." if len(tables) > 10 else "")
        contents = f"{len(tables)} tables ({names}): unpack it and pass" if tables else "no table: pass"
        raise ValueError(f"file {str(path)!r} contains {contents} a file that ends in {', '.join(suffixes)}")
    if tables[0].flag_bits & 1:
        raise ValueError(f"file {str(path)!r} is encrypted: unpack it first")
    return tables[0].filename


def check_zip(path: Path) -> list[zipfile.ZipInfo]:
    """Return the members of a zip; raise if it is damaged or would expand to an absurd size."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (*_DAMAGES, ValueError, struct.error) as error:
        if getattr(error, "errno", None) not in (None, errno.EINVAL):
            raise
        raise ValueError(
            f"file {str(path)!r} is not a valid zip archive ({error}): get a new copy of the file"
        ) from None
    packed, unpacked = sum(member.compress_size for member in members), sum(member.file_size for member in members)
    if unpacked > _LARGEST_UNPACKED and unpacked > _LARGEST_RATIO * packed:
        raise ValueError(
            f"file {str(path)!r} would expand from {packed:,} to {unpacked:,} bytes: if this is right, unpack it first"
        )
    return members


def _is_hidden(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return "__MACOSX" in parts or parts[-1].startswith(".")


# First bytes of files that often have the wrong name, their kind, and the right suffix.
_KINDS: tuple[tuple[bytes, str, str], ...] = (
    *((b"PAR1" + bytes([k]), "a Parquet file", ".parquet") for k in range(32)),
    (b"ARROW1\0\0", "a Feather (Arrow) file", ".feather"),
    (b"PK\x03\x04", "a zip archive", ".zip"),
    (b"\x1f\x8b", "compressed with gzip", ".gz"),
    *((b"BZh%d1AY&SY" % k, "compressed with bzip2", ".bz2") for k in range(1, 10)),
    (b"\xfd7zXZ\0", "compressed with xz", ".xz"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard", ".zst"),
    (b"FEA1\0", "a Feather file of version 1", ""),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls)", ""),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", ""),
    (b"%PDF-", "a PDF", ""),
    (b"\x89HDF", "an HDF5 file", ""),
    (b"SQLite format 3\0", "an SQLite database", ""),
    (b"<!doctype html", "a web page", ""),
    (b"<html", "a web page", ""),
)


def kind_of(start: bytes) -> tuple[str, str]:
    r"""Return the kind of a file by its first bytes, and the usual suffix; empty for text and for unknown kinds.

    Examples
    --------
    >>> kind_of(b"\x1f\x8b\x08")
    ('compressed with gzip', '.gz')
    >>> kind_of(b"PAR1,PAR2")
    ('', '')
    """
    start = start.lstrip().lower() if start.lstrip()[:1] == b"<" else start
    match = next(((kind, suffix) for magic, kind, suffix in _KINDS if start.startswith(magic)), ("", ""))
    if match[1] == ".zip" and (b"[Content_Types].xml" in start or b"xl/" in start[:200]):
        return "an Excel workbook", ".xlsx"
    return match
