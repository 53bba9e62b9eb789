"""What independences say: the best graphs of bootstrap samples under a score that cannot see shapes.

The score (BIC of linear equations, with a block of channels for each column) is the same for all graphs of a class, so
only independences decide. Each bootstrap sample is one member of an array program: tables of local scores for all sets
of candidate causes, then a search over orders (BOSS, Andrews et al. 2023). An edge is compelled if it has the same
direction in every graph of its class (Meek 1995).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from castlereg.causal.judge import Column

Array = NDArray[np.float64]
Edges = NDArray[np.bool_]

N_SAMPLES = 20
_MOST_CANDIDATES = 10  # of each column; the tables have two to the power of this many sets
_MOST_CHANNELS = 4  # of a column of levels
_PENALTY = 1.0  # times BIC's
_NEVER = -1e12  # score of a set without a required cause
_ROUNDS = 3  # of choosing candidates
_STARTS, _IDLE_SWEEPS = 2, 3  # random orders for each sample; sweeps without a gain that end a climb


class Independences(NamedTuple):
    """Shares of the bootstrap samples, arrays of shape (columns, columns) with causes in rows."""

    compelled: Array  # in which independences compel the edge
    either: Array  # in which the two are joined, and independences allow both directions; symmetric
    order: list[int]  # of the columns in all rows, causes first


def independences(
    columns: Sequence[Column],
    allowed: Edges,
    required: Edges,
    *,
    n_samples: int = N_SAMPLES,
    seed: int = 0,
) -> Independences:
    """Return in how many bootstrap samples independences compel each edge, or allow both directions.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 500))
    >>> columns = [Column(a), Column(b), Column((a + b + rng.normal(size=500)) / 3)]
    >>> allowed = ~np.eye(3, dtype=bool)
    >>> independences(columns, allowed, ~allowed & False).compelled.round(1).tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    channels, present, owner = _channels(columns)
    n, p = len(channels), len(columns)
    rng = np.random.default_rng(seed)
    weights = np.concatenate([np.ones((1, n)), rng.multinomial(n, np.full(n, 1 / n), n_samples)])
    covariances, n_rows = _correlations(channels, present, weights)
    candidates = _candidates(covariances[0], owner, allowed, required)
    for _ in range(_ROUNDS if p > _MOST_CANDIDATES + 1 else 0):  # the graph of all rows shows better candidates
        tables = [_scores(covariances[:1], owner, k, candidates[k], required[:, k], n_rows) for k in range(p)]
        graph = _best_graphs(tables, candidates, rng)[0][0]
        candidates = _candidates(covariances[0], owner, allowed, required, graph)
    tables = [_scores(covariances, owner, k, candidates[k], required[:, k], n_rows) for k in range(p)]
    graphs, orders = _best_graphs(tables, candidates, rng)
    compelled = compelled_edges(graphs, required | ~allowed.T)
    either = graphs & ~compelled
    either |= either.transpose(0, 2, 1)
    return Independences(compelled[1:].mean(axis=0), either[1:].mean(axis=0), orders[0].tolist())


# --- correlations of channels -------------------------------------------------------------------------


def _channels(columns: Sequence[Column]) -> tuple[Array, NDArray[np.bool_], NDArray[np.int64]]:
    """Return standardized numbers that represent the columns, whether they are present, and whose they are."""
    blocks, present, owner = [], [], []
    for k, column in enumerate(columns):
        mask = column.mask
        block = column.values[:, None]
        if column.levels:
            codes = column.values.astype(np.int64)
            shares = np.bincount(codes[mask], minlength=column.levels)
            common = np.argsort(-shares, kind="stable")[: _MOST_CHANNELS + 1]
            common = common[1 : max(2, int((shares > 0).sum()))] if len(common) > 1 else common  # all but the first
            block = (codes[:, None] == common).astype(np.float64)
        elif len(np.unique(column.values[mask])) > 2:  # relations that rise and fall
            block = np.stack([column.values, np.square(column.normal)], axis=1)
        center, spread = block[mask].mean(axis=0), block[mask].std(axis=0)
        block = np.where(mask[:, None], (block - center) / np.maximum(spread, 1e-9), 0.0)
        blocks.append(block)
        present.append(np.repeat(mask[:, None], block.shape[1], axis=1))
        owner += [k] * block.shape[1]
    return np.concatenate(blocks, axis=1), np.concatenate(present, axis=1), np.array(owner)


def _correlations(channels: Array, present: NDArray[np.bool_], weights: Array) -> tuple[Array, float]:
    """Return weighted correlations of the pairs of channels that are present, and the number of rows behind them."""
    found, shares = [], 1.0
    mask = None if present.all() else present.astype(np.float64)
    if mask is not None:
        shares = float((mask.T @ mask).mean() / len(mask))
    for weight in weights:
        total = weight[:, None] * channels
        products = channels.T @ total
        if mask is None:
            products /= weight.sum()
            center = total.sum(axis=0) / weight.sum()
            products -= np.outer(center, center)
        else:
            products /= np.maximum(mask.T @ (weight[:, None] * mask), 1.0)
        scale = np.sqrt(np.maximum(np.diag(products), 1e-9))
        correlation = products / np.outer(scale, scale)
        if mask is not None:  # correlations of different rows need not fit together
            sizes, directions = np.linalg.eigh(correlation)
            correlation = (directions * np.maximum(sizes, 1e-3)) @ directions.T
            scale = np.sqrt(np.diag(correlation))
            correlation = correlation / np.outer(scale, scale)
        found.append(correlation + 1e-6 * np.eye(len(correlation)))
    return np.stack(found), len(channels) * shares


def _candidates(
    correlation: Array, owner: NDArray[np.int64], allowed: Edges, required: Edges, graph: Edges | None = None
) -> list[NDArray[np.int64]]:
    """Return the columns that may cause each one: the most strongly related, without and given all others.

    With a graph, these are its neighbours, and the most strongly related given its causes in the graph.
    """
    p = owner.max() + 1
    if graph is None:
        precision = np.linalg.inv(correlation + 1e-4 * np.eye(len(correlation)))
        related = [_strength(np.square(matrix), owner) for matrix in (precision, correlation)]
    candidates = []
    for k in range(p):
        ranks = []
        if graph is not None:
            residual = _given(correlation, np.flatnonzero(np.isin(owner, np.flatnonzero(graph[:, k]))))
            near = graph[:, k] | graph[k]
            ranks = [np.where(near, np.inf, _strength(np.square(residual), owner)[:, k])]
        else:
            ranks = [matrix[:, k] for matrix in related]
        may, chosen = allowed[:, k] & ~required[:, k], np.flatnonzero(required[:, k]).tolist()[:_MOST_CANDIDATES]
        ordered = [np.argsort(-np.where(may, rank, -1.0), kind="stable").tolist() for rank in ranks]
        for j in itertools.chain(*zip(*ordered, strict=True)):
            if may[j] and j not in chosen and len(chosen) < _MOST_CANDIDATES:
                chosen.append(j)
        candidates.append(np.array(sorted(chosen), np.int64))
    return candidates


def _strength(squares: Array, owner: NDArray[np.int64]) -> Array:
    """Return the strongest relation of the channels of two columns, from squares of a matrix over channels."""
    scale = np.sqrt(np.maximum(np.diag(squares), 1e-9))
    strength = np.zeros((owner.max() + 1,) * 2)
    np.maximum.at(strength, (owner[:, None], owner), squares / np.outer(scale, scale))
    return strength


def _given(covariance: Array, channels: NDArray[np.int64]) -> Array:
    """Return the covariance of all channels given some."""
    for channel in channels:
        column = covariance[:, channel]
        covariance = covariance - np.outer(column, column) / max(covariance[channel, channel], 1e-3)
    return covariance


# --- scores of sets of causes -------------------------------------------------------------------------


def _scores(
    covariances: Array, owner: NDArray[np.int64], effect: int, causes: NDArray[np.int64], required: Edges, n: float
) -> Array:
    """Return the score of a column given each set of causes, shape (members, sets); bit j is for cause j.

    The residual covariance of all sets grows by doubling: without the next cause, and given it.
    """
    blocks = [np.flatnonzero(owner == k) for k in (*causes.tolist(), effect)]
    at = np.concatenate(blocks)
    residual = covariances[:, None, at[:, None], at]  # (members, sets, channels, channels)
    sizes = np.zeros(1)
    for block, cause in zip(blocks[:-1], causes.tolist(), strict=True):
        given = residual
        for _ in range(len(block)):
            pivot = given[..., :1, 1:]
            given = given[..., 1:, 1:] - pivot.swapaxes(-1, -2) * (pivot / np.maximum(given[..., :1, :1], 1e-9))
        residual = np.concatenate([residual[..., len(block) :, len(block) :], given], axis=1)
        sizes = np.concatenate([sizes + (_NEVER if required[cause] else 0.0), sizes + len(block)])
    determinant = np.linalg.det(residual) if len(blocks[-1]) > 1 else residual[..., 0, 0]
    penalty = np.where(sizes < 0, -_NEVER, 0.5 * _PENALTY * np.log(n) * len(blocks[-1]) * sizes)
    return np.asarray(-0.5 * n * np.log(np.maximum(determinant, 1e-12)) - penalty)


def _best_within(scores: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return the best score of a subset of each set, and the subset."""
    best = scores.copy()
    chosen = np.broadcast_to(np.arange(scores.shape[1]), scores.shape).copy()
    bit = 1
    while bit < scores.shape[1]:
        pairs = best.reshape(len(best), -1, 2, bit)  # without and with the bit
        sets = chosen.reshape(len(best), -1, 2, bit)
        better = pairs[:, :, 0] > pairs[:, :, 1]
        pairs[:, :, 1] = np.where(better, pairs[:, :, 0], pairs[:, :, 1])
        sets[:, :, 1] = np.where(better, sets[:, :, 0], sets[:, :, 1])
        bit *= 2
    return best, chosen


# --- orders -------------------------------------------------------------------------------------------


def _best_graphs(
    scores: Sequence[Array], candidates: Sequence[NDArray[np.int64]], rng: np.random.Generator
) -> tuple[Edges, NDArray[np.int64]]:
    """Return the best graph of every member, shape (members, columns, columns), and its order (members, columns)."""
    tables = [_best_within(table) for table in scores]
    n_members, p = len(scores[0]), len(scores)
    found: tuple[Array, NDArray[np.int64]] | None = None
    for _ in range(_STARTS):
        rank = np.stack([rng.permutation(p) for _ in range(n_members)])
        rank, total = _climbed(rank, [best for best, _ in tables], candidates, rng)
        if found is None:
            found = total, rank
        else:
            better = total > found[0] + 1e-9
            found = np.where(better, total, found[0]), np.where(better[:, None], rank, found[1])
    assert found is not None
    rank = found[1]
    graphs = np.zeros((n_members, p, p), bool)
    members = np.arange(n_members)
    for k, (_, chosen) in enumerate(tables):
        sets = chosen[members, _sets(rank, k, candidates[k])]
        for bit, cause in enumerate(candidates[k].tolist()):
            graphs[:, cause, k] = (sets >> bit) & 1
    return graphs, np.argsort(rank, axis=1)


def _sets(rank: NDArray[np.int64], k: int, candidates: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the set of candidates that come before a column, for every member."""
    before = rank[:, candidates] < rank[:, [k]]
    return np.asarray(before @ (1 << np.arange(len(candidates))), np.int64)


def _climbed(
    rank: NDArray[np.int64],
    tables: Sequence[Array],
    candidates: Sequence[NDArray[np.int64]],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], Array]:
    """Move one column at a time to its best place in the order, until nothing improves; return the total scores.

    Of equally good places, one is drawn: orders of one class have the same score, and only some lead further up.
    """
    n_members, p = rank.shape
    members, places = np.arange(n_members), np.arange(p)
    bits = [{int(cause): bit for bit, cause in enumerate(causes)} for causes in candidates]
    effects = [[k for k in range(p) if v in bits[k]] for v in range(p)]
    sets = np.stack([_sets(rank, k, candidates[k]) for k in range(p)], axis=1)
    best, idle_sweeps = np.full(n_members, -np.inf), 0
    while idle_sweeps < _IDLE_SWEEPS:
        for v in range(p):
            others = rank - (rank > rank[:, [v]])  # ranks of the others without v
            before = others[:, candidates[v], None] < places  # (members, candidates, places)
            at_place = np.einsum("mcp,c->mp", before, 1 << np.arange(len(candidates[v])))
            gain = tables[v][members[:, None], at_place]
            if effects[v]:
                flags = 1 << np.array([bits[k][v] for k in effects[v]])
                without = sets[:, effects[v]] & ~flags
                more = np.stack(
                    [tables[k][members, s | f] - tables[k][members, s]
                     for k, s, f in zip(effects[v], without.T, flags, strict=True)], axis=1
                )  # fmt: skip
                later = np.zeros((n_members, p))
                np.add.at(later, (members[:, None], others[:, effects[v]]), more)
                gain = gain + later[:, ::-1].cumsum(axis=1)[:, ::-1]  # v precedes the columns at its place and after
            place = (gain + 1e-6 * rng.random(gain.shape)).argmax(axis=1)
            rank = others + (others >= place[:, None])
            rank[:, v] = place
            sets[:, v] = at_place[members, place]
            for position, k in enumerate(effects[v]):
                flag = flags[position]
                sets[:, k] = np.where(rank[:, v] < rank[:, k], without[:, position] | flag, without[:, position])
        total = np.sum([table[members, sets[:, k]] for k, table in enumerate(tables)], axis=0)
        idle_sweeps = 0 if (total > best + 1e-3).any() else idle_sweeps + 1
        best = np.maximum(best, total)
    return rank, best


# --- equivalence classes ------------------------------------------------------------------------------


def compelled_edges(graphs: Edges, known: Edges | None = None) -> Edges:
    """Return the edges that have the same direction in every graph of the class, for graphs (members, nodes, nodes).

    ``known`` edges, shape (nodes, nodes), are compelled by what the user knows; they compel others.

    Examples
    --------
    >>> chain, collider = np.zeros((2, 3, 3), bool)
    >>> chain[0, 1] = chain[1, 2] = collider[0, 1] = collider[2, 1] = True
    >>> compelled_edges(np.stack([chain, collider])).sum(axis=(1, 2)).tolist()
    [0, 2]
    """
    joined = graphs | graphs.transpose(0, 2, 1)
    apart = (~joined & ~np.eye(graphs.shape[1], dtype=bool)).astype(np.float32)
    directed = graphs.astype(np.float32)
    compelled = graphs & (apart @ directed > 0)  # another cause of the effect is not joined with this cause
    if known is not None:
        compelled |= graphs & known
    while True:
        arrows = compelled.astype(np.float32)
        more = (arrows.transpose(0, 2, 1) @ apart > 0) | (arrows @ arrows > 0)
        free = (joined & ~compelled & ~compelled.transpose(0, 2, 1)).astype(np.float32)
        for j in np.flatnonzero((graphs & ~compelled & ~more).any(axis=(0, 2))):
            both = free[:, j, :, None] * arrows  # (members, middle, end)
            more[:, j] |= (both * (apart @ both)).sum(axis=1) > 0
        further = compelled | (graphs & more)
        if np.array_equal(further, compelled):
            return compelled
        compelled = further
