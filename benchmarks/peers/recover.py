"""Run a peer on exported recovery problems; needs a separate environment with the peer installed.

``python benchmarks/peers/recover.py dagma|dagma_short|notears|lingam|ges|ges_levels|boss|fci|score FOLDER NAME ...``,
after ``export FOLDER`` of ``benchmarks.graph_recovery``, ``benchmarks.real_columns`` or ``benchmarks.reality``. Weights
and processor seconds are written next to the problems; existing results are kept. ``dagma_short`` has a tenth of
DAGMA's iterations.

NOTEARS (gCastle) and DAGMA need PyTorch; their layers are computed by ``quick_equations.py``, the same to rounding:
seconds here are the peers' at their best. DirectLiNGAM (lingam), GES (causal-learn, for numbers and for levels), BOSS
and FCI (causal-learn, on codes of levels) need their packages only. SCORE is written here after its paper, as
dodiscover could not be installed.
"""

from __future__ import annotations

import os
import random
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a core each, counted in processor seconds

import numpy as np


def dagma(values: Any, **iterations: int) -> Any:
    """Run DAGMA with an MLP as in its documentation."""
    import torch
    from dagma.nonlinear import DagmaMLP, DagmaNonlinear
    from quick_equations import equations, keep_freed_memory, replace_forward

    torch.set_num_threads(1)
    keep_freed_memory()
    if not isinstance(torch.optim.Adam, partial):
        torch.optim.Adam = partial(torch.optim.Adam, fused=True)  # one call instead of a dozen

    def quick(model: Any, inputs: Any) -> Any:
        return equations(inputs, model.fc1.weight, model.fc1.bias, model.fc2[0])

    sizes = [values.shape[1], 10, 1]
    example = DagmaMLP(dims=sizes, bias=True)
    torch.nn.init.normal_(example.fc1.weight)
    replace_forward(DagmaMLP, quick, example, torch.from_numpy(values))
    torch.manual_seed(0)
    model = DagmaNonlinear(DagmaMLP(dims=sizes, bias=True))
    return model.fit(values, lambda1=0.02, lambda2=0.005, w_threshold=0.0, **iterations)


def dagma_short(values: Any) -> Any:
    """Run DAGMA with a tenth of its iterations."""
    return dagma(values, warm_iter=5000, max_iter=8000)


def notears(values: Any) -> Any:
    """Run NOTEARS with an MLP with gCastle's defaults, but without its threshold."""
    import torch
    from castle.algorithms import NotearsNonlinear
    from quick_equations import equations, keep_freed_memory, replace_forward

    torch.set_num_threads(1)
    keep_freed_memory()
    from castle.algorithms.gradient.notears.torch.models import MLPModel

    def quick(model: Any, inputs: Any) -> Any:
        first, start = (getattr(model.fc1_pos, of) - getattr(model.fc1_neg, of) for of in ("weight", "bias"))
        return equations(inputs, first, start, model.fc2[0])

    replace_forward(MLPModel, quick, MLPModel([values.shape[1], 10, 1]), torch.from_numpy(values))
    torch.manual_seed(0)
    model = NotearsNonlinear(model_type="mlp", w_threshold=0.0)
    model.learn(values)
    return model.weight_causal_matrix


def lingam(values: Any) -> Any:
    """Run DirectLiNGAM with its defaults."""
    from lingam import DirectLiNGAM

    return DirectLiNGAM().fit(values).adjacency_matrix_.T


def ges(values: Any, score: str = "local_score_BIC") -> Any:
    """Run GES; an undirected edge counts one half in each direction."""
    from causallearn.search.ScoreBased.GES import ges as run

    return _arrows_and_halves(run(values, score)["G"].graph)


def _arrows_and_halves(marks: Any) -> Any:
    """Read marks of causal-learn: marks[i, j] = -1 and marks[j, i] = 1 for i -> j, both -1 for i - j."""
    arrows = (marks == -1) & (marks.T == 1)
    return arrows + 0.5 * ((marks == -1) & (marks.T == -1))


def ges_levels(values: Any) -> Any:
    """Run GES on numbers of levels, with the BDeu score."""
    return ges(values, "local_score_BDeu")


def boss(values: Any) -> Any:
    """Run BOSS with its linear BIC; an undirected edge counts one half in each direction."""
    from causallearn.search.PermutationBased.BOSS import boss as run

    random.seed(0)
    np.random.seed(0)
    return _arrows_and_halves(run(values, verbose=False).graph)


def fci(values: Any) -> tuple[Any, Any]:
    """Run FCI with Fisher's z; also return the pairs that it joins by an unobserved cause.

    An edge with a circle and an arrowhead counts as an arrow, one with two circles half in each direction.
    """
    from causallearn.search.ConstraintBased.FCI import fci as run

    marks = run(values, show_progress=False)[0].graph
    arrows = np.isin(marks, (-1, 2)) & (marks.T == 1)
    undirected = np.isin(marks, (-1, 2)) & np.isin(marks.T, (-1, 2))
    return arrows + 0.5 * undirected, (marks == 1) & (marks.T == 1)


def score(values: Any, most_rows: int = 1000, ridge: float = 1e-3, level: float = 1e-3) -> Any:
    """Order columns by the Jacobian of the score (Rolland et al. 2022), then keep causes by tests of splines."""
    from scipy.stats import f as f_distribution
    from sklearn.preprocessing import SplineTransformer

    values = (values - values.mean(axis=0)) / values.std(axis=0)
    left, order = list(range(values.shape[1])), []
    rows = values[:most_rows]
    while len(left) > 1:
        part = rows[:, left]
        apart = part[:, None] - part[None]
        squares = (apart**2).sum(axis=-1)
        width = np.median(np.sqrt(squares[np.triu_indices(len(part), 1)]))
        kernel = np.exp(-squares / (2 * width**2)) / width
        inverse = np.linalg.inv(kernel + ridge * np.eye(len(part)))
        first = inverse @ -np.einsum("ikj,ik->kj", apart, kernel) / width**2
        second = inverse @ np.einsum("ikj,ik->kj", -1 / width**2 + apart**2 / width**4, kernel)
        order.insert(0, left.pop(int(np.argmin((second - first**2).var(axis=0)))))
    order = left + order
    splines = [SplineTransformer(6, degree=3, include_bias=False).fit_transform(column[:, None]) for column in values.T]
    edges = np.zeros((values.shape[1],) * 2)

    def squared_error(causes: list[int], effect: int) -> tuple[float, int]:
        columns = np.concatenate([np.ones((len(values), 1)), *(splines[j] for j in causes)], axis=1)
        weights = np.linalg.lstsq(columns, values[:, effect], rcond=None)[0]
        return float(np.square(values[:, effect] - columns @ weights).sum()), columns.shape[1]

    for position, effect in enumerate(order):
        before = order[:position]
        whole, n_columns = squared_error(before, effect)
        for cause in before:
            without, fewer = squared_error([j for j in before if j != cause], effect)
            freedom = len(values) - n_columns
            ratio = (without - whole) / (n_columns - fewer) / (whole / freedom)
            edges[cause, effect] = f_distribution.sf(ratio, n_columns - fewer, freedom) < level
    return edges


PEERS = {
    "dagma": dagma,
    "dagma_short": dagma_short,
    "notears": notears,
    "lingam": lingam,
    "ges": ges,
    "ges_levels": ges_levels,
    "boss": boss,
    "fci": fci,
    "score": score,
}


def main(peer: str, folder: Path, names: list[str]) -> None:
    """Run one peer on the named problems."""
    for name in names:
        written = folder / f"{peer}-{name}.npz"
        if written.exists():
            continue
        values = np.load(folder / f"{name}.npz")["values"]
        start = time.process_time()
        try:
            result = PEERS[peer](values)
        except (ValueError, np.linalg.LinAlgError) as error:  # such as a singular matrix of near-deterministic columns
            print(peer, name, error, flush=True)
            continue
        weights, *hidden = result if isinstance(result, tuple) else (result,)
        arrays = {"weights": np.abs(np.asarray(weights, dtype=np.float64)), "seconds": time.process_time() - start}
        np.savez(written, **arrays, **dict(zip(("hidden",), hidden, strict=False)))
        seconds = arrays["seconds"]
        print(peer, name, f"{seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
