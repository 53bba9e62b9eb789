"""Damaged model files are rejected; forged ones are rejected or predict without an unhandled exception."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import castlereg
from castlereg.persistence import ModelFileError
from tests.fitted_models import fitted
from tests.properties import cases, check_clear, mutated

VALUES = st.sampled_from(
    [
        *(None, True, 0, -1, 2, 10**20, 0.5, -0.0, 1e308, 1e-320, "", "text", "../../x", "\x00", "\ud800", "n" * 5000),
        *("CastleRegressor", "__class__", "numbers", "categorical", [], {}, [[1]], [0, 0], [None], {"kind": "tuple"}),
        *({"kind": "array", "value": "networks/0"}, {"kind": "object", "value": ["os", "system"]}),
    ]
)
MODELS = st.sampled_from(["CastleRegressor", "CastleClassifier", "NetworkClassifier"])
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("model files")]


class AnyDigest:
    """A hash function that accepts every content: what somebody can do who forges a file with its digest."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.update = lambda _: None
        self.digest, self.hexdigest = (lambda: bytes(32)), (lambda: "0" * 64)


@cache
def saved(folder: Path, name: str) -> bytes:
    castlereg.save(fitted(name).model, folder / "model")
    return (folder / "model").read_bytes()


def loaded(path: Path, content: bytes) -> Any:
    """Load a file; return None if it is rejected in one line."""
    path.write_bytes(content)
    try:
        return castlereg.load(path)
    except ModelFileError as error:
        message = str(error)
        assert message.startswith(f"cannot load {path}: ") and "\n" not in message and len(message) < 1000
        return None
    finally:
        assert list(path.parent.iterdir()) == [path]  # loading writes nothing


@given(st.data())
@cases(150)
def test_damaged_files_are_rejected(tmp_path: Path, data: Any) -> None:
    name = data.draw(MODELS)
    content = saved(tmp_path, name)
    damaged = data.draw(mutated(content))
    model = loaded(tmp_path / "model", damaged)
    if model is not None and damaged != content:  # a change that does not matter, such as a space
        np.testing.assert_array_equal(model.predict(fitted(name).X), fitted(name).model.predict(fitted(name).X))


@st.composite
def edited(draw: Any, value: Any) -> Any:
    """JSON with a value changed, removed, copied or multiplied at a random depth; JSON inside of text too."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        text = json.dumps(draw(edited(json.loads(value))))
        return draw(st.sampled_from([text] * 30 + ['{"a":' * 3000 + "1" + "}" * 3000, text.replace("0.", "NaN", 1)]))
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 9)) == 0:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return value * draw(st.sampled_from([-1, 2, 1000])) if is_number and draw(st.booleans()) else draw(VALUES)
    keys = sorted(value) if isinstance(value, dict) else list(range(len(value)))
    key, other = draw(st.sampled_from(keys)), draw(st.sampled_from(keys))
    changed = value.copy()
    how = draw(st.sampled_from(["deeper"] * 6 + ["remove", "copy"]))
    if how == "remove":
        del changed[key]
    elif how == "copy":
        changed["more" if isinstance(value, dict) and draw(st.booleans()) else other] = value[key]
    else:
        changed[key] = draw(edited(value[key]))
    return changed


@given(st.data())
@cases(150)
def test_forged_files_are_rejected_or_predict(tmp_path: Path, data: Any) -> None:
    name = data.draw(MODELS)
    with mock.patch.object(hashlib, "sha256", AnyDigest):
        content = saved(tmp_path, name)
        length = 8 + int.from_bytes(content[:8], "little")
        header, arrays = json.loads(content[8:length]), content[length:]
        if data.draw(st.booleans()):
            header = data.draw(edited(header))
        else:
            arrays = data.draw(mutated(arrays))
        text = json.dumps(header, separators=(",", ":")).encode("ascii")
        model = loaded(tmp_path / "model", len(text).to_bytes(8, "little") + text + arrays)
    if model is None:
        return
    try:
        assert len(model.predict(fitted(name).X)) == len(fitted(name).X)
        repr(model)
        if hasattr(model, "graph_"):
            model.graph_.to_svg()
    except AssertionError:
        raise
    except Exception as error:
        check_clear(error)
