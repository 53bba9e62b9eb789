"""The loop of the example is short; its figures and those of the estimator are compared correctly."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
from benchmarks.torch_loop import page

ROOT = Path(__file__).parents[2]


def test_the_loops_of_the_guide_and_of_the_example_are_short() -> None:
    """The guide's code is run with all pages; it shows the error of the example under another name."""
    example = (ROOT / "examples" / "torch_loop.py").read_text(encoding="utf-8")
    guide = (ROOT / "docs" / "torch.md").read_text(encoding="utf-8")
    (first, *_) = re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL)
    for source in (example, first):
        (train,) = (f for f in ast.parse(source).body if isinstance(f, ast.FunctionDef) and f.name == "train")
        assert train.end_lineno is not None
        assert train.end_lineno - train.lineno < 30
    (error,) = (f for f in ast.parse(example).body if isinstance(f, ast.FunctionDef) and f.name == "squared_error")
    assert "".join(ast.unparse(error.body[-1]).split()) in "".join(ast.unparse(ast.parse(first)).split())
    assert "examples/torch_loop.py" in guide


def test_edges_are_written_and_read() -> None:
    edges = np.random.default_rng(0).random((page.NODES, page.NODES)) < 0.3
    np.testing.assert_array_equal(page.as_edges(page.as_text(edges)), edges)


def test_graphs_of_two_methods_that_always_differ_are_found_to_differ() -> None:
    """Two graphs, one of each method in every seed: labels at random hardly ever separate them as well."""
    one, two = np.zeros((3, 3), bool), np.triu(np.ones((3, 3), bool), 1)
    graphs = {
        (method, seed, b): graph
        for method, graph in (("loop", one), ("estimator", two))
        for seed in range(5)
        for b in range(3)
    }
    assert page.excess(graphs, repeats=200) == (3.0, 0.0)
    same = {key: one for key in graphs}
    assert page.excess(same, repeats=10) == (0.0, 1.0)
