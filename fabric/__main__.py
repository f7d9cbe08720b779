"""``python -m fabric``, the same as the console script ``step-fabric``."""

from __future__ import annotations

import signal
import sys


def run() -> int:
    """Run the command line once in this process, and return the exit status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Before and after the command, an interrupt ends the process immediately.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from fabric.graph.wiring.collector import everything_stays
    from fabric.shell.cli import main

    status = main()
    everything_stays()
    return status


if __name__ == "__main__":
    sys.exit(run())
