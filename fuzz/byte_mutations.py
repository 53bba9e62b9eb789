"""Ways to damage bytes of any content."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Rng = np.random.Generator

_TOKENS = (
    *(
        b"",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\r",
        b"\n",
        b"\r\n",
        b'"',
        b"'",
        b",",
        b";",
        b"\t",
        b"|",
        b"{",
        b"}",
    ),
    *(
        b"[",
        b"]",
        b"nan",
        b"NaN",
        b"inf",
        b"-1",
        b"1e999",
        b"9" * 400,
        b"../../x",
        b"\x80",
        b"\xf0\x9f\x98\x80",
        b"\\u0000",
    ),
    *(
        b"\xed\xa0\x80",
        b"=1+1",
        b"#",
        b'""',
        b'","',
        b"null",
        b"true",
        b"PK\x03\x04",
        b"PAR1",
        b"\x1f\x8b",
        b" " * 50,
        b"A" * 9000,
    ),
)


def flip(content: bytes, rng: Rng) -> bytes:
    """Change some bits."""
    changed = bytearray(content)
    for at in rng.integers(0, len(content), rng.integers(1, 5)):
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def overwrite(content: bytes, rng: Rng) -> bytes:
    """Write random bytes, zeros or ones over a piece."""
    start, end = _piece(content, rng)
    fill = [rng.bytes(end - start), bytes(end - start), b"\xff" * (end - start)][int(rng.integers(3))]
    return content[:start] + fill + content[end:]


def cut(content: bytes, rng: Rng) -> bytes:
    """Leave out the end, the beginning or a piece."""
    start, end = _piece(content, rng)
    return [content[:start], content[end:], content[:start] + content[end:]][int(rng.integers(3))]


def repeat(content: bytes, rng: Rng) -> bytes:
    """Write a piece several times."""
    start, end = _piece(content, rng)
    return content[:end] + content[start:end] * int(rng.integers(1, 20)) + content[end:]


def insert(content: bytes, rng: Rng) -> bytes:
    """Write something that means something between."""
    at = int(rng.integers(len(content) + 1))
    return content[:at] + _TOKENS[int(rng.integers(len(_TOKENS)))] + content[at:]


def move(content: bytes, rng: Rng) -> bytes:
    """Move a piece elsewhere."""
    start, end = _piece(content, rng)
    rest = content[:start] + content[end:]
    at = int(rng.integers(len(rest) + 1))
    return rest[:at] + content[start:end] + rest[at:]


def enlarge(content: bytes, rng: Rng) -> bytes:
    """Make a number of four or eight bytes, such as a length, very large or very small."""
    width = int(rng.choice([4, 8]))
    at = int(rng.integers(max(len(content) - width, 1)))
    numbers = [2 ** (8 * width) - 1, 2 ** (8 * width - 1), 2 ** (8 * width - 1) - 1, 10**8, 0, len(content)]
    return content[:at] + numbers[int(rng.integers(len(numbers)))].to_bytes(width, "little") + content[at + width :]


MUTATIONS: tuple[Callable[[bytes, Rng], bytes], ...] = (
    flip,
    flip,
    overwrite,
    cut,
    repeat,
    insert,
    insert,
    move,
    enlarge,
)


def mutated(content: bytes, rng: Rng) -> bytes:
    """Damage bytes in one to three ways."""
    for _ in range(int(rng.integers(1, 4))):
        if content:
            content = MUTATIONS[int(rng.integers(len(MUTATIONS)))](content, rng)
    return content


def _piece(content: bytes, rng: Rng) -> tuple[int, int]:
    start = int(rng.integers(len(content)))
    return start, min(len(content), start + int(rng.choice([1, 4, 16, 64, 1000])))
