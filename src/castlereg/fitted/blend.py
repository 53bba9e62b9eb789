"""Networks of several kinds that predict together, each with its weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castlereg.fitted.networks import Networks
from castlereg.network import select
from castlereg.table.preprocessing import Preprocessing


@dataclass(frozen=True)
class Blend:
    """Candidates of a search that predict together.

    Every part has one network for each fold. A fold's prediction is the weighted mean of its networks' predictions. A
    blend therefore has folds where :class:`castlereg.fitted.Networks` has members, and intervals, class sets and
    held-out predictions are the same for both.
    """

    parts: tuple[Networks, ...]  # with only the targets' sub-networks
    weights: NDArray[np.float64]  # (parts,), summing to 1
    names: tuple[str, ...]  # of the candidates

    @property
    def preprocessing(self) -> Preprocessing:
        """Preprocessing from rows to channels."""
        return self.parts[0].preprocessing

    @property
    def n_members(self) -> int:
        """Number of folds."""
        return self.parts[0].n_members

    def of_members(self, members: NDArray[np.int64]) -> Blend:
        """Keep some folds."""
        return Blend(tuple(part.of_members(members) for part in self.parts), self.weights, self.names)

    def predict(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Predict every target from cells: values (folds, rows), probabilities (folds, rows, classes)."""
        targets = self.preprocessing.targets
        return [target.predicted(values) for target, values in zip(targets, self.predict_values(cells), strict=True)]

    def predict_values(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Predict every target like :meth:`predict`; all outputs, (folds, rows, outputs), if it has its own loss."""
        targets = self.preprocessing.targets
        shapes = [target.decode(np.zeros((1, self.parts[0].layout.output_width))).shape[1:] for target in targets]
        totals = [np.zeros((self.n_members, len(cells), *shape)) for shape in shapes]
        for rows, block in self.parts[0].encoded_blocks(cells):  # encoded once for all parts
            n_rows = rows.stop - rows.start
            for part, weight in zip(self.parts, self.weights, strict=True):
                outputs = part.outputs_of_blocks([(slice(0, n_rows), block)], n_rows)
                for k, (target, total) in enumerate(zip(targets, totals, strict=True)):
                    total[:, rows] += weight * target.decode(outputs[:, :, k])
        return totals


def targets_only(networks: Networks) -> Networks:
    """Keep only the targets' sub-networks, which are sufficient for prediction."""
    n_targets = len(networks.layout.targets)
    n_nodes = networks.parameters.input_bias.shape[1]
    if n_nodes == n_targets:
        return networks
    nodes = n_nodes - n_targets + np.arange(n_targets)
    members = [select(networks.member(i), nodes) for i in range(networks.n_members)]
    return Networks.stacked(networks.preprocessing, members, networks.standardization)
