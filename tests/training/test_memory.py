"""How many networks fit into memory."""

from __future__ import annotations

from castlereg.regularizers import L2, Castle
from castlereg.training import memory
from tests.training.cases import table


def test_memory_is_shared_out() -> None:
    data = table(n_rows=60, d=3)
    size = memory.bytes_of_a_member(data, (4,), [Castle()])
    assert memory.members_that_fit(data, (4,), [Castle()], memory=10 * size) == 10
    assert memory.members_that_fit(data, (4,), [Castle()], memory=0) == 1
    assert memory.members_that_fit(data, (4,), [L2()], memory=10 * size) > 10
    assert memory.free_memory() > 0
    weights = memory.n_weights(data.layout, (4,), 4)
    assert weights == 4 * 4 * 4 + 4 * 4 + 4 * 4 + 4  # inputs, their biases, outputs, their biases
