"""What a command says by its exit status; imported by all of them."""

from __future__ import annotations

from typing import Final

__all__ = ["ExitStatus"]


class ExitStatus:
    """Exit statuses of ``python -m fabric``."""

    COMPLETED: Final = 0
    WRONG: Final = 1
    USAGE: Final = 2
    DEADLOCK: Final = 3
    UNWRITTEN: Final = 4

    @staticmethod
    def interrupted(number: int) -> int:
        """Return 128 and the signal's number: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP."""
        return 128 + number
