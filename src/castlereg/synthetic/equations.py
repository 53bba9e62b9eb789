"""Effects of a parent on its children: functions of its value, effects of its levels, random functions; and noise.

Every node is described by *features* of its value, shape (features, rows), and every child adds a weighted sum of the
features of its parents. A function such as the sigmoid is one feature, a categorical node has one feature per level, a
smooth random function is a sum of many cosines. A node has one *signal*, its value; a categorical node one per level.
"""

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
    # What the released code computes for its sigmoid: an operator's precedence makes it 1 + exp(-x).
    "released_sigmoid": lambda x: 1 + np.exp(-x),
    "sine": lambda x: np.sin(x),
}
# Draws of each kind of noise, of mean zero and standard deviation one.
NOISES: Final[dict[str, Callable[[np.random.Generator, int], Array]]] = {
    "gaussian": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.uniform(-np.sqrt(3), np.sqrt(3), n),
    "laplace": lambda rng, n: rng.laplace(0.0, 1 / np.sqrt(2), n),
    "gumbel": lambda rng, n: (rng.gumbel(size=n) - np.euler_gamma) * np.sqrt(6) / np.pi,
}
SMOOTH: Final = "smooth"
# Cosines of a smooth function. Its covariance is that of the Gaussian process up to about 1 / sqrt(32) of the variance.
N_COSINES: Final = 32


class Features(NamedTuple):
    """Features of one node: how many, and ``apply(values)`` from shape (rows,) to (size, rows).

    Values of a categorical node are the positions of its levels.
    """

    size: int
    apply: Callable[[Array], Array]


def node_features(function: str, n_levels: int, rng: np.random.Generator) -> Features:
    """Return the features of a node with ``n_levels`` levels, 0 if numeric.

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

    Numbers of levels are 0 for numeric nodes. The effect is 1 for a plain function into a numeric child. Effects of
    levels, or on levels, are normal draws of mean zero and mean square one over the levels, so that no edge is without
    effect. Smooth functions have unit variance. The first children get the same effects however many follow.
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
