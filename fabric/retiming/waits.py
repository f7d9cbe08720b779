"""How long units waited for channels in a record that was timed again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fabric.retiming import events as e

if TYPE_CHECKING:
    from fabric.engine.machine_code import Counters
    from fabric.retiming.retimer import Retimer

__all__ = ["Waits", "waits_of"]


class Waits(NamedTuple):
    """Of a record that came to its end.

    Attributes:
        ends: by unit, its final clock.
        empty: by channel, cycles its consumer waited for an element or the end.
        full: by channel, cycles its producer waited for a slot, credits on their way back included.
    """

    ends: Counters
    empty: Counters
    full: Counters


def waits_of(retimer: Retimer) -> Waits:
    """Return how long units waited in the last timing, which came to its end."""
    record, clocks = retimer.record, retimer.clocks
    code, amount = record.events.T
    before = np.append(0, clocks[:-1])[: len(code)]
    # Every unit has an event: its end.
    before[record.first[:-1]] = 0
    kind, channel = code & e.KIND, code >> e.SHIFT
    worked = np.where(kind == e.IDLE, 0, amount)
    waited = clocks[: len(code)] - before - worked

    def of(*kinds: int) -> Counters:
        its = np.isin(kind, kinds)
        found = np.bincount(channel[its], waited[its], len(record.channels))
        return found.astype(np.int64)

    ends: Counters = clocks[record.first[1:] - 1].copy()
    return Waits(ends, of(e.SEE, e.TAKE, e.HEAR, e.END, e.IDLE), of(e.SEND, e.RESERVE))
