"""Model files that were damaged, or edited and given a valid digest, through ``castlereg.load``.

A case is a chain: a file that reaches lines of the reader which none of the chain has reached is edited further.
"""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import castlereg
from castlereg import (
    CastleClassifier,
    CastleMultiOutput,
    CastleRegressor,
    CastleRegressorCV,
    EdgeConstraints,
    NetworkClassifier,
    Recipe,
)
from castlereg.persistence import ModelFileError
from castlereg.regularizers import L2
from fuzz.byte_mutations import mutated
from fuzz.coverage import Lines, lines_of
from fuzz.verdict import Counts, Finding, check_clear, expect, strict_warnings

FILES_OF_CASE = 10
_DIGEST = slice(35, 99)  # of the file's bytes: the hexadecimal SHA-256 of the others
_READER = ("castlereg/persistence", "castlereg/table/preprocessing", "castlereg/layout")

_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 10**20, 2**63, 0.5, -0.0, 1e308, 1e-320, "", "text", "../../x", "\x00", "\ud800"),
    *(
        "CastleRegressor",
        "__class__",
        "numbers",
        "categorical",
        "n" * 5000,
        [],
        {},
        [[1]],
        [0, 0],
        [None],
        {"kind": "tuple"},
    ),
    *(
        {"kind": "array", "value": "networks/0"},
        {"kind": "object", "value": ["os", "system"]},
        {"kind": "dict", "value": []},
    ),
)


class Original(NamedTuple):
    """A saved model, rows and their predictions."""

    content: bytes
    X: Any
    predicted: Any


def _table(rng: np.random.Generator, rows: int = 24) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "area": rng.normal(80, 20, rows),
            "zone": rng.choice([10, 20, 35], rows),
            "city": rng.choice(["Oslo", "Rome", "Lima, É"], rows),
            "let": rng.random(rows) < 0.5,
            "since": pd.date_range("2020-01-01", periods=rows),
        }
    )
    frame.loc[::7, "area"] = np.nan
    frame.loc[1::5, "city"] = None
    return frame


@cache
def originals(folder: Path) -> tuple[Original, ...]:
    """Save small models of several classes, once per process."""
    rng = np.random.default_rng(0)
    X = _table(rng)
    y = rng.normal(size=len(X))
    quick: dict[str, Any] = {"max_epochs": 1, "random_state": 0, "hidden_layer_sizes": (3,)}
    rules = EdgeConstraints(required=[("area", "y")], forbidden=[("zone", "city")])
    fits: list[tuple[Any, Any]] = [
        (CastleRegressor(0.01, constraints=rules, n_members=2, **quick), y),
        (
            CastleClassifier(recipe=Recipe(scaling="robust"), class_weight="balanced", **quick),
            np.where(y > 0, "b", "a"),
        ),
        (CastleMultiOutput(**quick), pd.DataFrame({"r": y, "s": np.digitize(y, [-0.5, 0.5])})),
        (CastleRegressorCV((0.01,), cv=2, **quick), y),
        (NetworkClassifier([L2(0.1)], **quick), y > 0),
    ]
    saved = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model, target in fits:
            model.fit(X, target)
            castlereg.save(model, folder / "original")
            saved.append(Original((folder / "original").read_bytes(), X, model.predict(X)))
    return tuple(saved)


def check(seed: int, folder: Path) -> Counts:
    """Load a chain of files that differ from a saved one."""
    rng = np.random.default_rng([4, seed])
    known = originals(folder.parent)
    original = known[int(rng.integers(len(known)))]
    counts = {"files": 0, "rejected": 0, "accepted": 0}
    current, reached = original.content, Lines()
    for _ in range(FILES_OF_CASE):
        content, has_digest = _edited(current, original.content, rng)
        if content == original.content:
            continue
        answers: list[bool] = []
        path = folder / "model.castle"
        path.write_bytes(content)
        lines = lines_of(lambda: answers.append(_accepted(path, original, has_digest)), _READER)  # noqa: B023
        expect(list(folder.iterdir()) == [path], "loading a file wrote another")
        counts["files"] += 1
        counts["accepted" if answers[0] else "rejected"] += 1
        if has_digest and not lines <= reached:
            reached |= lines
            current = content
    return counts


def _accepted(path: Path, original: Original, has_digest: bool) -> bool:
    """Load a file; return whether it was accepted, and check what it predicts."""
    with strict_warnings():
        try:
            model = castlereg.load(path)
        except ModelFileError as error:
            message = str(error)
            if "\n" in message or len(message) > 1000 or not message.startswith(f"cannot load {path}: "):
                raise Finding(f"not a message of one line: {message!r}") from error
            return False
        expect(has_digest, "a damaged file was accepted")
        warnings.simplefilter("ignore", RuntimeWarning)  # of numbers that nobody has learned
        try:
            predicted = model.predict(original.X)
            repr(model)
            if hasattr(model, "graph_"):
                expect(model.graph_.is_dag, "the graph has a cycle")
                model.graph_.to_svg()
            _ = model.schema_, model.history_
        except Exception as error:
            check_clear(error)
            return True
        expect(len(predicted) == len(original.X), "another number of predictions")
    return True


# --- edits -----------------------------------------------------------------------------------------


def _edited(content: bytes, original: bytes, rng: np.random.Generator) -> tuple[bytes, bool]:
    """Change a file; return also whether its digest is valid."""
    draw = rng.random()
    if draw < 0.35:
        return mutated(original, rng), False
    if draw < 0.45:
        return with_digest(mutated(content, rng)), True
    try:
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length])
        model = json.loads(header["__metadata__"]["model"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return with_digest(mutated(content, rng)), True
    data = content[8 + length :]
    if draw < 0.75:
        _edit(model, rng)
        header["__metadata__"]["model"] = _text(json.dumps(model), rng)
    elif draw < 0.9:
        _edit(header, rng)
    else:
        data = mutated(data, rng)
    written = json.dumps(header, separators=(",", ":")).encode("ascii")
    return with_digest(len(written).to_bytes(8, "little") + written + data), True


def with_digest(content: bytes) -> bytes:
    """Write a valid digest into a file, if it is long enough."""
    if len(content) < _DIGEST.stop:
        return content
    blank = content[: _DIGEST.start] + b"0" * 64 + content[_DIGEST.stop :]
    return content[: _DIGEST.start] + hashlib.sha256(blank).hexdigest().encode() + content[_DIGEST.stop :]


def _text(text: str, rng: np.random.Generator) -> str:
    """Return the JSON unchanged or, rarely, deeply nested, with a duplicated field, or with words for NaN."""
    draw = rng.integers(40)
    if draw == 0:
        return '{"a":' * 3000 + "1" + "}" * 3000
    if draw == 1:
        return text[:-1] + ',"estimator":"CastleRegressor"}'
    if draw == 2:
        return text.replace("0.", "NaN", 1)
    if draw == 3:
        return "[" * 100_000
    return text


def _edit(content: Any, rng: np.random.Generator) -> None:
    """Change, remove, add, copy or swap fields at a few random places of JSON."""
    for _ in range(int(rng.integers(1, 4)) if isinstance(content, dict | list) else 0):
        inside, keys = content, []
        for _depth in range(int(rng.integers(1, 9))):
            keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
            deeper = [key for key in keys if isinstance(inside[key], dict | list) and inside[key]]
            if not deeper:
                break
            inside = inside[deeper[int(rng.integers(len(deeper)))]]
            keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        if not keys:
            continue
        key, other = (keys[int(i)] for i in rng.integers(len(keys), size=2))
        draw = rng.integers(7)
        if draw < 3:
            inside[key] = copy.deepcopy(_VALUES[int(rng.integers(len(_VALUES)))])
        elif draw == 3:
            del inside[key]
        elif draw == 4:
            inside[key], inside[other] = inside[other], inside[key]
        elif draw == 5 and isinstance(inside, dict):
            inside[["more", "../../x", "__class__", "", "\ud800"][int(rng.integers(5))]] = copy.deepcopy(inside[key])
        elif isinstance(inside[key], int | float) and not isinstance(inside[key], bool):
            inside[key] = inside[key] * int(rng.choice([-1, 2, 1000])) + int(rng.choice([0, 1]))
