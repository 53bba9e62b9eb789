"""The equations of a known world, for questions about its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import log_softmax

from castlereg.causal.structural.system import posterior_gumbel
from castlereg.causal.synthetic.equations import NOISES, Equations

Array = NDArray[np.float64]

# Densities of each kind of noise, with mean 0 and standard deviation 1.
_DENSITIES = {
    "gaussian": stats.norm(),
    "uniform": stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)),
    "laplace": stats.laplace(scale=1 / np.sqrt(2)),
    "gumbel": stats.gumbel_r(-np.euler_gamma * np.sqrt(6) / np.pi, np.sqrt(6) / np.pi),
}


@dataclass(frozen=True)
class KnownSystem:
    """A :class:`castlereg.causal.structural.system.System` of known equations."""

    equations: Equations
    edge_weights: Array  # (nodes, nodes)
    noise_kinds: tuple[str, ...]
    noise_stds: tuple[float, ...]

    @cached_property
    def edges(self) -> NDArray[np.bool_]:
        """Edges of the graph, shape (nodes, nodes)."""
        return np.asarray(self.edge_weights != 0)

    def draw(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw noise."""
        slices = self.equations.signal_slices
        noise = np.empty((slices[-1].stop, n_rows))
        for node, of_node in enumerate(slices):
            if self.equations.n_levels[node]:
                noise[of_node] = rng.gumbel(size=noise[of_node].shape)
                continue
            noise[of_node] = NOISES[self.noise_kinds[node]](rng, n_rows)
            if self.noise_stds[node] != 1:
                noise[of_node] *= self.noise_stds[node]
        return noise

    def solve(self, noise: Array, values: Array, nodes: Sequence[int]) -> None:
        """Compute the values of nodes, causes first, from those of all others; in place."""
        for k in nodes:
            signals = self.given(k, values) + noise[self.equations.signal_slices[k]]
            values[k] = signals.argmax(axis=0) if self.equations.n_levels[k] else signals[0]

    def given(self, node: int, values: Array) -> Array:
        """Return a number, or a score for each level, from the parents of a node; shape (signals, rows)."""
        system = self.equations
        at = system.signal_slices[node]
        total = np.zeros((at.stop - at.start, values.shape[1]))
        for parent in np.flatnonzero(self.edges[:, node]).tolist():
            weights = system.weights[at, system.feature_slices[parent]]
            total += weights @ system.features[parent].apply(values[parent])
        return total

    def abduct(self, values: Array, nodes: Sequence[int], seed: int) -> Array:
        """Return noise for which nodes have these values."""
        noise = np.zeros((self.equations.signal_slices[-1].stop, values.shape[1]))
        for k in nodes:
            outputs, at = self.given(k, values), self.equations.signal_slices[k]
            if self.equations.n_levels[k]:
                noise[at] = posterior_gumbel(outputs, values[k].astype(np.int64), np.random.default_rng([seed, k]))
            else:
                noise[at] = values[k] - outputs[0]
        return noise

    def log_densities(self, values: Array) -> Array:
        """Return the log density of every value given its parents, shape (nodes, rows)."""
        densities = np.zeros(values.shape)
        for k in range(len(values)):
            outputs = self.given(k, values)
            if self.equations.n_levels[k]:
                codes = values[k].astype(np.int64)
                densities[k] = log_softmax(outputs, axis=0)[codes, np.arange(len(codes))]
            else:
                std = self.noise_stds[k]
                if std == 0:
                    raise ValueError("a column without noise (noise_std=0) has no density; use a positive noise_std")
                densities[k] = _DENSITIES[self.noise_kinds[k]].logpdf((values[k] - outputs[0]) / std) - np.log(std)
        return densities
