"""Data buses of a channel as bits, one for each cycle: what became of it.

Cycles before CLOCKED are accounted for: the others stand in a ring of words.
"""

from __future__ import annotations

from fabric.engine.machine_code import Counters
from fabric.memories import banked_columns as c

__all__ = ["account", "fill", "keep_up", "retire"]


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


def _ones(word: int) -> int:
    """Return how many bits of 32 are set."""
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) & c.WORD_MASK) >> 24


def keep_up(ch: int, cycle: int, m: Counters) -> None:
    """Account for the cycles before ``cycle`` where they are a word or more."""
    if cycle - m[ch + c.CLOCKED] >= c.WORD:
        account(ch, cycle, m)


def account(ch: int, cycle: int, m: Counters) -> None:
    """Account for all cycles of a channel before ``cycle``: nothing goes there any more."""
    now = m[ch + c.CLOCKED]
    active = m[ch + c.ACTIVE_READS] + m[ch + c.ACTIVE_WRITES]
    while now < cycle:
        start = now & (c.WORD - 1)
        end = min(cycle, now - start + c.WORD)
        bits = ((1 << (end - now)) - 1) << start
        if now < m[ch + c.RESUME]:
            m[ch + c.REFRESH_MASK] |= bits & _before(m[ch + c.RESUME] - now + start)
        elif end > m[ch + c.NEXT_REFRESH] and active:
            # Rows that were opened are still read.
            m[ch + c.REFRESH_MASK] |= bits & ~_before(m[ch + c.NEXT_REFRESH] - now + start)
        if end > m[ch + c.WAITS_SINCE]:
            m[ch + c.WAIT_MASK] |= bits & ~_before(m[ch + c.WAITS_SINCE] - now + start)
        if end > m[ch + c.QUEUES_SINCE]:
            queues = bits & ~_before(m[ch + c.QUEUES_SINCE] - now + start)
            m[_at(ch, now, m) + c.QUEUES] |= queues
        now = end
        if now & (c.WORD - 1) == 0:
            retire(ch, now - c.WORD, now, m)
    m[ch + c.CLOCKED] = max(m[ch + c.CLOCKED], cycle)


def _before(bit: int) -> int:
    """Return the bits of a word that stand before one."""
    return (1 << min(max(bit, 0), c.WORD)) - 1


def retire(ch: int, cycle: int, end: int, m: Counters) -> None:
    """Count what became of the word from ``cycle`` on, up to ``end``, and clear it."""
    at = _at(ch, cycle, m)
    while (cycle >> m[c.PERIOD_BITS]) >= c.PERIODS:
        _halve(m)
    period = m[c.PERIODS_AT] + (cycle >> m[c.PERIOD_BITS]) * c.FATES
    for pseudo in range(m[c.PSEUDO_CHANNELS]):
        lane = at + c.CHANNEL_LANES + pseudo * c.PSEUDO_LANES
        left = _before(end - cycle)
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
