"""Run the comparison, or write its table.

``python -m benchmarks.torch_loop run``
    Train both from the same starting weights on the same rows; needs ``castlereg[torch]``.
``python -m benchmarks.torch_loop page``
    Print both distributions, and write them into docs/speed.md.
"""

from __future__ import annotations

import sys

from benchmarks.torch_loop import page

if __name__ == "__main__":
    if sys.argv[1:] == ["run"]:
        from benchmarks.torch_loop.run import run

        run()
    elif sys.argv[1:] != ["page"]:
        sys.exit(f"{__doc__}")
    print(page.figures())
    page.write()
