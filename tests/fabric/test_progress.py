from __future__ import annotations

import io
from itertools import count

import pytest
import trio
from rich.console import Console

from fabric.messages.progress import Progress, Snapshot

pytestmark = pytest.mark.usefixtures("autojump_clock")


async def shown(snapshots: list[Snapshot], *, columns: int = 100) -> str:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=columns, color_system=None)
    ticks = count()
    progress = Progress(console, seconds=lambda: next(ticks) / 2)
    left = iter(snapshots)
    with trio.CancelScope() as scope:

        def snapshot() -> Snapshot:
            now = next(left)
            if now is snapshots[-1]:
                scope.cancel()
            return now

        await progress.run(snapshot)
    return written.getvalue()


async def test_progress_line_has_cycle_rate_and_tasks() -> None:
    written = await shown([Snapshot(0, 0, 16, 0), Snapshot(1_000_000, 123_456, 4, 12)])

    expected = "cycle 1,000,000, 2,000,000 cycles/s, 123,456 elements, 4 running, 12 waiting"
    assert expected in written


@pytest.mark.parametrize(
    ("cycles", "rate"),
    [
        ([3_708], ""),
        ([3_708, 3_708], ""),
        ([0, 1, 1, 1, 1], "2 s/cycle, "),
        ([0, 9], "18 cycles/s, "),
    ],
)
async def test_slow_rate_is_never_0(cycles: list[int], rate: str) -> None:
    written = await shown([Snapshot(cycle, 5, 4, 12) for cycle in cycles])
    assert f"cycle {cycles[-1]:,}, {rate}5 elements, 4 running" in written
    assert " 0 cycles/s" not in written
