"""Scores of a learned graph against a known one.

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

from castlereg.causal.graph.causal_graph import CausalGraph
from castlereg.causal.graph.sortability import edge_matrix, square_matrix

if TYPE_CHECKING:
    import networkx as nx


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

    Returns
    -------
    dict of str to float
        ``precision`` is the share of the learned edges that are true, ``false_discovery_rate`` the share that are not,
        ``recall`` the share of the true edges that were learned, and ``f1`` the harmonic mean of precision and recall.
        A share of no edges is 0: a graph without edges has precision 0 and false discovery rate 0.

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
    values, true = square_matrix("weights", weights), edge_matrix("truth", truth)
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
    graph: CausalGraph | pd.DataFrame, truth: pd.DataFrame, weights: pd.DataFrame | None = None
) -> pd.Series:
    """Compute all scores of a learned graph against a known one, with nodes matched by name.

    Every weight that is not zero counts as an edge. To score only strong edges, pass a DataFrame of them; see
    :func:`castlereg.acyclicity.cut.strong_edges`.

    Parameters
    ----------
    graph : CausalGraph or DataFrame
        The learned graph, without cycles. In a DataFrame ``graph.loc[cause, effect]`` is not zero for an edge.
    truth : DataFrame
        The known graph, without cycles, with the same names in any order.
    weights : DataFrame, optional
        Weights for :func:`ranking_scores`; by default the ``learned_weights`` of a CausalGraph. Without weights, as by
        default for a DataFrame, these scores are NaN.

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
    >>> graph = CausalGraph.from_weights(weights, names, target="rent")
    >>> graph_scores(graph, truth).round(2)
    structural_hamming_distance         2.00
    structural_intervention_distance    3.00
    precision                           0.33
    recall                              0.50
    f1                                  0.40
    false_discovery_rate                0.67
    skeleton_precision                  0.67
    skeleton_recall                     1.00
    skeleton_f1                         0.80
    skeleton_false_discovery_rate       0.33
    direction_accuracy                  0.50
    auroc                               0.88
    average_precision                   0.83
    dtype: float64
    """
    if isinstance(graph, CausalGraph):
        weights = graph.learned_weights if weights is None else weights
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
    if weights is None:
        scores |= {"auroc": np.nan, "average_precision": np.nan}
    else:
        scores |= ranking_scores(_in_order("weights", weights, names), known)
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
    learned, true = edge_matrix("graph", graph, acyclic=acyclic), edge_matrix("truth", truth)
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
