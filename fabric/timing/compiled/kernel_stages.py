"""Operations of stages in the compiled loop."""

from __future__ import annotations

from fabric.timing.compiled import columns as c
from fabric.timing.compiled.kernel_channels import (
    append,
    count,
    fits,
    goes_on,
    has_credit,
    has_slot,
    head,
    head_shown,
    see_end,
    set_out,
    spend,
    wake_reader,
    wake_writer,
)
from fabric.timing.engine.channel_rule import (
    closed_from,
    dropped_at,
    links_part,
    next_from,
    usable_from,
    visible_from,
)
from fabric.timing.engine.tables import Counters
from fabric.timing.network.fair_share import LinkWorld, has_room


def send(  # noqa: C901, PLR0911 - one rule, in the order in which it is followed
    ch: int,
    operation: int,
    now: int,
    pace: int,
    requested: int,
    code: int,
    channels: Counters,
    slots: Counters,
    dimensions: Counters,
    operations: Counters,
    empties: Counters,
    sizes: Counters,
    links: LinkWorld,
) -> tuple[int, int, int]:
    """Reserve, put or send; return the clock, the status, and why the loop returns, if it does."""
    row = ch * c.CHANNEL_COLUMNS
    what = operations[operation + c.WHAT]
    flow = channels[row + c.FLOW]
    # As a task finds it, before it waits for a credit.
    if what != c.RESERVE and not fits(ch, code, channels, dimensions, empties):
        return now, c.READY, c.FAILS
    if what != c.PUT:
        if not has_credit(ch, channels):
            return now, c.NO_CREDIT, c.AT_REST
        if now >= pace:
            return now, c.PACED, c.AT_REST
        if not has_slot(ch, channels):
            return now, c.READY, c.GROWS
    if what != c.RESERVE and flow >= 0 and not has_room(links, flow):
        return now, c.READY, c.CROWDS
    if what != c.PUT:
        now = spend(ch, now, channels, slots)
    if what == c.RESERVE:
        channels[row + c.RESERVED] += 1
        return now, c.READY, c.AT_REST
    if what == c.PUT:
        channels[row + c.RESERVED] -= 1
    at = requested + operations[operation + c.AMOUNT] if what == c.SEND_AT else 0
    channels[row + c.NEXT_SEND] = next_from(now, channels[row + c.INTERVAL])
    if flow >= 0:
        set_out(ch, now, at, code, channels, slots, sizes, links)
    else:
        visible = visible_from(now, channels[row + c.FORWARD], at)
        append(ch, visible, code, channels, slots)
    count(ch, code, channels, dimensions, empties)
    return now, c.READY, c.AT_REST


def look(ch: int, channels: Counters, slots: Counters) -> tuple[int, int]:
    """Return the status of a stage that waits for the next element of a channel, and its code."""
    row = ch * c.CHANNEL_COLUMNS
    if channels[row + c.ARRIVED] > channels[row + c.TAKEN]:
        return c.READY, slots[head(ch, channels) + c.CODE]
    return (c.NO_ELEMENT if goes_on(ch, channels) else c.READY), c.ENDED_CODE


def see(ch: int, now: int, channels: Counters, slots: Counters) -> int:
    """See the next element of a channel, or its end, which has arrived; return the clock."""
    row = ch * c.CHANNEL_COLUMNS
    if channels[row + c.ARRIVED] > channels[row + c.TAKEN]:
        waited: int = max(0, head_shown(ch, channels, slots) - now)
        if channels[row + c.FLOW] >= 0:
            slot = head(ch, channels)
            visible, late = slots[slot + c.VISIBLE], slots[slot + c.LATE]
            channels[row + c.LINKS] += links_part(now, now + waited, visible, late)
        channels[row + c.EMPTY] += waited
        return now + waited
    return see_end(ch, now, channels)


def work(
    stage: int,
    operation: int,
    now: int,
    stages: Counters,
    operations: Counters,
    stamps: Counters,
) -> int:
    """Do an operation without a channel; return the clock."""
    what = operations[operation + c.WHAT]
    amount: int = operations[operation + c.AMOUNT]
    if what == c.CHARGE:
        stages[stage + c.BUSY] += amount
        return now + amount
    if what == c.UNTIL:
        waited: int = max(0, stages[stage + c.ARRIVAL] + amount - now)
        stages[stage + c.BUSY] += waited
        return now + waited
    if what == c.COMPUTE:
        stages[stage + c.FLOPS] += amount
    else:
        stamps[stages[stage + c.FIRST_STAMP] + operations[operation + c.STAMP]] = now
    return now


def requested(
    stage: int, operation: int, now: int, stages: Counters, operations: Counters, stamps: Counters
) -> int:
    """Return the clock that the cycles of a SEND_AT count from."""
    stamp = operations[operation + c.STAMP]
    return stamps[stages[stage + c.FIRST_STAMP] + stamp] if stamp >= 0 else now


def carried(first: int, operation: int, operations: Counters, seen: Counters) -> int:
    """Return the code that an operation sends, including a number passed on."""
    code: int = operations[operation + c.SENDS]
    port = operations[operation + c.FROM]
    if port >= 0:
        code |= seen[first + port] & c.NUMBER_MASK
    return code


def note_outward(ch: int, status: int, channels: Counters, control: Counters) -> None:
    """Note that a stage waits for a task."""
    row = ch * c.CHANNEL_COLUMNS
    if status == c.PACED:
        control[c.TOO_FAR] = 1
    elif (status == c.NO_CREDIT and channels[row + c.CONSUMER] < 0) or (
        status == c.NO_ELEMENT and channels[row + c.PRODUCER] < 0
    ):
        control[c.OUTWARD] = 1


def hold(now: int, size_bytes: int, ledger: Counters, control: Counters) -> int:
    """Note a change of on-chip use; return why the loop returns, if it does."""
    at = control[c.LEDGER]
    if at == ledger.size:
        return c.RECORDS
    ledger[at] = now
    ledger[at + 1] = size_bytes
    control[c.LEDGER] = at + 2
    return c.AT_REST


def write(s: int, transition: int, journal: Counters, control: Counters) -> int:
    """Note a transition, if the run is recorded; return why the loop returns, if it does."""
    if journal.size == 0:
        return c.AT_REST
    at = control[c.JOURNAL]
    if at == journal.size:
        return c.RECORDS
    journal[at] = s << c.STAGE_SHIFT | transition
    control[c.JOURNAL] = at + 1
    return c.AT_REST


def submit(
    s: int,
    first: int,
    operation: int,
    operations: Counters,
    seen: Counters,
    submitted: Counters,
    control: Counters,
) -> None:
    """Note that a stage waits for a burst, and its tile."""
    at = control[c.SUBMITTED] * c.SUBMITTED_COLUMNS
    port = operations[operation + c.FROM]
    number = operations[operation + c.SENDS]
    if port >= 0:
        number = (seen[first + port] & c.NUMBER_MASK) >> c.NUMBER_SHIFT
    submitted[at] = s
    submitted[at + 1] = operations[operation + c.AMOUNT]
    submitted[at + 2] = number
    control[c.SUBMITTED] += 1


def mark(first: int, number: int, cycle: int, port: int, marks: Counters) -> None:
    """Note arrival ``number``, in ``port`` at ``cycle``."""
    at = (first + number) * 2
    marks[at] = cycle
    marks[at + 1] = port


def earliest(first: int, number: int, marks: Counters) -> int:
    """Return the earliest of ``number`` arrivals, of equal ones the first noted."""
    best = 0
    for other in range(1, number):
        if marks[(first + other) * 2] < marks[(first + best) * 2]:
            best = other
    return best


def forget(first: int, number: int, arrival: int, marks: Counters) -> None:
    """Remove one of ``number`` arrivals."""
    for at in range((first + arrival) * 2, (first + number - 1) * 2):
        marks[at] = marks[at + 2]


def entry_of(state: int, code: int, entries: int) -> int:
    """Return the hash index of ``code`` in ``state``; ``entries`` is a power of two."""
    return ((state * c.STATE_FACTOR) ^ (code * c.CODE_FACTOR) ^ (code >> c.CODE_SHIFT)) & (
        entries - 1
    )


def look_up(state: int, code: int, states: Counters, known: Counters) -> int:
    """Return the transition for ``code`` in ``state``; -1 if unknown."""
    row = state * c.STATE_COLUMNS
    if states[row + c.LAST_CODE] == code and states[row + c.LAST_TRANSITION] >= 0:
        return states[row + c.LAST_TRANSITION]  # type: ignore[no-any-return]
    entries = known.size // c.KNOWN_COLUMNS
    at = entry_of(state, code, entries)
    while known[at * c.KNOWN_COLUMNS]:
        entry = at * c.KNOWN_COLUMNS
        if known[entry] == state + 1 and known[entry + 1] == code:
            states[row + c.LAST_CODE] = code
            states[row + c.LAST_TRANSITION] = known[entry + 2]
            return known[entry + 2]  # type: ignore[no-any-return]
        at = (at + 1) & (entries - 1)
    return -1


def drain(
    s: int,
    now: int,
    stages: Counters,
    channels: Counters,
    slots: Counters,
    inputs: Counters,
    ready: Counters,
    control: Counters,
) -> int:
    """Discard the rest of the inputs of an ended operator; return the clock."""
    stage = s * c.STAGE_COLUMNS
    first = stages[stage + c.FIRST_INPUT]
    last = first + stages[stage + c.INPUTS]
    going_on = False
    for at in range(first, last):
        ch = inputs[at]
        row = ch * c.CHANNEL_COLUMNS
        while channels[row + c.TAKEN] < channels[row + c.ARRIVED]:
            slot = head(ch, channels)
            dropped = dropped_at(slots[slot + c.VISIBLE], stages[stage + c.DRAIN])
            slots[slot + c.USABLE] = usable_from(dropped, channels[row + c.BACKWARD])
            channels[row + c.TAKEN] += 1
            if slots[slot + c.CODE] & c.BARE == 0:
                channels[row + c.LEFT_OVER] += 1
            wake_writer(ch, channels, stages, ready, control)
        going_on = going_on or goes_on(ch, channels)
        if channels[row + c.PRODUCER] < 0:
            control[c.OUTWARD] = 1
    stages[stage + c.STATUS] = c.DRAINING
    stages[stage + c.WAIT] = 0
    if not going_on:
        for at in range(first, last):
            now = see_end(inputs[at], now, channels)
        stages[stage + c.STATUS] = c.FINISHED
        stages[stage + c.WAIT] = c.OUTSIDE
        control[c.LIVE] -= 1
    return now


def finish(
    s: int,
    now: int,
    stages: Counters,
    channels: Counters,
    outputs: Counters,
    ready: Counters,
    control: Counters,
) -> None:
    """End the outputs of an ended operator."""
    stage = s * c.STAGE_COLUMNS
    first = stages[stage + c.FIRST_OUTPUT]
    for at in range(first, first + stages[stage + c.OUTPUTS]):
        ch = outputs[at]
        if ch >= 0:
            row = ch * c.CHANNEL_COLUMNS
            channels[row + c.CLOSED] = closed_from(
                now, channels[row + c.FORWARD], channels[row + c.INTERVAL]
            )
            wake_reader(ch, channels, stages, ready, control)
    stages[stage + c.DRAIN] = now
