"""Room for rows: few sizes, aligned and not copied."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.table.table import room_for, rounded_up, with_empty_rows


@pytest.mark.parametrize("n", [1, 2, 16, 17, 1000, 1024, 1025, 5000, 99_999, 10**6])
def test_rounded_up_wastes_little_and_has_few_values(n: int) -> None:
    assert rounded_up(n) >= n
    assert rounded_up(n) <= max(16, 2 * n if n <= 1024 else n * 1.125)
    assert rounded_up(rounded_up(n)) == rounded_up(n)


def test_rounded_sizes() -> None:
    assert [rounded_up(n) for n in (3, 100, 1025, 100_000)] == [16, 128, 1152, 106496]


def test_few_rounded_sizes_serve_many_tables() -> None:
    assert len({rounded_up(n) for n in range(1, 100_000)}) < 70


def test_rows_with_room_are_not_copied(rng: np.random.Generator) -> None:
    room = room_for(20, 3)
    assert room.ctypes.data % 64 == 0 and with_empty_rows(room[:20], room) is room
    rows = rng.normal(size=(20, 3)).astype(np.float32)
    copied = with_empty_rows(rows)
    np.testing.assert_array_equal(copied[:20], rows)
    assert not copied[20:].any()
