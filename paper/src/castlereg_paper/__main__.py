"""``python -m castlereg_paper``."""

import sys

from castlereg_paper.cli import main

if __name__ == "__main__":
    sys.exit(main())
