"""Commands of a channel of the banked memory, its windows and its buses.

A command delays others: each has a first cycle in which it can be issued, so commands are ordered
by cycle. A gate is shared by all banks of a group; a bank's own cycles are stored with the bank.

A window has one entry per burst. The entry is free after the command of its burst, or after the
activation for it: such a burst waits elsewhere for its row.

Buses are bits by cycle. Cycles before CLOCKED are counted; later cycles are in a ring of words.
"""

from __future__ import annotations

from fabric.timing.engine.tables import Counters
from fabric.timing.memories import banked_columns as c


def precharge(ch: int, slot: int, cycle: int, m: Counters) -> None:
    """Close the row that is open in the bank of a request."""
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    m[at + c.STARTED] = min(m[at + c.STARTED], cycle)
    bank = m[at + c.BANK]
    _note(ch, c.PRECHARGES, cycle, bank, m)
    m[at + c.MET] = c.CONFLICTS
    m[bank + c.OPEN_ROW] = c.NONE
    m[bank + c.ACTIVATE_FROM] = max(m[bank + c.ACTIVATE_FROM], cycle + m[c.RP])
    m[ch + c.ROWS_FROM] = cycle + 1
    _classify_all(ch, bank, m)


def activate(ch: int, slot: int, cycle: int, m: Counters) -> None:
    """Open a row for a request, from ``cycle`` on; the second slot is the cycle that counts."""
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    m[at + c.STARTED] = min(m[at + c.STARTED], cycle)
    bank = m[at + c.BANK]
    pseudo = m[bank + c.PSEUDO]
    m[at + c.MET] = max(m[at + c.MET], c.MISSES)
    counts = cycle + 1
    m[ch + c.ROWS_FROM] = cycle + 2
    until = cycle + m[c.RRD_S]
    if m[c.FAW] > 4 * m[c.RRD_S]:
        # The fourth activation from this one on.
        four = pseudo + c.ACTIVATED
        until = max(until, m[four + 1] + m[c.FAW])
        for each in range(3):
            m[four + each] = m[four + each + 1]
        m[four + 3] = cycle
    gates = m[ch + c.GATES_AT] + 2 * m[c.CHANNEL_GROUPS] + m[pseudo + c.FIRST_GROUP]
    for gate in range(gates, gates + m[c.GROUPS]):
        m[gate] = max(m[gate], until)
    gate = m[bank + c.GATE_OF] + 2 * m[c.CHANNEL_GROUPS]
    m[gate] = max(m[gate], cycle + m[c.RRD_L])
    m[bank + c.OPEN_ROW] = m[at + c.ROW]
    m[bank + c.READ_FROM] = counts + m[c.RCD_READ]
    m[bank + c.WRITE_FROM] = counts + m[c.RCD_WRITE]
    # A row is not closed before it has served the request that it is opened for.
    m[bank + c.PRECHARGE_FROM] = c.BLOCKED
    m[bank + c.HELD] = counts + m[c.RAS]
    m[bank + c.ACTIVATE_FROM] = cycle + m[c.RC]
    _note(ch, c.ACTIVATES, counts, bank, m)
    order = m[ch + c.SLOTS_AT] + 2 * m[c.SLOTS] + slot
    write = int(slot >= m[c.READ_SLOTS])
    m[order] -= c.INACTIVE
    m[ch + c.ACTIVE_READS + write] += 1
    release(ch, write, counts, m)
    _classify_all(ch, bank, m)


def read_or_write(ch: int, slot: int, cycle: int, m: Counters) -> int:
    """Read or write the next burst of a request; return its bank."""
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    m[at + c.STARTED] = min(m[at + c.STARTED], cycle)
    bank: int = m[at + c.BANK]
    write = int(slot >= m[c.READ_SLOTS])
    pseudo = m[bank + c.PSEUDO]
    _note(ch, c.READS_COLUMN + write, cycle, bank, m)
    last = cycle + m[c.BURST_CYCLES] - 1
    fill(ch, m[pseudo + c.PSEUDO_LANE] + c.CARRIES, cycle, last, m)
    _shut_columns(ch, bank, write, cycle, m)
    m[pseudo + c.LAST_READ - write] = cycle
    held = cycle + (m[c.CWL] + m[c.BURST_CYCLES] + m[c.WR] if write else m[c.RTP])
    m[bank + c.HELD] = max(m[bank + c.HELD], held)
    order = m[ch + c.SLOTS_AT] + 2 * m[c.SLOTS] + slot
    if m[order] & c.INACTIVE:
        release(ch, write, cycle, m)
    else:
        if cycle > m[ch + c.NEXT_REFRESH]:
            # The refresh has waited for it: so the cycles before count, whoever leaves now.
            account(ch, cycle, m)
        m[order] += c.INACTIVE
        m[bank + c.PRECHARGE_FROM] = m[bank + c.HELD]
        m[ch + c.ACTIVE_READS + write] -= 1
    m[at + c.LEFT_BURSTS] -= 1
    if m[at + c.LEFT_BURSTS] == 0:
        leave(ch, slot, cycle, m)
        ready = cycle if write else cycle + m[c.CL] + m[c.BURST_CYCLES]
        _serve_client(ch, at, write, ready, m)
    if m[bank + c.PRECHARGE_FROM] != c.BLOCKED:
        m[bank + c.PRECHARGE_FROM] = m[bank + c.HELD]
    if m[bank + c.FIRST] != slot or m[at + c.FOLLOWING] != c.NONE:
        # Others may want another row.
        _classify_all(ch, bank, m)
    return bank


def _shut_columns(ch: int, bank: int, write: int, cycle: int, m: Counters) -> None:
    """Delay columns after the one in ``cycle``, for their slot and for the bus, which may turn."""
    m[ch + c.COLUMNS_FROM] = cycle + 1
    groups = m[c.CHANNEL_GROUPS]
    first = m[ch + c.GATES_AT] + m[m[bank + c.PSEUDO] + c.FIRST_GROUP]
    alike = first + write * groups
    for gate in range(alike, alike + m[c.GROUPS]):
        m[gate] = max(m[gate], cycle + m[c.PSEUDO_GAP])
    own = m[bank + c.GATE_OF] + write * groups
    m[own] = max(m[own], cycle + m[c.GROUP_GAP])
    other = first + (1 - write) * groups
    own = m[bank + c.GATE_OF] + (1 - write) * groups
    if write:
        written = cycle + m[c.CWL] + m[c.BURST_CYCLES]
        m[own] = max(m[own], written + m[c.WTR_L])
        turned = written + m[c.WTR_S]
    else:
        turned = cycle + m[c.CL] + m[c.BURST_CYCLES] + 2 - m[c.CWL]
    for gate in range(other, other + m[c.GROUPS]):
        m[gate] = max(m[gate], turned)


def _classify_all(ch: int, bank: int, m: Counters) -> None:
    """Update the requests to a bank whose state has changed."""
    slot = m[bank + c.FIRST]
    while slot != c.NONE:
        classify(ch, slot, bank, m)
        slot = m[m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS + c.FOLLOWING]


def _serve_client(ch: int, at: int, write: int, ready: int, m: Counters) -> None:
    client = m[at + c.CLIENT]
    row = m[c.CLIENTS_AT] + client * c.CLIENT_COLUMNS
    met = m[at + c.MET]
    m[ch + c.ROW_HITS + met - c.HITS] += 1
    m[ch + c.SERVED_READS + write] += 1
    m[c.UNSERVED] -= 1
    m[c.UNSERVED_WRITES] -= write
    m[row + c.READY] = max(m[row + c.READY], ready)
    m[row + met] += 1
    m[row + c.WAITED] += m[at + c.STARTED] - m[at + c.ADMITTED]
    m[row + c.SERVED] += ready - m[at + c.STARTED]
    m[row + c.OPEN] -= 1
    if m[row + c.OPEN] == 0:
        m[m[c.DONE_AT] + m[c.FINISHED]] = client
        m[c.FINISHED] += 1


def refresh(ch: int, m: Counters) -> None:
    """Close all banks of a channel as soon as their rows allow, and refresh them."""
    due = m[ch + c.NEXT_REFRESH]
    account(ch, due, m)
    closed = max(due, m[ch + c.ROWS_FROM])
    first = m[ch + c.BANKS_AT]
    end_of_banks = first + m[c.CHANNEL_BANKS] * c.BANK_COLUMNS
    for bank in range(first, end_of_banks, c.BANK_COLUMNS):
        if m[bank + c.OPEN_ROW] != c.NONE:
            closed = max(closed, m[bank + c.HELD])
    begin = closed + m[c.RP]
    end = begin + m[c.RFC]
    _note(ch, c.PRECHARGES_ALL, closed, first, m)
    _note(ch, c.REFRESHES, begin, first, m)
    m[ch + c.ROWS_FROM] = end
    for bank in range(first, end_of_banks, c.BANK_COLUMNS):
        m[bank + c.OPEN_ROW] = c.NONE
        m[bank + c.ACTIVATE_FROM] = end
        _classify_all(ch, bank, m)
    m[ch + c.RESUME] = end
    account(ch, end, m)
    m[ch + c.NEXT] = max(m[ch + c.NEXT], end)
    m[ch + c.NEXT_REFRESH] = due + m[c.REFI]


def _note(ch: int, what: int, cycle: int, bank: int, m: Counters) -> None:
    if m[c.LOGS]:
        at = m[c.LOG_AT] + (m[c.LOGGED] % m[c.LOGS]) * c.LOG_COLUMNS
        m[at + c.LOG_CYCLE] = cycle
        m[at + c.LOG_CHANNEL] = m[ch + c.NUMBER]
        m[at + c.LOG_WHAT] = what
        m[at + c.LOG_BANK] = (bank - m[ch + c.BANKS_AT]) // c.BANK_COLUMNS
        m[at + c.LOG_ROW] = m[bank + c.OPEN_ROW]
        m[c.LOGGED] += 1


def take(
    ch: int, arrived: int, place: int, client: int, write: int, m: Counters, queues: Counters
) -> None:
    """Queue a request behind the others outside the window of a channel."""
    queued = m[ch + c.QUEUED_READS + write]
    at = _queued(ch, write, queued, m)
    queues[at + c.QUEUED_WHEN] = arrived << c.CLIENT_BITS | client
    queues[at + c.QUEUED_WHERE] = place >> c.BANK_SHIFT
    if queued == 0:
        # Behind others it changes nothing before they have come in.
        m[ch + c.READ_COMES + write] = arrived
        m[ch + c.QUEUES_SINCE] = min(m[ch + c.QUEUES_SINCE], arrived + 1)
        m[ch + c.NEXT] = min(m[ch + c.NEXT], arrived + 1)
    m[ch + c.QUEUED_READS + write] = queued + 1
    m[c.LONGEST] = max(m[c.LONGEST], queued + 1)
    m[c.UNSERVED] += 1
    m[c.UNSERVED_WRITES] += write


def _queued(ch: int, write: int, number: int, m: Counters) -> int:
    room: int = m[c.ROOM]
    at: int = m[ch + c.READ_HEAD + write] + number
    queue: int = m[ch + c.NUMBER] * 2 + write
    return (queue * room + (at & (room - 1))) * c.QUEUED_COLUMNS


def coming(ch: int, m: Counters) -> tuple[int, int]:
    """Return when the next request enters a window, and whether it writes; FAR if none does.

    Its first burst enters first, the others take the next free entries.
    """
    earliest = c.FAR
    kind = 0
    for write in range(2):
        if (
            m[ch + c.USED_READ_ENTRIES + write] < m[c.READ_ENTRIES + write]
            and m[ch + c.FREE_READ_SLOT + write] != c.NONE
        ):
            cycle = max(m[ch + c.READ_COMES + write], m[ch + c.READ_FREED + write])
            if cycle < earliest:
                earliest = cycle
                kind = write
    return earliest, kind


def admit(ch: int, cycle: int, write: int, m: Counters, queues: Counters) -> int:
    """Move the first waiting request into its window; return its slot."""
    keep_up(ch, cycle, m)
    slot: int = m[ch + c.FREE_READ_SLOT + write]
    head = _queued(ch, write, 0, m)
    client = queues[head + c.QUEUED_WHEN] & c.CLIENT_MASK
    waited = cycle - m[ch + c.READ_COMES + write]
    m[m[c.CLIENTS_AT] + client * c.CLIENT_COLUMNS + c.QUEUED] += waited
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    m[ch + c.FREE_READ_SLOT + write] = m[at + c.FOLLOWING]
    m[at + c.CLIENT] = client
    m[at + c.ADMITTED] = cycle
    m[at + c.STARTED] = c.FAR
    m[at + c.LEFT_BURSTS] = m[c.BURSTS]
    m[at + c.MET] = c.HITS
    _line_up(ch, slot, queues[head + c.QUEUED_WHERE], m)
    ready = m[ch + c.SLOTS_AT] + slot
    m[ready] = max(m[ready], cycle + 1)
    m[ch + c.READS + write] += 1
    m[ch + c.USED_READ_ENTRIES + write] += m[c.BURSTS]
    m[ch + c.WAITS_SINCE] = min(m[ch + c.WAITS_SINCE], cycle + 1)
    _move_up(ch, write, cycle, m, queues)
    _turn(ch, cycle + 1, m)
    return slot


def _line_up(ch: int, slot: int, where: int, m: Counters) -> None:
    """Append a request in age order, and among the requests to its bank."""
    if m[ch + c.SEQUENCE] > c.MOST_AGE:
        _count_ages_anew(ch, m)
    order = m[ch + c.SLOTS_AT] + 2 * m[c.SLOTS] + slot
    m[order] = c.INACTIVE | m[ch + c.SEQUENCE] << c.SLOT_BITS | slot
    m[ch + c.SEQUENCE] += 1
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    bank = m[ch + c.BANKS_AT] + (where & c.BANK_MASK) * c.BANK_COLUMNS
    m[at + c.BANK] = bank
    m[at + c.ROW] = where >> c.BANK_BITS
    m[at + c.FOLLOWING] = m[bank + c.FIRST]
    m[bank + c.FIRST] = slot
    classify(ch, slot, bank, m)


def _move_up(ch: int, write: int, cycle: int, m: Counters, queues: Counters) -> None:
    m[ch + c.READ_HEAD + write] += 1
    m[ch + c.QUEUED_READS + write] -= 1
    m[ch + c.READ_COMES + write] = c.FAR
    if m[ch + c.QUEUED_READS + write]:
        head = _queued(ch, write, 0, m)
        m[ch + c.READ_COMES + write] = queues[head + c.QUEUED_WHEN] >> c.CLIENT_BITS
    since = min(m[ch + c.READ_COMES], m[ch + c.WRITE_COMES]) + 1
    if since > cycle:
        # The queues are empty for a while, or until a request of this cycle waits in the next one.
        account(ch, cycle + 1, m)
        m[ch + c.QUEUES_SINCE] = since


def classify(ch: int, slot: int, bank: int, m: Counters) -> None:
    """Compute when the bank of a request can take its next command, and its other delays."""
    opened = m[bank + c.OPEN_ROW]
    row = m[m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS + c.ROW]
    since = c.ACTIVATE_FROM if opened == c.NONE else c.PRECHARGE_FROM
    since = c.READ_FROM + int(slot >= m[c.READ_SLOTS]) if opened == row else since
    ready = m[ch + c.SLOTS_AT] + slot
    m[ready] = m[bank + since]
    # A group has its gates in the order of these cycles of its banks.
    m[ready + m[c.SLOTS]] = m[bank + c.GATE_OF] + (since - c.READ_FROM) * m[c.CHANNEL_GROUPS]


def _count_ages_anew(ch: int, m: Counters) -> None:
    """Renumber the ages in the windows of a channel from 0."""
    first = m[ch + c.SLOTS_AT] + 2 * m[c.SLOTS]
    last = first + m[c.SLOTS]
    number = 0
    following = 0
    while following <= c.AGE_MASK:
        oldest = following
        following = c.EMPTY
        for at in range(first, last):
            age = m[at] & c.AGE_MASK
            if m[at] < c.EMPTY and age == oldest:
                m[at] += (number << c.SLOT_BITS) - age
                number += 1
            elif m[at] < c.EMPTY and age > oldest:
                following = min(following, age)
    m[ch + c.SEQUENCE] = number


def release(ch: int, write: int, cycle: int, m: Counters) -> None:
    """Free an entry of a window from ``cycle`` on."""
    m[ch + c.USED_READ_ENTRIES + write] -= 1
    m[ch + c.READ_FREED + write] = cycle
    _turn(ch, cycle + 1, m)


def leave(ch: int, slot: int, cycle: int, m: Counters) -> None:
    """Free the slot of a served request."""
    write = int(slot >= m[c.READ_SLOTS])
    at = m[ch + c.REQUESTS_AT] + slot * c.REQUEST_COLUMNS
    bank = m[at + c.BANK]
    ready = m[ch + c.SLOTS_AT] + slot
    m[ready] = c.BLOCKED
    m[ready + 2 * m[c.SLOTS]] = c.EMPTY
    other = m[bank + c.FIRST]
    if other == slot:
        m[bank + c.FIRST] = m[at + c.FOLLOWING]
    else:
        before = other
        while other != slot:
            before = m[ch + c.REQUESTS_AT] + other * c.REQUEST_COLUMNS
            other = m[before + c.FOLLOWING]
        m[before + c.FOLLOWING] = m[at + c.FOLLOWING]
    m[at + c.FOLLOWING] = m[ch + c.FREE_READ_SLOT + write]
    m[ch + c.FREE_READ_SLOT + write] = slot
    m[ch + c.READS + write] -= 1
    if m[ch + c.READS] + m[ch + c.WRITES] == 0:
        account(ch, cycle, m)
        m[ch + c.WAITS_SINCE] = c.FAR


def _turn(ch: int, cycle: int, m: Counters) -> None:
    """Switch a channel between writing and reading; its commands start at ``cycle``."""
    reads, writes = m[ch + c.USED_READ_ENTRIES], m[ch + c.USED_WRITE_ENTRIES]
    mode = 1
    if writes == 0:
        mode = 0
    elif reads > 0:
        mode = int(writes >= m[c.WRITE_LOW]) if m[ch + c.MODE] else int(writes > m[c.WRITE_HIGH])
    if mode != m[ch + c.MODE]:
        _begin(ch, mode, cycle, m)


def _begin(ch: int, mode: int, cycle: int, m: Counters) -> None:
    m[ch + c.MODE] = mode
    m[ch + c.MODE_FROM] = cycle
    gates = m[ch + c.GATES_AT] + mode * m[c.CHANNEL_GROUPS]
    for number in range(m[c.PSEUDO_CHANNELS]):
        pseudo = m[ch + c.PSEUDOS_AT] + number * c.PSEUDO_COLUMNS
        turned = m[gates + m[pseudo + c.FIRST_GROUP]]
        first = max(cycle, m[pseudo + c.LAST_WRITE + mode] + m[c.BURST_CYCLES])
        fill(ch, m[pseudo + c.PSEUDO_LANE] + c.TURNS, first, turned - 1, m)


def _at(ch: int, cycle: int, m: Counters) -> int:
    """Return the index of the word with ``cycle``."""
    words: int = m[c.RING_WORDS]
    word = (cycle >> c.WORD_BITS) & (words - 1)
    return m[ch + c.BUSES_AT] + word * m[c.LANES]  # type: ignore[no-any-return]


def fill(ch: int, lane: int, first: int, last: int, m: Counters) -> None:
    """Take the cycles from ``first`` to ``last`` that are not counted yet."""
    cycle = max(first, m[ch + c.CLOCKED])
    while cycle <= last:
        start = cycle & (c.WORD - 1)
        cycles = min(last - cycle + 1, c.WORD - start)
        m[_at(ch, cycle, m) + lane] |= ((1 << cycles) - 1) << start
        cycle += cycles


def _ones(word: int) -> int:
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) & c.WORD_MASK) >> 24


def keep_up(ch: int, cycle: int, m: Counters) -> None:
    """Count the cycles before ``cycle`` if they fill a word."""
    if cycle - m[ch + c.CLOCKED] >= c.WORD:
        account(ch, cycle, m)


def account(ch: int, cycle: int, m: Counters) -> None:
    """Count all cycles of a channel before ``cycle``, which are final."""
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
    """Return a mask of the bits below one bit."""
    return (1 << min(max(bit, 0), c.WORD)) - 1


def retire(ch: int, cycle: int, end: int, m: Counters) -> None:
    """Count the word from ``cycle`` to ``end``, and clear it."""
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
    m[c.PERIOD_BITS] += 1
    first = m[c.PERIODS_AT]
    for fate in range(first, first + c.FATES):
        for at in range(c.PERIODS // 2):
            both = m[fate + 2 * at * c.FATES] + m[fate + (2 * at + 1) * c.FATES]
            m[fate + at * c.FATES] = both
        for at in range(c.PERIODS // 2, c.PERIODS):
            m[fate + at * c.FATES] = 0
