"""The cycles of a unit by cause."""

from __future__ import annotations

from dataclasses import dataclass

from fabric.messages.causes import MEMORIES


@dataclass(frozen=True)
class ChannelWait:
    """A unit's wait at one of its channels.

    ``reads``: the unit reads the channel and waited for elements; otherwise for slots.
    """

    number: int
    channel: str
    peer: str
    reads: bool
    cycles: int

    def __str__(self) -> str:
        """``from PRODUCER`` or ``to CONSUMER``."""
        return f"{'from' if self.reads else 'to'} {self.peer}"


@dataclass(frozen=True)
class StalledUnit:
    """A unit's cycles by cause. They sum to the cycles accounted for, without ``links_cycles``.

    Attributes:
        links_cycles: part of ``empty_cycles`` in which shared network links delayed the element.
        mostly: the channel of the longest wait at a channel; None without such a wait.
    """

    number: int
    name: str
    operator: str
    file: str
    line: int
    busy_cycles: int
    empty_cycles: int
    links_cycles: int
    full_cycles: int
    hbm_cycles: int
    capacity_cycles: int
    idle_cycles: int
    elements: int
    mostly: ChannelWait | None

    @property
    def stalled_cycles(self) -> int:
        """Cycles of all waits."""
        return self.empty_cycles + self.full_cycles + self.hbm_cycles + self.capacity_cycles

    @property
    def memory_wait(self) -> str:
        """``for HBM``, or another memory, if the unit waited longer for it than at a channel."""
        cause = max(MEMORIES, key=lambda each: int(getattr(self, each.column)))
        at_channel = self.mostly.cycles if self.mostly else 0
        return f"for {cause.label}" if getattr(self, cause.column) > at_channel else ""
