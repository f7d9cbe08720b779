"""``python -m fabric``, the same as the console script ``step-fabric``."""

from __future__ import annotations

import signal
import sys


def run() -> int:
    """Run the command line of this process, which ends with it, and return its exit status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Until there is somebody to hear it, and once nobody is left, it ends the process at once.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from fabric.graph.wiring.collector import everything_stays
    from fabric.shell.cli import main

    status = main()
    everything_stays()
    return status


if __name__ == "__main__":
    sys.exit(run())
