"""``python -m fabric``, the same as the console script ``step-fabric``."""

from __future__ import annotations

import sys

from fabric.shell.cli import main
from fabric.wiring.collector import everything_stays


def run() -> int:
    """Run the command line of this process, which ends with it, and return its exit status."""
    status = main()
    everything_stays()
    return status


if __name__ == "__main__":
    sys.exit(run())
