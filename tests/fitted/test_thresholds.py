"""The threshold of the graph: rows are encoded once, and losses are those of a plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from castlereg.fitted.held_out import HeldOut
from castlereg.fitted.thresholds import _losses, sparsest_threshold
from castlereg.table.preprocessing import Preprocessing
from castlereg.table.reading import read_columns
from castlereg.table.targets import ClassTarget
from tests.fitted_models import fitted

pytestmark = pytest.mark.xdist_group("model files")


@pytest.mark.parametrize(("which", "n_encoded"), [("CastleMultiOutput", 1), ("CastleClassifierCV", 2)])
def test_thresholds_encode_held_out_rows_once(which: str, n_encoded: int, monkeypatch: pytest.MonkeyPatch) -> None:
    of = fitted(which)
    networks = of.model.model_.networks
    columns = of.y.items() if hasattr(of.y, "items") else [("", of.y)]
    truth = [np.asarray(column) for _, column in columns]
    cells = of.model.model_.cells(read_columns(of.X))
    by_member = [np.arange(member, len(cells), networks.n_members) for member in range(networks.n_members)]
    held_out = HeldOut(cells, truth, [2.0] * len(truth), by_member)

    n_features = networks.layout.n_features
    weights = networks.edge_weights().mean(axis=0)
    into_targets = weights[:n_features, n_features:].max(axis=1)
    kept = [into_targets >= threshold for threshold in (0.0, *np.unique(into_targets))]
    expected = [_plain_losses(networks.of_features(features), held_out) for features in kept]
    threshold = sparsest_threshold(networks, weights, held_out)

    calls: list[int] = []
    encode = Preprocessing.encode

    def counted(self: Preprocessing, cells: Any, **options: Any) -> Any:
        calls.append(len(cells))
        return encode(self, cells, **options)

    monkeypatch.setattr(Preprocessing, "encode", counted)
    np.testing.assert_array_equal(
        _losses(networks, np.repeat(np.array(kept)[:, None], networks.n_members, axis=1), held_out), expected
    )
    assert len(calls) == n_encoded and sum(calls) == len(cells)
    assert sparsest_threshold(networks, weights, held_out) == threshold


def _plain_losses(networks: Any, held_out: HeldOut) -> np.ndarray:
    """Every row is for one member here."""
    losses = np.zeros(len(held_out.cells))
    for member, rows in enumerate(held_out.by_member):
        for k, predicted in enumerate(networks.of_members(np.array([member])).predict(held_out.cells[rows])):
            target, values = networks.preprocessing.targets[k], held_out.truth[k][rows]
            if isinstance(target, ClassTarget):
                losses[rows] -= np.log(predicted[0, np.arange(len(rows)), target.codes(values)])
            else:
                losses[rows] += ((predicted[0] - values) / held_out.spread[k]) ** 2
    return losses
