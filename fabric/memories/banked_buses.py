"""Command slots and data buses of a channel as bits, a cycle each: what is taken, and what is free.

A request that goes later may have been chosen before one that goes earlier: its slots are taken.
"""

from __future__ import annotations

from fabric.engine.machine_code import Counters
from fabric.memories import banked_columns as c

__all__ = [
    "account",
    "fill",
    "fill_one",
    "free_activation",
    "free_column",
    "free_slot",
    "keep_four",
]


def _at(ch: int, cycle: int, settings: Counters) -> int:
    """Return where the lanes of the word with ``cycle`` begin."""
    words: int = settings[c.RING_WORDS]
    lanes: int = settings[c.LANES]
    return (ch * words + ((cycle >> c.WORD_BITS) & (words - 1))) * lanes


def fill(
    ch: int, lane: int, first: int, last: int, channels: Counters, buses: Counters, s: Counters
) -> None:
    """Take the cycles from ``first`` to ``last`` that are not accounted for yet."""
    cycle = max(first, channels[ch * c.CHANNEL_COLUMNS + c.CLOCKED])
    while cycle <= last:
        start = cycle & (c.WORD - 1)
        cycles = min(last - cycle + 1, c.WORD - start)
        buses[_at(ch, cycle, s) + lane] |= ((1 << cycles) - 1) << start
        cycle += cycles


def fill_one(ch: int, lane: int, cycle: int, buses: Counters, s: Counters) -> None:
    """Take a cycle that is not accounted for yet."""
    buses[_at(ch, cycle, s) + lane] |= 1 << (cycle & (c.WORD - 1))


def free_slot(ch: int, lane: int, cycle: int, buses: Counters, s: Counters) -> int:
    """Return the first cycle from ``cycle`` on that is free on a lane."""
    while (buses[_at(ch, cycle, s) + lane] >> (cycle & (c.WORD - 1))) & 1:
        cycle += 1
    return cycle


def free_activation(
    ch: int, pseudo_lane: int, group_lane: int, cycle: int, buses: Counters, s: Counters
) -> int:
    """Return the first cycle from ``cycle`` on in which the two slots of an activation begin.

    It counts from the second one on.
    """
    row = (buses[_at(ch, cycle, s) + c.ROW_SLOTS] >> (cycle & (c.WORD - 1))) & 1
    while True:
        second = cycle + 1
        at = _at(ch, second, s)
        bit = second & (c.WORD - 1)
        following = (buses[at + c.ROW_SLOTS] >> bit) & 1
        barred = buses[at + pseudo_lane + c.NO_ACTIVATION]
        barred |= buses[at + group_lane + c.GROUP_NO_ACTIVATION]
        if not (row | following | ((barred >> bit) & 1)):
            return cycle
        row = following
        cycle = second


def free_column(
    ch: int, pseudo_lane: int, group_lane: int, cycle: int, buses: Counters, s: Counters
) -> int:
    """Return the first cycle from ``cycle`` on in which a column can be read or written."""
    while True:
        at = _at(ch, cycle, s)
        taken = buses[at + c.COLUMN_SLOTS] | buses[at + pseudo_lane + c.NO_COLUMN]
        taken |= buses[at + group_lane + c.NO_COLUMN]
        taken >>= cycle & (c.WORD - 1)
        if taken & 1 == 0:
            return cycle
        left = c.WORD - (cycle & (c.WORD - 1))
        while taken & 1:
            taken >>= 1
            cycle += 1
            left -= 1
        if left > 0:
            return cycle


def keep_four(
    ch: int, pseudo_lane: int, cycle: int, channels: Counters, buses: Counters, s: Counters
) -> None:
    """Bar a fifth activation from every stretch with four of them, of which one is in ``cycle``."""
    lane = pseudo_lane + c.ACTIVATED
    faw = s[c.FAW]
    earliest = max(cycle - faw + 1, channels[ch * c.CHANNEL_COLUMNS + c.CLOCKED])
    first = cycle
    found = 1
    # The earliest of the three before it, and then on to later ones, four at a time.
    for before in range(cycle - 1, earliest - 1, -1):
        if found < 4 and (buses[_at(ch, before, s) + lane] >> (before & (c.WORD - 1))) & 1:
            first = before
            found += 1
    while first <= cycle:
        found = 1
        second = c.FAR
        last = first
        while found < 4 and last < first + faw:
            last += 1
            if (buses[_at(ch, last, s) + lane] >> (last & (c.WORD - 1))) & 1:
                found += 1
                second = min(second, last)
        if last < first + faw:
            barred = pseudo_lane + c.NO_ACTIVATION
            fill(ch, barred, last - faw + 1, first + faw - 1, channels, buses, s)
        first = second


def _ones(word: int) -> int:
    """Return how many bits of 32 are set."""
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) & c.WORD_MASK) >> 24


def account(
    ch: int,
    cycle: int,
    channels: Counters,
    buses: Counters,
    periods: Counters,
    control: Counters,
    s: Counters,
) -> None:
    """Account for all cycles of a channel before ``cycle``: nothing goes there any more."""
    row = ch * c.CHANNEL_COLUMNS
    now = channels[row + c.CLOCKED]
    while now < cycle:
        start = now & (c.WORD - 1)
        end = min(cycle, now - start + c.WORD)
        bits = ((1 << (end - now)) - 1) << start
        if now < channels[row + c.RESUME]:
            channels[row + c.REFRESH_MASK] |= bits & _before(channels[row + c.RESUME] - now + start)
        if end > channels[row + c.WAITS_SINCE]:
            waits = bits & ~_before(channels[row + c.WAITS_SINCE] - now + start)
            channels[row + c.WAIT_MASK] |= waits
        if end > channels[row + c.QUEUES_SINCE]:
            queues = bits & ~_before(channels[row + c.QUEUES_SINCE] - now + start)
            buses[_at(ch, now, s) + c.QUEUES] |= queues
        now = end
        if now & (c.WORD - 1) == 0:
            _retire(ch, now - c.WORD, channels, buses, periods, control, s)
    channels[row + c.CLOCKED] = max(channels[row + c.CLOCKED], cycle)


def _before(bit: int) -> int:
    """Return the bits of a word that stand before one."""
    return (1 << min(max(bit, 0), c.WORD)) - 1


def _retire(
    ch: int,
    cycle: int,
    channels: Counters,
    buses: Counters,
    periods: Counters,
    control: Counters,
    s: Counters,
) -> None:
    """Count what became of the word from ``cycle`` on, and clear it for later ones."""
    row = ch * c.CHANNEL_COLUMNS
    at = _at(ch, cycle, s)
    while (cycle >> control[c.PERIOD_BITS]) >= s[c.PERIODS]:
        _halve(periods, s[c.PERIODS])
        control[c.PERIOD_BITS] += 1
    period = (cycle >> control[c.PERIOD_BITS]) * c.FATES
    for pseudo in range(s[c.PSEUDO_CHANNELS]):
        lane = at + c.CHANNEL_LANES + pseudo * c.PSEUDO_LANES
        left = c.WORD_MASK
        for fate in range(c.FATES):
            if fate == c.DATA:
                mask = buses[lane + c.CARRIES]
            elif fate == c.REFRESH:
                mask = channels[row + c.REFRESH_MASK]
            elif fate == c.TURNAROUND:
                mask = buses[lane + c.TURNS]
            elif fate == c.WINDOW:
                mask = buses[at + c.QUEUES]
            elif fate == c.CONFLICT:
                mask = channels[row + c.WAIT_MASK]
            else:
                mask = c.WORD_MASK
            cycles = _ones(left & mask)
            left &= ~mask
            channels[row + c.BUS + fate] += cycles
            periods[period + fate] += cycles
    channels[row + c.REFRESH_MASK] = 0
    channels[row + c.WAIT_MASK] = 0
    for lane in range(at, at + s[c.LANES]):
        buses[lane] = 0


def _halve(periods: Counters, number: int) -> None:
    """Let each period be twice as long."""
    for fate in range(c.FATES):
        for at in range(number // 2):
            both = periods[2 * at * c.FATES + fate] + periods[(2 * at + 1) * c.FATES + fate]
            periods[at * c.FATES + fate] = both
        for at in range(number // 2, number):
            periods[at * c.FATES + fate] = 0
