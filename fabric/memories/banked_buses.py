"""Command slots and data buses of a channel as bits, a cycle each: what is taken, and what is free.

A request that goes later may have been chosen before one that goes earlier: its slots are taken.
"""

from __future__ import annotations

from fabric.engine.machine_code import Counters
from fabric.memories import banked_columns as c

__all__ = ["account", "fill", "free_activation", "free_column", "free_slot", "keep_four", "mark"]


def _at(ch: int, cycle: int, m: Counters) -> int:
    """Return where the lanes of the word with ``cycle`` begin."""
    words: int = m[c.RING_WORDS]
    word = (cycle >> c.WORD_BITS) & (words - 1)
    return m[ch + c.BUSES_AT] + word * m[c.LANES]  # type: ignore[no-any-return]


def fill(ch: int, lane: int, first: int, last: int, m: Counters) -> None:
    """Take the cycles from ``first`` to ``last`` that are not accounted for yet."""
    cycle = max(first, m[ch + c.CLOCKED])
    while cycle <= last:
        start = cycle & (c.WORD - 1)
        cycles = min(last - cycle + 1, c.WORD - start)
        m[_at(ch, cycle, m) + lane] |= ((1 << cycles) - 1) << start
        cycle += cycles


def mark(ch: int, lane: int, first: int, bits: int, m: Counters) -> None:
    """Take the cycles of ``bits``, less than 32, from ``first`` on.

    What is accounted for is not of the same word as what is free again.
    """
    early = (m[ch + c.CLOCKED] & -c.WORD) - first
    if early > 0:
        bits >>= early
        first += early
    bits <<= first & (c.WORD - 1)
    m[_at(ch, first, m) + lane] |= bits & c.WORD_MASK
    if bits > c.WORD_MASK:
        m[_at(ch, first + c.WORD, m) + lane] |= bits >> c.WORD


def free_slot(ch: int, lane: int, cycle: int, m: Counters) -> int:
    """Return the first cycle from ``cycle`` on that is free on a lane."""
    while (m[_at(ch, cycle, m) + lane] >> (cycle & (c.WORD - 1))) & 1:
        cycle += 1
    return cycle


def free_activation(ch: int, bank: int, cycle: int, m: Counters) -> int:
    """Return the first cycle from ``cycle`` on in which the two slots of an activation begin.

    It counts from the second one on.
    """
    pseudo_lane = m[bank + c.PSEUDO_LANE] + c.NO_ACTIVATION
    group_lane = m[bank + c.GROUP_LANE] + c.GROUP_NO_ACTIVATION
    row = (m[_at(ch, cycle, m) + c.ROW_SLOTS] >> (cycle & (c.WORD - 1))) & 1
    while True:
        second = cycle + 1
        at = _at(ch, second, m)
        bit = second & (c.WORD - 1)
        following = (m[at + c.ROW_SLOTS] >> bit) & 1
        barred = m[at + pseudo_lane] | m[at + group_lane]
        if not (row | following | ((barred >> bit) & 1)):
            return cycle
        row = following
        cycle = second


def free_column(ch: int, bank: int, cycle: int, m: Counters) -> int:
    """Return the first cycle from ``cycle`` on in which a column can be read or written."""
    pseudo_lane = m[bank + c.PSEUDO_LANE] + c.NO_COLUMN
    group_lane = m[bank + c.GROUP_LANE] + c.NO_COLUMN
    while True:
        at = _at(ch, cycle, m)
        taken = m[at + c.COLUMN_SLOTS] | m[at + pseudo_lane] | m[at + group_lane]
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


def keep_four(ch: int, pseudo_lane: int, cycle: int, m: Counters) -> None:
    """Bar a fifth activation from every stretch with four of them, of which one is in ``cycle``."""
    lane = pseudo_lane + c.ACTIVATED
    faw = m[c.FAW]
    earliest = max(cycle - faw + 1, 0)
    first = cycle
    found = 1
    # The earliest of the three before it, and then on to later ones, four at a time.
    before = cycle - 1
    while found < 4 and before >= earliest:
        if (m[_at(ch, before, m) + lane] >> (before & (c.WORD - 1))) & 1:
            first = before
            found += 1
        before -= 1
    while first <= cycle:
        found = 1
        second = c.FAR
        last = first
        while found < 4 and last < first + faw:
            last += 1
            if (m[_at(ch, last, m) + lane] >> (last & (c.WORD - 1))) & 1:
                found += 1
                second = min(second, last)
        if last < first + faw:
            fill(ch, pseudo_lane + c.NO_ACTIVATION, last - faw + 1, first + faw - 1, m)
        first = second


def _ones(word: int) -> int:
    """Return how many bits of 32 are set."""
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) & c.WORD_MASK) >> 24


def account(ch: int, cycle: int, m: Counters) -> None:
    """Account for all cycles of a channel before ``cycle``: nothing goes there any more."""
    now = m[ch + c.CLOCKED]
    while now < cycle:
        start = now & (c.WORD - 1)
        end = min(cycle, now - start + c.WORD)
        bits = ((1 << (end - now)) - 1) << start
        if now < m[ch + c.RESUME]:
            m[ch + c.REFRESH_MASK] |= bits & _before(m[ch + c.RESUME] - now + start)
        if end > m[ch + c.WAITS_SINCE]:
            m[ch + c.WAIT_MASK] |= bits & ~_before(m[ch + c.WAITS_SINCE] - now + start)
        if end > m[ch + c.QUEUES_SINCE]:
            queues = bits & ~_before(m[ch + c.QUEUES_SINCE] - now + start)
            m[_at(ch, now, m) + c.QUEUES] |= queues
        now = end
        if now & (c.WORD - 1) == 0:
            _retire(ch, now - c.WORD, m)
    m[ch + c.CLOCKED] = max(m[ch + c.CLOCKED], cycle)


def _before(bit: int) -> int:
    """Return the bits of a word that stand before one."""
    return (1 << min(max(bit, 0), c.WORD)) - 1


def _retire(ch: int, cycle: int, m: Counters) -> None:
    """Count what became of the word from ``cycle`` on, and clear one that nobody asks for."""
    at = _at(ch, cycle, m)
    while (cycle >> m[c.PERIOD_BITS]) >= c.PERIODS:
        _halve(m)
    period = m[c.PERIODS_AT] + (cycle >> m[c.PERIOD_BITS]) * c.FATES
    for pseudo in range(m[c.PSEUDO_CHANNELS]):
        lane = at + c.CHANNEL_LANES + pseudo * c.PSEUDO_LANES
        left = c.WORD_MASK
        for fate in range(c.FATES):
            if fate == c.DATA:
                mask = m[lane + c.CARRIES]
            elif fate == c.REFRESH:
                mask = m[ch + c.REFRESH_MASK]
            elif fate == c.TURNAROUND:
                mask = m[lane + c.TURNS]
            elif fate == c.WINDOW:
                mask = m[at + c.QUEUES]
            elif fate == c.CONFLICT:
                mask = m[ch + c.WAIT_MASK]
            else:
                mask = c.WORD_MASK
            cycles = _ones(left & mask)
            left &= ~mask
            m[ch + c.BUS + fate] += cycles
            m[period + fate] += cycles
    m[ch + c.REFRESH_MASK] = 0
    m[ch + c.WAIT_MASK] = 0
    at = _at(ch, cycle - m[c.KEPT_WORDS] * c.WORD, m)
    for lane in range(at, at + m[c.LANES]):
        m[lane] = 0


def _halve(m: Counters) -> None:
    """Let each period be twice as long."""
    m[c.PERIOD_BITS] += 1
    first = m[c.PERIODS_AT]
    for fate in range(first, first + c.FATES):
        for at in range(c.PERIODS // 2):
            both = m[fate + 2 * at * c.FATES] + m[fate + (2 * at + 1) * c.FATES]
            m[fate + at * c.FATES] = both
        for at in range(c.PERIODS // 2, c.PERIODS):
            m[fate + at * c.FATES] = 0
