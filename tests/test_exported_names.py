"""The public names."""

from __future__ import annotations

import castlereg


def test_all_names_exist_and_nothing_else_is_public() -> None:
    public = {name for name in vars(castlereg) if not name.startswith("_")}
    modules = {name for name in public if type(getattr(castlereg, name)).__name__ == "module"}
    assert public - modules == set(castlereg.__all__)
    assert castlereg.__all__ == sorted(castlereg.__all__)
