"""Structural equations: functions and noise of the nodes, and propagation from parents to children."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]

FUNCTIONS: Final[dict[str, Callable[[Array], Array]]] = {
    "linear": lambda x: x,
    "sigmoid": lambda x: np.asarray(expit(x)),
    # The released code computes this for its sigmoid: because of operator precedence, it is 1 + exp(-x).
    "released_sigmoid": lambda x: 1 + np.exp(-x),
    "sine": lambda x: np.sin(x),
}
# Draws of each kind of noise, with mean 0 and standard deviation 1.
NOISES: Final[dict[str, Callable[[np.random.Generator, int], Array]]] = {
    "gaussian": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.uniform(-np.sqrt(3), np.sqrt(3), n),
    "laplace": lambda rng, n: rng.laplace(0.0, 1 / np.sqrt(2), n),
    "gumbel": lambda rng, n: (rng.gumbel(size=n) - np.euler_gamma) * np.sqrt(6) / np.pi,
}
SMOOTH: Final = "smooth"
# Number of cosines of a smooth function. Its covariance differs from that of the Gaussian process by about 1 / sqrt(32)
# of the variance.
N_COSINES: Final = 32


class Features(NamedTuple):
    """Features of one node: their number, and ``apply(values)``, which maps shape (rows,) to (size, rows).

    Values of a categorical node are the numbers of its levels.
    """

    size: int
    apply: Callable[[Array], Array]


def node_features(function: str, n_levels: int, rng: np.random.Generator) -> Features:
    """Return the features of a node with ``n_levels`` levels; 0 means numeric.

    The generator draws the cosines of smooth functions: random Fourier features of the Gaussian process with
    covariance ``exp(-(x - x')^2 / 2)``.

    Examples
    --------
    >>> import numpy as np
    >>> node_features("linear", 3, np.random.default_rng(0)).apply(np.array([2.0, 0.0]))
    array([[0., 1.],
           [0., 0.],
           [1., 0.]])
    """
    if n_levels:
        levels = np.arange(n_levels)[:, None]
        return Features(n_levels, lambda x: (x == levels).astype(np.float64))
    if function == SMOOTH:
        frequency = rng.standard_normal((N_COSINES, 1))
        phase = rng.uniform(0, 2 * np.pi, (N_COSINES, 1))
        return Features(N_COSINES, lambda x: np.cos(frequency * x + phase))
    apply = FUNCTIONS[function]
    return Features(1, lambda x: apply(x)[None])


def effects(
    function: str, n_levels: int, children_levels: Sequence[int], size: int, rng: np.random.Generator
) -> list[Array]:
    """Return the effect of a node's features on each child, shape (signals of the child, size), for edges of weight 1.

    Numeric nodes have 0 levels. The effect of a numeric node on a numeric child is 1 unless the function is smooth.
    Effects of levels, or on levels, are normal draws with mean 0 and mean square 1 over the levels, so no edge is
    without an effect. Smooth functions have unit variance. The effects on the first children do not depend on the
    number of children.
    """
    by_child = []
    for child_levels in children_levels:
        drawn = rng.standard_normal((max(child_levels, 1), size))
        if not n_levels and function == SMOOTH:
            by_child.append(drawn * np.sqrt(2 / size))
        elif n_levels or child_levels:
            if n_levels:
                drawn -= drawn.mean(axis=1, keepdims=True)
            if child_levels:
                drawn -= drawn.mean(axis=0)
            by_child.append(drawn / np.sqrt(np.mean(drawn**2)))
        else:
            by_child.append(np.ones((1, 1)))
    return by_child


BLOCK: Final = 16  # signals of a block: enough for efficient products, but few edges within a block
# Products are of (signals, features) with (features, TILE). They are below the size at which BLAS starts other threads,
# which takes longer than the product on a busy machine.
TILE: Final = 64
TILES: Final = 63  # tiles of one piece; odd, because rows a power of two apart would share cache lines
CELLS: Final = 2_000_000  # maximum number of values in one piece: 16 MB


class Step(NamedTuple):
    """One node of a block: its signals, their rows in the block's sums, and edges from within the block."""

    node: int
    signals: slice
    sums: slice
    features: slice | None  # None for a node without children
    inner: slice
    inner_weights: Array | None


class Block(NamedTuple):
    """Nodes that are computed together, and the weights of the features of earlier blocks."""

    columns: slice | NDArray[np.intp]
    weights: Array | None
    steps: tuple[Step, ...]


class Equations(NamedTuple):
    """All structural equations of a model: ``signals = noise + weights @ features``."""

    n_levels: tuple[int, ...]  # of each node, 0 if numeric
    features: tuple[Features, ...]  # of each node
    signal_slices: tuple[slice, ...]  # of each node; signals are in the order of the nodes
    feature_slices: tuple[slice, ...]  # of each node; features are in topological order
    weights: Array  # (signals, features)
    blocks: tuple[Block, ...]

    def values(self, node: int, signals: Array) -> Array:
        """Return the values of a node: its signal, or the number of the level with the highest signal."""
        of_node = signals[self.signal_slices[node]]
        return of_node.argmax(axis=0).astype(np.float64) if self.n_levels[node] else of_node[0]


def equations(
    edge_weights: Array,
    n_levels: tuple[int, ...],
    features: tuple[Features, ...],
    effects: list[list[Array]] | None = None,
) -> Equations:
    """Arrange the equations of a graph in blocks.

    ``effects[parent][child]`` has shape (signals of child, features of parent). By default all effects are 1, for which
    each node must have one feature and one signal.
    """
    import networkx as nx

    graph = nx.empty_graph(len(n_levels), create_using=nx.DiGraph)
    graph.add_edges_from(np.argwhere(edge_weights).tolist())
    # In order of generations, so nodes of a block rarely have edges between them.
    order = [node for generation in nx.topological_generations(graph) for node in sorted(generation)]
    signals = _slices([max(levels, 1) for levels in n_levels])
    in_order = _slices([features[node].size for node in order])
    columns = tuple(in_order[k] for k in np.argsort(order))
    if effects is None:
        weights = np.ascontiguousarray(edge_weights[order].T)
    else:
        weights = np.zeros((signals[-1].stop, in_order[-1].stop))
        for parent, child in np.argwhere(edge_weights):
            weights[signals[child], columns[parent]] = edge_weights[parent, child] * effects[parent][child]

    blocks: list[Block] = []
    nodes: list[int] = []
    size = 0
    for k, node in enumerate(order):
        nodes.append(node)
        size += max(n_levels[node], 1)
        if size >= BLOCK or k == len(order) - 1:
            blocks.append(_block(nodes, signals, columns, weights))
            nodes, size = [], 0
    return Equations(n_levels, features, signals, columns, weights, tuple(blocks))


def _slices(sizes: list[int]) -> tuple[slice, ...]:
    ends = np.cumsum(sizes).tolist()
    return tuple(slice(end - size, end) for end, size in zip(ends, sizes, strict=True))


def _block(nodes: list[int], signals: tuple[slice, ...], columns: tuple[slice, ...], weights: Array) -> Block:
    start = columns[nodes[0]].start
    sums = _slices([signals[node].stop - signals[node].start for node in nodes])
    steps = []
    for node, rows in zip(nodes, sums, strict=True):
        inner = slice(start, columns[node].start)
        inside = weights[signals[node], inner]
        features = columns[node] if weights[:, columns[node]].any() else None
        steps.append(Step(node, signals[node], rows, features, inner, inside.copy() if inside.any() else None))
    outer = np.concatenate([weights[signals[node], :start] for node in nodes])
    used = np.flatnonzero(outer.any(axis=0))
    if not len(used):
        return Block(slice(0), None, tuple(steps))
    if 2 * len(used) > start:  # copying the used features would cost more than multiplying by zeros
        return Block(slice(start), outer, tuple(steps))
    return Block(used, np.ascontiguousarray(outer[:, used]), tuple(steps))


def propagate(system: Equations, signals: Array) -> None:
    """Convert the noise of every signal, shape (signals, rows), to its value, in place."""
    n_features, n_rows = system.weights.shape[1], signals.shape[1]
    tiles = max(1, min(TILES, CELLS // (n_features * TILE)))
    start = 0
    while start < n_rows:
        n_tiles = min(tiles, (n_rows - start) // TILE)
        width = TILE if n_tiles else n_rows - start
        stop = start + max(n_tiles, 1) * width
        _propagate_piece(system, signals[:, start:stop], width)
        start = stop


def _propagate_piece(system: Equations, signals: Array, width: int) -> None:
    """Propagate a number of rows that is a multiple of ``width``."""
    features = np.zeros((system.weights.shape[1], signals.shape[1]))
    for block in system.blocks:
        sums = None if block.weights is None else _product(block.weights, features[block.columns], width)
        for step in block.steps:
            of_node = signals[step.signals]
            if sums is not None:
                of_node += sums[step.sums]
            if step.inner_weights is not None:
                of_node += _product(step.inner_weights, features[step.inner], width)
            if step.features is not None:
                features[step.features] = system.features[step.node].apply(system.values(step.node, signals))


def _product(weights: Array, features: Array, width: int) -> Array:
    """Multiply tile by tile, ``weights @ features``."""
    tiled = (-1, features.shape[1] // width, width)
    result = np.empty((len(weights), features.shape[1]))
    np.matmul(weights, features.reshape(tiled).swapaxes(0, 1), out=result.reshape(tiled).swapaxes(0, 1))
    return result
