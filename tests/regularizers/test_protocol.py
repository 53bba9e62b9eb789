"""Sequences of regularizers: what is rejected, and how."""

from __future__ import annotations

from typing import Any

import pytest

from castlereg.regularizers import L1, L2, Castle, Dropout
from castlereg.regularizers.protocol import check_regularizers


@pytest.mark.parametrize(
    ("regularizers", "message"),
    [
        (L2(0.1), r"regularizers=L2\(strength=0.1\) must be a sequence"),
        ("dropout", "regularizers='dropout' must be a sequence"),
        (None, "regularizers=None must be a sequence"),
        ([L2], r"contains <class '.*L2'>, which is not a regularizer; pass an instance, L2\(\)"),
        ([0.1], "contains 0.1, which is not a regularizer"),
        ([L2(0.1), L1(0.1), L2(0.2)], "L2 more than once"),
    ],
)
def test_what_is_not_a_sequence_of_regularizers_is_rejected(regularizers: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_regularizers(regularizers)


def test_hidden_layers_are_needed_by_what_acts_on_them() -> None:
    assert check_regularizers([L2(), Castle()], ()) == (L2(), Castle())
    with pytest.raises(ValueError, match=r"Dropout acts on hidden layers, but hidden_layer_sizes=\(\) has none"):
        check_regularizers([Dropout()], ())
