"""Lets strands that were woken go on: those of conducted operators without trio in between.

A unit that parks is blocked as trio sees it, and whoever has its coroutine may go on with it; trio
offers that for other runners of coroutines (``temporarily_detach_coroutine_object``). Compared with
trio's scheduler, the conductor saves 2 microseconds each time: a third of the time of an attention
run. In trio it is a task itself, gives it a turn now and then, and hands an operator that ends back
to it. Operators that promise nothing may await what they like: trio runs them. Where there are none
and no task beside them, the conductor runs alone.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable
from typing import Final

from fabric.engine.strand import WOKEN, Strand, Switching

__all__ = ["Conductor"]

_TURN: Final = 1_000
"""Steps before others get a turn."""


class Conductor:
    """Runs strands that were woken, oldest first.

    Attributes:
        awake: called once when there is work again; None where nobody waits for that.
    """

    def __init__(self) -> None:
        """Wait for the first one."""
        self.awake: Callable[[], object] | None = None
        self._ready: Final[deque[Strand]] = deque()
        self._conducting = False
        self._last: Strand | None = None
        self._paused = False

    def pause(self) -> None:
        """Let others have their turn as soon as the strand that goes on parks."""
        self._paused = True

    def resume(self, strand: Strand) -> None:
        """Let ``strand``, which has parked, go on soon."""
        if strand.step is None:
            strand.resume()
            return
        self._ready.append(strand)
        self._awake()

    def resume_last(self, strand: Strand) -> None:
        """Let ``strand``, of which there is one such, go on when no other waits for its turn."""
        self._last = strand
        self._awake()

    def _awake(self) -> None:
        if self.awake is not None:
            awake, self.awake = self.awake, None
            awake()

    @property
    def busy(self) -> bool:
        """Whether a strand waits for its turn."""
        return bool(self._ready) or self._last is not None

    def conduct(self) -> None:
        """Let strands go on until none waits for its turn, or others should have theirs."""
        self._conducting = True
        try:
            self._conduct()
        finally:
            self._conducting = False

    def _conduct(self) -> None:
        ready = self._ready
        self._paused = False
        for _ in range(_TURN):
            if self._paused:
                return
            if ready:
                strand = ready.popleft()
            elif self._last is not None:
                strand, self._last = self._last, None
            else:
                return
            # A strand that was cancelled meanwhile is trio's.
            if not strand.cancelled:
                assert strand.step is not None
                strand.step(WOKEN)

    @types.coroutine
    def give_way(self, strand: Strand) -> Switching[None]:
        """Let everybody else go on first."""
        if strand.step is None:
            from trio.lowlevel import checkpoint

            yield from checkpoint()  # noqa: ASYNC105 - as a generator awaits
        else:
            self.resume(strand)
            outcome = yield strand.suspension
            if outcome is not WOKEN:
                outcome.unwrap()

    @types.coroutine
    def end(self, strand: Strand) -> Switching[None]:
        """Be run by trio again: a task can end nowhere else; without trio, do not go on."""
        if self._conducting and strand.step is not None:
            if not strand.cancelled:
                strand.resume()
            yield strand.suspension
