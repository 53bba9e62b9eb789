"""PyTorch is loaded when it is asked for, and its absence is said."""

from __future__ import annotations

import subprocess
import sys


def test_the_estimators_do_not_load_pytorch() -> None:
    code = "import sys, castlereg; castlereg.CastleRegressor; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_pytorch_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None; import castlereg.torch"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: castlereg.torch needs the package torch: pip install 'castlereg[torch]'" in found.stderr
