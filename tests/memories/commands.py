"""Commands of a DRAM channel, as a log of them says what became of requests."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

__all__ = ["Command", "What"]

What: TypeAlias = Literal["activate", "precharge", "read", "write", "refresh"]


class Command(NamedTuple):
    """A command to a bank; a refresh is one to the whole channel.

    Attributes:
        cycle: of its command slot, of the second one of an activation.
        channel: its number.
        what: it is to do.
        pseudo_channel: of the channel.
        bank_group: of the pseudo channel.
        bank: of the bank group.
        row: that it is for; of a precharge the one that it closes.
    """

    cycle: int
    channel: int
    what: What
    pseudo_channel: int = 0
    bank_group: int = 0
    bank: int = 0
    row: int = 0
