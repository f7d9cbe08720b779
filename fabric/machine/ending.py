"""How runs end, those of a user and those in which a remedy is tried."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["Ending"]

Ending: TypeAlias = Literal["completed", "deadlock", "livelock", "error", "interrupted"]
"""All operators ended; nothing can happen any more; it moves and gets nowhere; an operator failed;
whoever ran it did not want to wait any longer."""
