"""The two steps of links in a run, compiled: time goes on, and transfers begin.

A flow has one transfer under way at most. Between two events every one has a constant rate, its
max-min fair share (``shares.fill``). All numbers are integers, so that they are the same on every
machine, in finer fractions than those of ``shares``, since stamps of a run hang on them.
"""

from __future__ import annotations

from functools import partial

from fabric.engine.machine_code import Counters, MachineCode
from fabric.network import shares
from fabric.network.shares import fill

__all__ = ["PIECE_BITS", "TICK_BITS", "begin", "go_on"]

TICK_BITS = 18
"""A cycle has 2 ** TICK_BITS ticks."""

PIECE_BITS = 40
"""A byte has 2 ** PIECE_BITS pieces."""

_NEVER = 2**62


@MachineCode
def go_on(
    elapsed: int,
    under_way: int,
    left: Counters,
    rate: Counters,
    active: Counters,
    ended: Counters,
) -> tuple[int, int]:
    """Let time go on, not further than to where the first transfer is through.

    Args:
        elapsed: ticks.
        under_way: how many are.
        left: of each flow, pieces that are to come; counted down.
        rate: of each, in pieces a tick.
        active: flows under way, in their order; those that end are taken out.
        ended: filled with those, in the same order.

    Returns:
        How many have ended, and how many are still under way.
    """
    kept = 0
    count = 0
    for place in range(under_way):
        one = active[place]
        left[one] -= rate[one] * elapsed
        if left[one] <= 0:
            ended[count] = one
            count += 1
        else:
            active[kept] = one
            kept += 1
    return count, kept


@partial(MachineCode, uses=(shares,))
def begin(
    begun: int,
    under_way: int,
    left: Counters,
    rate: Counters,
    active: Counters,
    beginning: Counters,
    first_link: Counters,
    links: Counters,
    capacity: Counters,
    room: Counters,
    users: Counters,
    share: Counters,
    listed: Counters,
    until: Counters,
    members: Counters,
) -> tuple[int, int]:
    """Let transfers begin, and give all that are under way their rates.

    Args:
        begun: how many begin.
        under_way: how many are under way already.
        left: of each flow, pieces that are to come.
        rate: filled with the rate of each that is under way.
        active: flows under way, in their order, whatever order they began in; kept so.
        beginning: flows that begin.
        first_link: of each flow in ``links``, and one more.
        links: of all flows, one behind the other.
        capacity: of each link, in pieces a tick.
        room: scratch space, one entry a link.
        users: likewise, as ``share``, ``listed`` and ``until``.
        share: see there.
        listed: see there.
        until: see there.
        members: scratch space, one entry a link of each flow.

    Returns:
        How many are under way, and in how many ticks the first of them is through.
    """
    for each in range(begun):
        one = beginning[each]
        place = under_way
        while place > 0 and active[place - 1] > one:
            active[place] = active[place - 1]
            place -= 1
        active[place] = one
        under_way += 1
    for place in range(under_way):
        one = active[place]
        rate[one] = -1
        for at in range(first_link[one], first_link[one + 1]):
            room[links[at]] = capacity[links[at]]
    fill(
        under_way, active, rate, first_link, links, room, users, share, listed, until, members
    )  # fmt: skip
    first = _NEVER
    for place in range(under_way):
        one = active[place]
        if rate[one] > 0:
            first = min(first, -(-left[one] // rate[one]))
    return under_way, first
