"""Scores of a learned graph against a known one, and whether its arrows merely follow scale or predictability.

Graphs are arrays of shape (nodes, nodes), with the nodes in the same order: ``graph[j, k]`` is not zero for an edge
j -> k. The known graph, ``truth``, has no cycles; the learned one may have some, unless a function states otherwise.
:func:`graph_scores` takes DataFrames and matches nodes by name.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from castlereg.acyclicity.cut import find_cycle
from castlereg.causal.graph import CausalGraph, InputGraph

if TYPE_CHECKING:
    import networkx as nx

Array = NDArray[np.float64]


def structural_hamming_distance(graph: ArrayLike, truth: ArrayLike) -> int:
    """Count the edges to add, remove or reverse to turn one graph into the other; a reversed edge counts once.

    Examples
    --------
    >>> chain = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    >>> one_reversed_and_one_more = [[0, 0, 1], [1, 0, 1], [0, 0, 0]]
    >>> structural_hamming_distance(one_reversed_and_one_more, chain)
    2
    """
    learned, true = _learned_and_true(graph, truth)
    reversed_edges = learned & ~true & true.T & ~learned.T
    return int((learned != true).sum() - reversed_edges.sum())


def edge_scores(graph: ArrayLike, truth: ArrayLike) -> dict[str, float]:
    """Score the edges with their directions: a reversed edge counts as wrong.

    ``precision`` is the share of the learned edges that are true, ``false_discovery_rate`` the share that are not,
    ``recall`` the share of the true edges that were learned, and ``f1`` the harmonic mean of precision and recall. A
    share of no edges is 0: a graph without edges has precision 0 and false discovery rate 0.

    Examples
    --------
    >>> scores = edge_scores([[0, 0, 1], [1, 0, 1], [0, 0, 0]], [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> {name: round(score, 2) for name, score in scores.items()}
    {'precision': 0.33, 'recall': 0.5, 'f1': 0.4, 'false_discovery_rate': 0.67}
    """
    return _shares(*_learned_and_true(graph, truth))


def skeleton_scores(graph: ArrayLike, truth: ArrayLike) -> dict[str, float]:
    """Score the edges without their directions: a reversed edge counts as right.

    Returns
    -------
    dict of str to float
        As from :func:`edge_scores`, but for unordered pairs of nodes.

    Examples
    --------
    >>> scores = skeleton_scores([[0, 0, 1], [1, 0, 1], [0, 0, 0]], [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> {name: round(score, 2) for name, score in scores.items()}
    {'precision': 0.67, 'recall': 1.0, 'f1': 0.8, 'false_discovery_rate': 0.33}
    """
    learned, true = _learned_and_true(graph, truth)
    return _shares(np.triu(learned | learned.T), np.triu(true | true.T))


def direction_accuracy(graph: ArrayLike, truth: ArrayLike) -> float:
    """Return the share of correct directions among the true edges that were learned in either direction.

    Returns
    -------
    float
        0.5 for guesses. An edge learned in both directions counts half. NaN if no true edge was learned.

    Examples
    --------
    >>> direction_accuracy([[0, 0, 1], [1, 0, 1], [0, 0, 0]], [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    0.5
    """
    learned, true = _learned_and_true(graph, truth)
    right, wrong = learned[true].astype(int), learned.T[true].astype(int)
    either_way = right + wrong > 0
    return float(1 + (right - wrong)[either_way].mean()) / 2 if either_way.any() else np.nan


def ranking_scores(weights: ArrayLike, truth: ArrayLike) -> dict[str, float]:
    """Score the ranking of the weights, which is best if all true edges weigh more than all others.

    No threshold is needed.

    Parameters
    ----------
    weights : array of shape (nodes, nodes)
        Larger for more certain edges; pass absolute values of signed coefficients. The diagonal is ignored.
    truth : array of shape (nodes, nodes)

    Returns
    -------
    dict of str to float
        ``auroc`` is the share of pairs of a true edge and a false one in which the true one weighs more, 0.5 for
        guesses. ``average_precision`` is the precision averaged over the true edges from the strongest down; for
        guesses it is about the share of the possible edges that are true. Both are NaN if the truth has no edges.

    Examples
    --------
    >>> scores = ranking_scores([[0, 0.9, 0.3], [0.2, 0, 0.4], [0.1, 0.5, 0]], [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> {name: round(score, 3) for name, score in scores.items()}
    {'auroc': 0.875, 'average_precision': 0.833}
    """
    values, true = _square_matrix("weights", weights), _edge_matrix("truth", truth)
    _check_same_shape("weights", values, true)
    if not true.any():
        return {"auroc": np.nan, "average_precision": np.nan}
    off_diagonal = ~np.eye(len(true), dtype=bool)
    labels, ranked = true[off_diagonal], values[off_diagonal]
    return {
        "auroc": float(roc_auc_score(labels, ranked)),
        "average_precision": float(average_precision_score(labels, ranked)),
    }


def structural_intervention_distance(graph: ArrayLike, truth: ArrayLike) -> int:
    """Count the effects that the learned graph gets wrong (Peters and Bühlmann, 2015).

    The effect of a cause on another node can be computed from data by adjusting for the parents of the cause. Here the
    parents are those of the learned graph, and an ordered pair (cause, effect) is wrong when adjusting for them is not
    valid in the true graph. If the effect is itself a learned parent of the cause, the learned graph says that there is
    no effect: this is wrong when the true graph has a directed path from the cause to it. Both graphs must be acyclic.

    Returns
    -------
    int
        From 0 to ``nodes * (nodes - 1)``. Extra edges do not count on their own. Swapping the two graphs changes the
        distance.

    Notes
    -----
    Adjusting is valid under two conditions (Shpitser, VanderWeele and Robins, 2010). No node on a directed path from
    the cause to the effect is adjusted for, nor a descendant of one, except the cause itself. And all other paths are
    blocked: the adjusted nodes d-separate cause and effect once the first edges of the directed paths are removed.

    Examples
    --------
    >>> structural_intervention_distance([[0, 0], [1, 0]], [[0, 1], [0, 0]])
    2
    >>> structural_intervention_distance([[0, 0], [0, 0]], [[0, 1], [0, 0]])
    1
    """
    import networkx as nx

    learned, true = _learned_and_true(graph, truth, acyclic=True)
    known = nx.from_numpy_array(true, create_using=nx.DiGraph)
    descendants = {node: nx.descendants(known, node) for node in known}
    parents = [set(np.flatnonzero(column).tolist()) for column in learned.T]
    return sum(
        effect in descendants[cause]
        if effect in parents[cause]
        else not _adjusting_is_valid(known, descendants, cause, effect, parents[cause])
        for cause, effect in permutations(known, 2)
    )


def graph_scores(
    graph: CausalGraph | InputGraph | pd.DataFrame, truth: pd.DataFrame, weights: pd.DataFrame | None = None
) -> pd.Series:
    """Compute all scores of a learned graph against a known one, with nodes matched by name.

    Every weight that is not zero counts as an edge. To score only strong edges, pass a DataFrame of them; see
    :func:`castlereg.acyclicity.cut.strong_edges`.

    Parameters
    ----------
    graph : CausalGraph, InputGraph or DataFrame
        The learned graph, without cycles. In a DataFrame ``graph.loc[cause, effect]`` is not zero for an edge.
    truth : DataFrame
        The known graph, without cycles, with the same names in any order.
    weights : DataFrame, optional
        Weights for :func:`ranking_scores`; by default those of a graph, or all ``learned_weights`` of an
        InputGraph. Without weights, as by default for a DataFrame, these scores are NaN.

    Returns
    -------
    Series of float
        The two distances, then the shares; those of :func:`skeleton_scores` begin with ``skeleton_``.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> names = ["age", "income", "rent"]
    >>> truth = pd.DataFrame([[0, 1, 0], [0, 0, 1], [0, 0, 0]], index=names, columns=names)
    >>> weights = np.array([[0.0, 0.3, 0.2], [0.4, 0.0, 0.9], [0.0, 0.1, 0.0]])
    >>> graph = InputGraph.from_networks(weights[None], names, "rent")
    >>> graph_scores(graph, truth)[["structural_hamming_distance", "f1", "skeleton_f1", "auroc"]].round(2)
    structural_hamming_distance    2.00
    f1                             0.40
    skeleton_f1                    0.80
    auroc                          0.88
    dtype: float64
    """
    if not isinstance(graph, pd.DataFrame):
        if weights is None:
            weights = graph.learned_weights if isinstance(graph, InputGraph) else graph.weights
        graph = graph.weights
    names = list(truth.columns)
    known, learned = _in_order("truth", truth, names), _in_order("graph", graph, names)
    scores: dict[str, float] = {
        "structural_hamming_distance": structural_hamming_distance(learned, known),
        "structural_intervention_distance": structural_intervention_distance(learned, known),
        **edge_scores(learned, known),
        **{f"skeleton_{name}": score for name, score in skeleton_scores(learned, known).items()},
        "direction_accuracy": direction_accuracy(learned, known),
    }
    nothing = {"auroc": np.nan, "average_precision": np.nan}
    scores |= nothing if weights is None else ranking_scores(_in_order("weights", weights, names), known)
    return pd.Series(scores, dtype=np.float64)


def _shares(learned: NDArray[np.bool_], true: NDArray[np.bool_]) -> dict[str, float]:
    n_right, n_learned, n_true = int((learned & true).sum()), int(learned.sum()), int(true.sum())
    return {
        "precision": n_right / max(n_learned, 1),
        "recall": n_right / max(n_true, 1),
        "f1": 2 * n_right / max(n_learned + n_true, 1),
        "false_discovery_rate": (n_learned - n_right) / max(n_learned, 1),
    }


def _adjusting_is_valid(
    truth: nx.DiGraph, descendants: dict[int, set[int]], cause: int, effect: int, adjusted: set[int]
) -> bool:
    import networkx as nx

    on_the_way = {node for node in descendants[cause] if node == effect or effect in descendants[node]}
    if adjusted & on_the_way.union(*(descendants[node] for node in on_the_way)):
        return False
    without_effect = truth.copy()
    without_effect.remove_edges_from([(cause, node) for node in on_the_way])
    return bool(nx.is_d_separator(without_effect, cause, effect, adjusted))


def _learned_and_true(
    graph: ArrayLike, truth: ArrayLike, *, acyclic: bool = False
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    learned, true = _edge_matrix("graph", graph, acyclic=acyclic), _edge_matrix("truth", truth)
    _check_same_shape("graph", learned, true)
    return learned, true


def _check_same_shape(name: str, values: NDArray[Any], truth: NDArray[np.bool_]) -> None:
    if values.shape != truth.shape:
        raise ValueError(f"{name} has shape {values.shape}, truth has shape {truth.shape}; the shapes must be the same")


def _in_order(frame_name: str, frame: pd.DataFrame, names: list[str]) -> NDArray[np.float64]:
    for axis, labels in (("rows", frame.index), ("columns", frame.columns)):
        problems = {
            "missing": [name for name in names if name not in labels],
            "unknown": [name for name in labels if name not in names],
            "duplicate": labels[labels.duplicated()].unique(),
        }
        for problem, affected in problems.items():
            if len(affected):
                listed = ", ".join(map(repr, affected))
                raise ValueError(f"{frame_name} has {problem} {axis}: {listed}; the nodes are {names}")
    return frame.loc[names, names].to_numpy(dtype=np.float64)


# --- sortability: ----------------------------------------------------------------------------------


def varsortability(values: ArrayLike, graph: ArrayLike) -> float:
    """Return the share of directed paths that lead to a column with more variance than the one where they start.

    This is the measure of Reisach, Seiler and Weichwald (2021). Noise adds up along the arrows of many simulated
    graphs, so the order of the variances reveals the arrows; the units of real columns are arbitrary.

    Parameters
    ----------
    values : array of shape (rows, nodes)
        The data. Missing values are NaN and are ignored.
    graph : array of shape (nodes, nodes)
        An acyclic graph: ``graph[j, k]`` is not zero for an edge j -> k.

    Returns
    -------
    float
        Near 1, sorting the columns by variance gives the order of the graph: a method that finds these arrows may have
        read them off the scale, and would lose them if the columns were scaled differently. Near 0 the same holds for
        the reverse order. Near 0.5 the variance carries no information about the arrows. NaN for a graph without
        edges.

    Notes
    -----
    For every length, each pair of nodes that a path of this length joins counts once; equal variances count half.
    Variances that differ by less than a billionth are equal: columns scaled to variance 1 differ by rounding errors.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 1.5]])
    >>> round(varsortability(values, [[0, 1, 0], [0, 0, 1], [0, 0, 0]]), 2)
    0.67
    """
    columns, edges = _columns_and_edges(values, graph)
    return _share_of_paths_upwards(_variance_and_explained(columns)[0], edges)


def r2_sortability(values: ArrayLike, graph: ArrayLike) -> float:
    """Return the share of directed paths whose end is better explained by all other columns than their start.

    This is the measure of Reisach, Tami, Seiler, Chambaz and Weichwald (2023). How well a column is explained is R²,
    the share of its variance that a linear regression on all other columns explains. Unlike the variance it does not
    depend on the scale, so standardizing the data does not hide the order.

    Parameters
    ----------
    values : array of shape (rows, nodes)
        As for :func:`varsortability`, but missing values are filled with the mean of their column. There should be many
        more rows than columns; with few rows, a regression explains almost any column.
    graph : array of shape (nodes, nodes)

    Returns
    -------
    float
        As for :func:`varsortability`, but for the order by R². R² of a constant column is 0.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> causes = rng.normal(size=(500, 2))
    >>> effect = causes.sum(axis=1) + rng.normal(size=500)
    >>> r2_sortability(np.column_stack([causes, effect]), [[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    1.0
    """
    columns, edges = _columns_and_edges(values, graph)
    return _share_of_paths_upwards(_variance_and_explained(columns)[1], edges)


def share_of_arrows_upwards(criterion: ArrayLike, graph: ArrayLike) -> float:
    """Return the share of edges whose effect has a larger value of some criterion than its cause.

    Parameters
    ----------
    criterion : array of shape (nodes,)
        A number for each node, such as the variance, the number of levels or the position in the table.
    graph : array of shape (nodes, nodes)
        As for :func:`varsortability`.

    Returns
    -------
    float
        Near 1 all arrows point to larger values, near 0 to smaller ones: the criterion could have determined them. Near
        0.5 they are unrelated to it. Equal values count half. NaN for a graph without edges.

    Examples
    --------
    >>> share_of_arrows_upwards([1.0, 2.0, 2.0], [[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    0.8333333333333334
    """
    edges = _edge_matrix("graph", graph)
    levels = np.asarray(criterion, dtype=np.float64)
    if levels.shape != edges.shape[:1]:
        raise ValueError(
            f"criterion has shape {levels.shape}, but graph has {len(edges)} nodes; pass one number per node"
        )
    if np.isnan(levels).any():
        raise ValueError(f"criterion is NaN for node {int(np.isnan(levels).argmax())}")
    return float(_upwards(levels)[edges].mean()) if edges.any() else np.nan


def _square_matrix(name: str, matrix: ArrayLike) -> NDArray[np.float64]:
    """Return a square matrix without NaN, which would otherwise count as an edge."""
    values = np.asarray(matrix, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {values.shape}")
    if np.isnan(values).any():
        raise ValueError(f"{name} contains NaN at {tuple(np.argwhere(np.isnan(values))[0].tolist())}")
    return values


def _edge_matrix(name: str, matrix: ArrayLike, *, acyclic: bool = True) -> NDArray[np.bool_]:
    """Return which entries are edges; raise for an edge from a node to itself and, by default, for any cycle."""
    present = _square_matrix(name, matrix) != 0
    if np.diag(present).any():
        raise ValueError(f"{name} has a cycle: an edge from node {int(np.diag(present).argmax())} to itself")
    cycle = find_cycle(present) if acyclic else None
    if cycle is not None:
        raise ValueError(f"{name} has a cycle: {' -> '.join(map(str, cycle))}")
    return present


def _share_of_paths_upwards(criterion: Array, edges: NDArray[np.bool_]) -> float:
    """Return the share of directed paths whose end has a larger value of some criterion; see :func:`varsortability`."""
    upwards = _upwards(criterion)
    n_upwards, n_pairs = 0.0, 0
    joined = edges
    for _ in range(len(edges) - 1):  # the longest path without cycles goes through all nodes
        n_upwards += float(upwards[joined].sum())
        n_pairs += int(joined.sum())
        joined = joined @ edges
    return n_upwards / n_pairs if n_pairs else np.nan


def _upwards(criterion: Array) -> Array:
    """Return 1 where the node of the column has the larger value, 0 where that of the row has, 0.5 where equal."""
    equal = np.isclose(criterion[:, None], criterion, rtol=1e-9, atol=0)
    return np.where(equal, 0.5, criterion[:, None] < criterion)


def _variance_and_explained(columns: Array) -> tuple[Array, Array]:
    """Return the variance of each column, and its R² given the others, with missing values replaced by the mean."""
    lowest, highest = np.nanmin(columns, axis=0), np.nanmax(columns, axis=0)
    varies = lowest < highest  # rounding errors around a constant such as 0.1 are not variance
    size = np.maximum(np.abs(lowest), np.abs(highest))
    size = np.where(size > 0, size, 1.0)  # squares of very large numbers would overflow
    centred = columns / size - np.nanmean(columns / size, axis=0)
    with np.errstate(over="ignore"):
        variance = np.where(varies, np.nanmean(centred**2, axis=0), 0.0) * size * size
    # Few rows, but columns of the same lengths and angles as the centred ones.
    factor = np.linalg.qr(np.nan_to_num(centred)).R
    explained = np.zeros(len(size))
    if varies.any():
        explained[varies] = _explained(factor[:, varies] / np.linalg.norm(factor[:, varies], axis=0))
    return variance, explained


def _explained(factor: Array) -> Array:
    """Return R² of each column, from columns of length 1 with the same angles."""
    _, sizes, directions = np.linalg.svd(factor, full_matrices=False)
    if len(sizes) == factor.shape[1] and sizes[-1] > 1e-5 * sizes[0]:
        explained = 1 - 1 / ((directions.T / sizes) ** 2).sum(axis=1)  # the diagonal of the inverse correlations
    else:  # some columns are sums of others: the correlations have no inverse, so use the slower least squares
        explained = np.zeros(factor.shape[1])
        for k in range(factor.shape[1]):
            others = np.delete(factor, k, axis=1)
            explained[k] = np.linalg.norm(others @ np.linalg.lstsq(others, factor[:, k])[0]) ** 2
    return np.where(explained < 1e-12, 0.0, explained)  # smaller values are rounding errors


def _columns_and_edges(values: ArrayLike, graph: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
    columns, edges = np.asarray(values, dtype=np.float64), _edge_matrix("graph", graph)
    if columns.ndim != 2 or columns.shape[1] != len(edges):
        raise ValueError(
            f"values has shape {columns.shape}, but graph has {len(edges)} nodes; pass one column per node"
        )
    if np.isinf(columns).any():
        raise ValueError(f"values contains infinity in column {int(np.isinf(columns).any(axis=0).argmax())}")
    unknown = np.isnan(columns).all(axis=0)
    if unknown.any():
        raise ValueError(f"values has only missing values in column {int(unknown.argmax())}")
    return columns, edges
