"""Theorem 1, term by term: the paper's bound on the error on unseen rows.

With probability ``1 - delta`` over the draw of ``N`` training rows (the last line of the proof)::

    L_P <= 4 L_N + 2/N * (R + C_1 * (V_Theta1 + V_Theta2) + log(8 / delta)) + C_2
    C_1 = (zeta * (d + 1) * kappa**(M - 1) / gamma)**2,    zeta = M B e sqrt(2 log(2 e h)),    C_2 = s**2 + 6 gamma

The theorem in the paper's main text has ``1/N`` where the proof's last line has ``2/N``, and calls the constant
``C_3``. This module follows the proof; :attr:`GeneralizationBound.as_printed` follows the main text. ``L`` is the
squared error summed over all sub-networks. The bound is far too large to be informative for a real network:
``docs/bound.md`` has the figures, and the steps of the proof that do not hold as written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.linalg
import scipy.special
from numpy.typing import ArrayLike, NDArray

from castlereg.layout import Layout
from castlereg.losses import Batch
from castlereg.network import Parameters, forward, squared_adjacency
from castlereg.options import check_fraction, check_number
from castlereg_paper.protocol import fitted_network

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from castlereg.estimators.base import NetworkEstimator

Floats = NDArray[np.float64]


# --- quantities of a network and of rows -------------------------------------------------------------


class Layers(NamedTuple):
    """A network in the form of the theorem: matrices without biases, see :func:`layers_of`."""

    inputs: Floats  # (sub-networks, channels + 1, width + 1), W_1^k
    shared: tuple[Floats, ...]  # W_2 ... W_{M-1}
    output: Floats | None  # (width + 1, sub-networks * outputs), W_M; None in the linear form

    @property
    def depth(self) -> int:
        """Number of layers with weights, ``M``."""
        return 1 + len(self.shared) + (self.output is not None)


def layers_of(parameters: Parameters) -> Layers:
    """Rewrite a network with biases as a network without.

    The networks of the theorem have no biases. A bias is a weight from a unit that is always one: each layer gets such
    a unit, and its matrix gets a row for the biases and a column that passes the constant on.
    """
    p = _float64(parameters)
    inputs = np.concatenate([p.input_weights.swapaxes(0, 1), p.input_bias[:, None]], axis=1)
    if p.output_weights is None:
        return Layers(inputs, (), None)
    shared = tuple(_with_constant_unit(np.vstack([layer.weights, layer.bias])) for layer in p.hidden)
    columns = np.concatenate([p.output_weights, p.output_bias[:, None]], axis=1)
    return Layers(_with_constant_unit(inputs), shared, np.concatenate(list(columns), axis=1))


def largest_spectral_norm(layers: Layers) -> float:
    """Return ``kappa``, the largest spectral norm of the weight matrices."""
    matrices = [*layers.inputs, *layers.shared, *([] if layers.output is None else [layers.output])]
    return max(float(np.linalg.norm(matrix, 2)) for matrix in matrices)


def largest_row_norm(inputs: Floats) -> float:
    """Return ``B``, the largest Euclidean norm of a row, including the constant one for biases."""
    return float(np.sqrt(1 + np.max(np.sum(inputs**2, axis=1))))


def squared_errors(parameters: Parameters, batch: Batch, layout: Layout) -> Floats:
    """Return ``||f(x) - x||^2`` of each row, the loss of Assumption 2, summed over the sub-networks.

    The theorem does not cover binary and categorical nodes. Here their loss is the squared error of the probabilities
    (the Brier score): the logistic and softmax functions do not increase distances, so the perturbation step of the
    proof carries over.
    """
    n_run = parameters.input_weights.shape[1]
    run = range(layout.n_nodes - n_run, layout.n_nodes)  # all nodes, or the targets, which come last
    outputs = np.asarray(forward(_float64(parameters), batch.inputs))
    total = np.zeros(len(outputs))
    for position, k in enumerate(run):
        node = layout.nodes[k]
        predicted, truth = outputs[:, position, : node.levels], np.asarray(batch.truth)[:, k, : node.levels]
        if node.kind == "binary":
            predicted = scipy.special.expit(predicted)
        elif node.kind == "categorical":
            predicted = scipy.special.softmax(predicted, axis=1)
        present = 1.0 if batch.observed is None else np.asarray(batch.observed)[:, k]
        total += present * np.sum((predicted - truth) ** 2, axis=1)
    return total


def acyclicity(parameters: Parameters, layout: Layout) -> float:
    """Return ``R_Theta1`` of eq. 7, in float64; 0 without sub-networks of features."""
    weights = np.asarray(parameters.input_weights, np.float64)
    if weights.shape[1] < layout.n_nodes:
        return 0.0
    adjacency: Any = squared_adjacency(weights, layout)  # type: ignore[arg-type]
    return float(np.trace(scipy.linalg.expm(adjacency)) - layout.n_nodes) ** 2


def sub_gaussian_factor(losses: ArrayLike) -> float:
    """Estimate ``s^2`` of Assumption 2 from a sample of losses.

    This is the smallest number with ``mean(exp(t (L - mean L))) <= exp(t^2 s^2 / 2)`` for every ``t > 0``, with means
    over the sample. It is at least the variance, and larger if the losses have a heavy right tail. It is an estimate,
    not a guarantee: unseen rows may be worse than any row of the sample, and squared errors of unbounded columns are
    not sub-Gaussian.

    Parameters
    ----------
    losses : array-like of shape (rows,)

    Examples
    --------
    >>> import numpy as np
    >>> s2 = sub_gaussian_factor(np.random.default_rng(0).normal(scale=3, size=100_000))
    >>> round(s2 / 9, 1)
    1.0
    """
    centred = np.asarray(losses, np.float64)
    centred = centred - centred.mean()
    spread = centred.std()
    if spread <= 1e-12 * max(1.0, float(np.abs(losses).max())):
        return 0.0
    factors = [
        2 * (scipy.special.logsumexp(t * centred) - np.log(len(centred))) / t**2
        for t in np.logspace(-3, 2, 400) / spread
    ]
    return float(max(spread**2, *factors))


# --- the constants and steps of the proof -----------------------------------------------------------


def zeta(depth: int, largest_row: float, width: int) -> float:
    """Return ``zeta = M B e sqrt(2 log(2 e h))``."""
    return float(depth * largest_row * math.e * np.sqrt(2 * np.log(2 * math.e * width)))


def c_1(gamma: float, zeta: float, n_outputs: int, kappa: float, depth: int) -> float:
    """Return ``C_1 = (zeta (d + 1) kappa^(M - 1) / gamma)^2``, which is ``1 / sigma^2``."""
    return float((zeta * n_outputs * kappa ** (depth - 1) / gamma) ** 2)


def gaussian_kl(mean: ArrayLike, sigma: float) -> float:
    """Return the Kullback-Leibler divergence of ``N(mean, sigma^2 I)`` from ``N(0, sigma^2 I)``, the terms of eq. 12.

    Examples
    --------
    >>> gaussian_kl([3.0, 4.0], sigma=5.0)
    0.5
    """
    return float(np.sum(np.square(np.asarray(mean, np.float64))) / (2 * sigma**2))


def sharpness(
    parameters: Parameters,
    inputs: Floats,
    sigma: float,
    edge_mask: NDArray[np.float32],
    *,
    n_draws: int = 200,
    random_state: int | np.random.Generator = 0,
) -> float:
    """Measure the quantity that ``gamma`` bounds in step 3 of the proof: how perturbed weights change the outputs.

    Return the mean over draws of ``||f_u(x) - f(x)||^2`` of the worst of the standardized rows, for a Gaussian
    perturbation of every weight and bias of one network; weights whose ``edge_mask`` is 0 stay zero.
    """
    rng = np.random.default_rng(random_state)
    unperturbed = _float64(parameters)
    before = np.asarray(forward(unperturbed, inputs))  # type: ignore[arg-type]
    moved = np.zeros(len(inputs))
    for _ in range(n_draws):
        drawn: Any = _mapped(unperturbed, lambda a: a + sigma * rng.standard_normal(a.shape))
        drawn = drawn._replace(
            input_weights=unperturbed.input_weights
            + (drawn.input_weights - unperturbed.input_weights) * edge_mask[:, :, None]
        )
        moved += np.sum((np.asarray(forward(drawn, inputs)) - before) ** 2, axis=(1, 2))  # type: ignore[arg-type]
    return float(np.max(moved / n_draws))


# --- the bound ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GeneralizationBound:
    """The right-hand side of Theorem 1 for one network, and its terms."""

    empirical_loss: float  # L_N: mean over rows of the squared error summed over the sub-networks
    acyclicity: float  # R, eq. 7
    input_l1: float  # V_Theta1: l1 norm of the input layers
    later_squares: float  # V_Theta2: sum of the squared weights of the shared and output layers
    bias_squares: float  # sum of the squared biases; the networks of the paper have none
    input_squares: float  # sum of the squared weights of the input layers, which V_Theta1 replaces in the proof
    largest_row: float  # B, the measured largest norm of a row
    kappa: float  # measured largest spectral norm of the weight matrices
    depth: int  # M
    width: int  # h
    n_outputs: int  # number of sub-networks: d + 1 for CASTLE, 1 for a plain network
    n_rows: int  # N
    gamma: float
    s2: float
    delta: float
    price_of_gamma: float  # added to log(8 / delta) if gamma was chosen from the results, otherwise 0

    @property
    def zeta(self) -> float:
        """``zeta`` of the theorem."""
        return zeta(self.depth, self.largest_row, self.width)

    @property
    def c_1(self) -> float:
        """``C_1`` of the theorem."""
        return c_1(self.gamma, self.zeta, self.n_outputs, self.kappa, self.depth)

    @property
    def c_2(self) -> float:
        """``C_2 = s^2 + 6 gamma``."""
        return self.s2 + 6 * self.gamma

    @property
    def sigma(self) -> float:
        """Standard deviation of the perturbation in the proof, ``1 / sqrt(C_1)``."""
        return float(self.c_1**-0.5)

    @property
    def kl_step_holds(self) -> bool:
        """Whether the l1 norm of the input layers is at least the sum of their squares, as eq. 12 assumes."""
        return self.input_squares <= self.input_l1

    @property
    def parts(self) -> dict[str, float]:
        """Contribution of each term to the bound, by its name in the paper; biases count as part of ``V_Theta2``."""
        each = 2 / self.n_rows
        return {
            "4 L_N": 4 * self.empirical_loss,
            "R": each * self.acyclicity,
            "C_1 V_Theta1": each * self.c_1 * self.input_l1,
            "C_1 V_Theta2": each * self.c_1 * (self.later_squares + self.bias_squares),
            "log(8/delta)": each * (np.log(8 / self.delta) + self.price_of_gamma),
            "s^2": self.s2,
            "6 gamma": 6 * self.gamma,
        }

    @property
    def total(self) -> float:
        """The right-hand side, as in the last line of the proof."""
        return float(sum(self.parts.values()))

    @property
    def as_printed(self) -> float:
        """The right-hand side as in the statement of the theorem, with ``1/N`` instead of ``2/N``."""
        by_rows = ("R", "C_1 V_Theta1", "C_1 V_Theta2", "log(8/delta)")
        return float(self.total - sum(self.parts[name] for name in by_rows) / 2)

    def to_frame(self) -> pd.DataFrame:
        """Return the contribution of each term, its share of the total, and the total."""
        frame = pd.DataFrame({"adds": {**self.parts, "bound": self.total}}).rename_axis("term")
        return frame.assign(share=frame["adds"] / self.total)

    def constants(self) -> pd.Series:
        """Return all measured and derived quantities by name."""
        derived = {"zeta": self.zeta, "c_1": self.c_1, "c_2": self.c_2, "sigma": self.sigma}
        return pd.Series({**{field.name: getattr(self, field.name) for field in fields(self)}, **derived}, name="value")

    def plot(self, ax: Axes | None = None, *, test_loss: float | None = None) -> Axes:
        """Draw the terms on a logarithmic scale, and a loss on other rows for comparison."""
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(figsize=(7, 3.2), layout="constrained")[1]
        shown = {"bound": self.total, **{k: v for k, v in self.parts.items() if v > 0}}
        if test_loss is not None:
            shown["loss on other rows"] = test_loss
        colours = ["#364fc7" if k == "bound" else "#d9480f" if k == "loss on other rows" else "#9aa7b4" for k in shown]
        # Bars on a logarithmic axis need a starting point: a decade below the smallest value.
        floor = 10 ** (np.floor(np.log10(min(shown.values()))) - 1)
        ax.barh(list(shown), [value - floor for value in shown.values()], left=floor, color=colours)
        for position, value in enumerate(shown.values()):
            ax.annotate(f"{value:.3g}", (value, position), (4, 0), textcoords="offset points", va="center", fontsize=8)
        ax.set(xscale="log", xlim=(floor, max(shown.values()) * 30), xlabel="squared error, all sub-networks")
        ax.set_title("Theorem 1, term by term (logarithmic)", fontsize=10)
        ax.invert_yaxis()
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def __str__(self) -> str:
        return (
            f"Theorem 1: with probability {1 - self.delta:g} the loss on other rows is at most {self.total:.3g} "
            f"(on these rows: {self.empirical_loss:.3g}; gamma {self.gamma:.3g}, kappa {self.kappa:.3g}, "
            f"B {self.largest_row:.3g}, N {self.n_rows})"
        )


def generalization_bound(
    model: NetworkEstimator,
    X: ArrayLike,
    y: ArrayLike,
    delta: float = 0.05,
    *,
    gamma: float | None = None,
    s2: float | None = None,
    member: int = 0,
) -> GeneralizationBound:
    """Compute Theorem 1 for a fitted network.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of this package: CASTLE, or a plain network, which has sub-networks only for its targets.
    X, y : array-like
        The training rows.
    delta : float
        Probability that the bound may fail.
    gamma : float, optional
        Largest allowed change of perturbed outputs. By default the power of two that minimizes the bound; this choice
        adds ``log(1.5 (|j| + 1) (|j| + 2))`` to the logarithm for ``gamma = 2^j``, so that all powers together fail
        with probability ``delta``.
    s2 : float, optional
        Sub-Gaussian variance factor of the loss; by default estimated on the rows by :func:`sub_gaussian_factor`.
    member : int
        Index of the network, for an estimator with several. The squared error of their mean is at most the mean of
        their squared errors.

    Examples
    --------
    >>> from castlereg import CastleRegressor
    >>> from castlereg.causal import example_dag, sample
    >>> data = sample(example_dag(), 200, random_state=0)
    >>> X, y = data.drop(columns="Y"), data["Y"]
    >>> bound = generalization_bound(CastleRegressor(max_epochs=5, random_state=0).fit(X, y), X, y)
    >>> bound.total > bound.empirical_loss
    True
    >>> bound.to_frame().index.tolist()
    ['4 L_N', 'R', 'C_1 V_Theta1', 'C_1 V_Theta2', 'log(8/delta)', 's^2', '6 gamma', 'bound']
    """
    check_fraction("delta", delta)
    if gamma is not None:
        check_number("gamma", gamma, above=0)
    if s2 is not None:
        check_number("s2", s2, least=0)
    parameters, batch, layout = fitted_network(model, X, y, member)
    layers = layers_of(parameters)
    losses = squared_errors(parameters, batch, layout)
    later = _dense_weights(_float64(parameters))[1:]
    biases = [parameters.input_bias, *(layer.bias for layer in parameters.hidden), parameters.output_bias]
    measured: dict[str, Any] = {
        "empirical_loss": float(losses.mean()),
        "acyclicity": acyclicity(parameters, layout),
        "input_l1": float(np.sum(np.abs(np.asarray(parameters.input_weights, np.float64)))),
        "later_squares": _squares(later),
        "bias_squares": _squares([bias for bias in biases if bias is not None]),
        "input_squares": _squares([parameters.input_weights]),
        "largest_row": largest_row_norm(np.asarray(batch.inputs)),
        "kappa": largest_spectral_norm(layers),
        "depth": layers.depth,
        "width": max(matrix.shape[-1] for matrix in (layers.inputs, *layers.shared)),
        "n_outputs": layers.inputs.shape[0],
        "n_rows": len(losses),
        "s2": sub_gaussian_factor(losses) if s2 is None else float(s2),
        "delta": float(delta),
    }
    if gamma is not None:
        return GeneralizationBound(**measured, gamma=float(gamma), price_of_gamma=0.0)
    powers = _powers_around(GeneralizationBound(**measured, gamma=1.0, price_of_gamma=0.0))
    bounds = [
        GeneralizationBound(**measured, gamma=2.0**j, price_of_gamma=float(np.log(1.5 * (abs(j) + 1) * (abs(j) + 2))))
        for j in powers
    ]
    return min(bounds, key=lambda bound: bound.total)


def _powers_around(at_one: GeneralizationBound) -> Sequence[int]:
    """Return powers of two around the gamma that minimizes ``6 gamma + a / gamma^2``: ``(a / 3)^(1/3)``."""
    parts = at_one.parts
    a = max(parts["C_1 V_Theta1"] + parts["C_1 V_Theta2"], 1e-9)
    best = int(np.round(np.log2(a / 3) / 3))
    return range(best - 2, best + 3)


def _with_constant_unit(matrix: Floats) -> Floats:
    """Add the column that passes the constant unit on: zeros with a one in the last row."""
    column = np.zeros((*matrix.shape[:-1], 1))
    column[..., -1, 0] = 1
    return np.concatenate([matrix, column], axis=-1)


def _squares(arrays: Sequence[Any]) -> float:
    return float(sum(np.sum(np.square(np.asarray(array, np.float64))) for array in arrays))


def _float64(parameters: Parameters) -> Any:
    return _mapped(parameters, lambda a: np.asarray(a, np.float64))


def _mapped(parameters: Parameters, change: Any) -> Any:
    import jax

    return jax.tree.map(change, parameters)


def _dense_weights(parameters: Parameters) -> list[Any]:
    """List the weights, without biases, of the input layers, the shared hidden layers and the output layers."""
    later = [] if parameters.output_weights is None else [parameters.output_weights]
    return [parameters.input_weights, *(layer.weights for layer in parameters.hidden), *later]
