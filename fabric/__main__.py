"""``python -m fabric``, the same as the console script ``step-fabric``."""

from __future__ import annotations

import sys

from fabric.shell.cli import main

if __name__ == "__main__":
    sys.exit(main())
