"""A few named pieces of bytes in one zip, each with a digest: what is read is what was written, or refused.

The pieces are stored without compression, so that no small file can become a large one. A manifest lists the size and
the SHA-256 of each piece; the manifest's own SHA-256 is the comment of the zip. Nothing is ever extracted to disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import zipfile
from collections.abc import Mapping
from typing import IO

from castlereg.persistence.json_content import Content, parse
from castlereg.persistence.refusal import Unreadable

FORMAT, VERSION = "castlereg model", 1

_MANIFEST = "manifest.json"
_MOST_MANIFEST = 100_000  # bytes
_MOST_DIRECTORY = 10_000  # bytes of the zip's directory: room for more pieces than any version has
_END = struct.Struct("<4s4H2LH")  # the record at the end of a zip
_END_MARK, _LARGE_MARK = b"PK\x05\x06", b"PK\x06\x07"
_LARGE_LOCATOR = 20  # bytes before the end record that point at the directory of a zip of more than 2 GB
_LOCAL_HEADER, _DIRECTORY_ENTRY = 30, 46  # bytes, names not counted
_DAY_ONE = (1980, 1, 1, 0, 0, 0)  # the same model gives the same bytes
_COMMENT = b"castlereg sha256 "
_NO_MODEL = "give a file that castlereg.save wrote"


def write_archive(file: IO[bytes], pieces: Mapping[str, bytes], written_by: str) -> None:
    """Write pieces with their digests.

    Parameters
    ----------
    file : binary file
    pieces : mapping of str to bytes
    written_by : str
        Version of the package.
    """
    listed = {name: {"bytes": len(piece), "sha256": _digest(piece)} for name, piece in pieces.items()}
    manifest = json.dumps(
        {"format": FORMAT, "version": VERSION, "castlereg": written_by, "pieces": listed}, indent=1
    ).encode()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, piece in {_MANIFEST: manifest, **pieces}.items():
            member = zipfile.ZipInfo(name, _DAY_ONE)
            member.create_system, member.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            archive.writestr(member, piece)
        archive.comment = _COMMENT + _digest(manifest).encode()


def read_archive(file: IO[bytes], names: frozenset[str]) -> dict[str, bytes]:
    """Read the pieces of these names, and refuse a file that has others, or any that is not as it was written.

    Parameters
    ----------
    file : binary file
        Seekable.
    names : frozenset of str

    Returns
    -------
    dict of str to bytes
    """
    size = file.seek(0, os.SEEK_END)
    _check_end(file, size)
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            _check_members(members, size)
            manifest = _read(archive, members, _MANIFEST)
            if archive.comment != _COMMENT + _digest(manifest).encode():
                raise Unreadable("its manifest does not match its digest: the file is damaged or was changed")
            listed = _pieces_of(manifest)
            _check_names([member.filename for member in members], {_MANIFEST, *names})
            _check_all_counted(members, size, len(archive.comment))
            pieces = {name: _read(archive, members, name) for name in sorted(names)}
    except (zipfile.BadZipFile, struct.error, EOFError, OSError, ValueError, OverflowError) as error:
        raise Unreadable(f"it is no whole zip file ({error})") from None
    except (NotImplementedError, RuntimeError, LookupError) as error:
        raise Unreadable(f"its zip is of a kind that castlereg never writes ({error})") from None
    listed.only(*sorted(names))
    for name, piece in pieces.items():
        entry = listed.part(name)
        entry.only("bytes", "sha256")
        if entry.integer("bytes") != len(piece) or entry.text("sha256") != _digest(piece):
            raise Unreadable(f"{name} does not match its digest: the file is damaged or was changed")
    return pieces


def _digest(piece: bytes) -> str:
    return hashlib.sha256(piece).hexdigest()


def _check_end(file: IO[bytes], size: int) -> None:
    """Look at the end record before a library does: a directory of millions of entries would fill the memory."""
    room = _END.size + len(_COMMENT) + hashlib.sha256().digest_size * 2
    file.seek(max(0, size - room - _LARGE_LOCATOR))
    tail = file.read(room + _LARGE_LOCATOR)
    if len(tail) < room or tail[-room:][:4] != _END_MARK:
        file.seek(0)
        what = "it was cut off or changed" if file.read(2) == b"PK" else "it is no zip file"
        raise Unreadable(f"{what}: the end of a model file is missing", _NO_MODEL)
    _, _, _, _, entries, directory, _, comment = _END.unpack(tail[-room:][: _END.size])
    is_large = tail[:-room].startswith(_LARGE_MARK)
    if directory > _MOST_DIRECTORY or (is_large and size <= zipfile.ZIP64_LIMIT):
        raise Unreadable(f"its zip has a directory of {entries} entries in {directory} bytes, more than any model has")
    if comment != room - _END.size:
        raise Unreadable("its zip has another comment than castlereg.save writes", _NO_MODEL)


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse what castlereg never writes, before anything is read."""
    seen: set[str] = set()
    for member in members:
        name = member.filename
        if name in seen:
            raise Unreadable(f"it has {name!r} twice")
        seen.add(name)
        if member.orig_filename != name or any(mark in name for mark in ("/", "\\", "..")):
            raise Unreadable(f"it has a member {member.orig_filename!r} whose name is a path")
        if member.flag_bits & 0x1:
            raise Unreadable(f"its member {name!r} is encrypted")
        if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
            raise Unreadable(f"its member {name!r} is compressed, and castlereg.save never compresses")
        if member.flag_bits:
            raise Unreadable(f"its member {name!r} has flags {member.flag_bits:#x} that castlereg.save never sets")
        if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
            raise Unreadable(f"its member {name!r} is a link or another special file")
        if member.header_offset < 0 or member.header_offset + member.file_size > size:
            raise Unreadable(f"its member {name!r} claims {member.file_size} bytes, more than the file has")
    if sum(member.file_size for member in members) > size:
        raise Unreadable("its members overlap")


def _check_names(found: list[str], expected: set[str]) -> None:
    for name in sorted(expected - set(found)):
        raise Unreadable(f"its member {name!r} is missing")
    for name in sorted(set(found) - expected):
        raise Unreadable(f"it has a member {name!r} that does not belong to a model")


def _check_all_counted(members: list[zipfile.ZipInfo], size: int, comment: int) -> None:
    """Refuse bytes that belong to no member; large zips have headers of another length."""
    if size > zipfile.ZIP64_LIMIT:
        return
    headers = sum(_LOCAL_HEADER + _DIRECTORY_ENTRY + 2 * len(member.filename) for member in members)
    counted = headers + sum(member.file_size for member in members) + _END.size + comment
    if counted != size:
        raise Unreadable(f"it has {size - counted} bytes that belong to no member")


def _read(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], name: str) -> bytes:
    member = next((one for one in members if one.filename == name), None)
    if member is None:
        raise Unreadable(f"its member {name!r} is missing", _NO_MODEL)
    if name == _MANIFEST and member.file_size > _MOST_MANIFEST:
        raise Unreadable(f"its manifest has {member.file_size} bytes, and no model's is that long")
    return archive.read(member)


def _pieces_of(manifest: bytes) -> Content:
    """Check format and version; return the list of pieces."""
    content = Content(parse(manifest, _MANIFEST), _MANIFEST)
    if content.text("format") != FORMAT:
        raise Unreadable(f"it holds {content.text('format')!r} and no model", _NO_MODEL)
    version = content.integer("version")
    if version > VERSION:
        raise Unreadable(
            f"it has format version {version}, from castlereg {content.text('castlereg')}, and this castlereg reads "
            f"up to version {VERSION}",
            "update castlereg",
        )
    if version < 1:
        raise Unreadable(f"it has format version {version}, which never was")
    content.only("format", "version", "castlereg", "pieces")
    content.text("castlereg")
    return content.part("pieces")
