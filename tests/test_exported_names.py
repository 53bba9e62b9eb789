"""The public names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import castlereg


def test_all_names_exist_and_nothing_else_is_public() -> None:
    assert all(getattr(castlereg, name) for name in castlereg.__all__)
    public = {name for name in vars(castlereg) if not name.startswith("_")}
    modules = {name for name in public if type(getattr(castlereg, name)).__name__ == "module"}
    assert public - modules - {"TYPE_CHECKING"} == set(castlereg.__all__)
    assert castlereg.__all__ == sorted(castlereg.__all__)
    assert set(castlereg.__all__) <= set(dir(castlereg))


def test_names_load_when_used() -> None:
    code = (
        "import sys, castlereg; assert 'jax' not in sys.modules; castlereg.regularizers.L2; castlereg.CastleRegressor"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'castlereg' has no attribute 'CastleRegresor'"):
        _ = castlereg.CastleRegresor
