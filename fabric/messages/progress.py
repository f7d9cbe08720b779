"""The progress of a run, and its line on standard error."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import trio

from fabric.messages.text import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_REFRESH_SECONDS: Final = 0.2
_RATE_OVER: Final = 10
"""The rate is taken over this many refreshes."""


@dataclass(frozen=True)
class Snapshot:
    """The progress of a run: its cycle, delivered elements, ready and waiting tasks."""

    cycle: int
    elements: int
    running: int
    waiting: int


class Progress:
    def __init__(
        self, console: Console, *, seconds: Callable[[], float] = time.perf_counter
    ) -> None:
        self._console = console
        self._seconds = seconds

    async def run(self, snapshot: Callable[[], Snapshot]) -> None:
        """Show a line about the snapshot, which changes five times a second, until cancelled."""
        from rich.live import Live

        seen: deque[tuple[float, int]] = deque(maxlen=_RATE_OVER)
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            while True:
                now = snapshot()
                seen.append((self._seconds(), now.cycle))
                live.update(_line(now, _rate(seen)), refresh=True)
                await trio.sleep(_REFRESH_SECONDS)


def _rate(seen: deque[tuple[float, int]]) -> str:
    """Return the cycles per second, or the seconds per cycle; empty if the cycle is the same."""
    (start, first), (end, last) = seen[0], seen[-1]
    if last <= first or end <= start:
        return ""
    rate = (last - first) / (end - start)
    return f"{rate:,.0f} cycles/s, " if rate >= 1 else f"{1 / rate:,.0f} s/cycle, "


def _line(now: Snapshot, rate: str) -> Text:
    from rich.text import Text

    return Text(
        f"cycle {now.cycle:,}, {rate}{counted(now.elements, 'element')}, "
        f"{now.running:,} running, {now.waiting:,} waiting"
    )
