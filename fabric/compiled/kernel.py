"""The compiled loop: stages go on, one after the other, until each of them waits.

It follows the rules of ``fabric.engine.channel`` and ``fabric.engine.ports`` to the cycle, the
credit and the counter; what an operator does is in the tables. ``columns`` says what stands where:
a table is one array, row after row.
"""

from __future__ import annotations

from functools import partial

from fabric.compiled import columns as c
from fabric.engine.machine_code import Counters, MachineCode

__all__ = ["go_on"]


def wake(other: int, stages: Counters, ready: Counters, control: Counters) -> None:
    """Let stage ``other`` go on."""
    row = other * c.STAGE_COLUMNS
    if stages[row + c.STATUS] != c.DRAINING:
        stages[row + c.STATUS] = c.READY
    stages[row + c.WAIT] = c.OUTSIDE
    ready[(control[c.READY_HEAD] + control[c.READY_COUNT]) & (ready.size - 1)] = other
    control[c.READY_COUNT] += 1


def wake_reader(
    ch: int, channels: Counters, stages: Counters, ready: Counters, control: Counters
) -> None:
    """Let the reader of a channel go on, where it waits for it."""
    other = channels[ch * c.CHANNEL_COLUMNS + c.CONSUMER]
    if other < 0:
        control[c.TOUCHED] = 1
        return
    row = other * c.STAGE_COLUMNS
    status = stages[row + c.STATUS]
    waits = stages[row + c.WAIT]
    if (status == c.DRAINING and waits >= 0) or (status == c.NO_ELEMENT and waits == ch):
        wake(other, stages, ready, control)


def wake_writer(
    ch: int, channels: Counters, stages: Counters, ready: Counters, control: Counters
) -> None:
    """Let the writer of a channel go on, where it waits for a credit."""
    other = channels[ch * c.CHANNEL_COLUMNS + c.PRODUCER]
    if other < 0:
        control[c.TOUCHED] = 1
        return
    row = other * c.STAGE_COLUMNS
    if stages[row + c.STATUS] == c.NO_CREDIT and stages[row + c.WAIT] == ch:
        wake(other, stages, ready, control)


def head(ch: int, channels: Counters) -> int:
    """Return the slot of the oldest element of a channel."""
    row = ch * c.CHANNEL_COLUMNS
    at = channels[row + c.TAKEN] & channels[row + c.MASK]
    return (channels[row + c.BASE] + at) * c.SLOT_COLUMNS


def see_end(ch: int, now: int, channels: Counters) -> int:
    """See the end of a channel, which is there; return the clock."""
    row = ch * c.CHANNEL_COLUMNS
    if channels[row + c.ENDED] == 0:
        channels[row + c.ENDED] = 1
        waited = channels[row + c.CLOSED] - now
        if waited > 0:
            channels[row + c.EMPTY] += waited
            now += waited
    return now


def take(ch: int, now: int, channels: Counters, slots: Counters) -> None:
    """Dequeue the oldest element of a channel at clock ``now``."""
    row = ch * c.CHANNEL_COLUMNS
    slot = head(ch, channels)
    # The slot that was used so many elements before is needed again, or one more is.
    before = channels[row + c.TAKEN] - channels[row + c.PEAK]
    if before >= 0:
        at = (channels[row + c.BASE] + (before & channels[row + c.MASK])) * c.SLOT_COLUMNS
        if slots[at + c.USABLE] + channels[row + c.FORWARD] > slots[slot + c.VISIBLE]:
            channels[row + c.PEAK] += 1
    usable = now + channels[row + c.BACKWARD]
    slots[slot + c.USABLE] = usable
    channels[row + c.LAST_CREDIT] = usable
    channels[row + c.TAKEN] += 1


def has_credit(ch: int, channels: Counters) -> bool:
    """Whether the writer of a channel has a credit, usable now or later."""
    row = ch * c.CHANNEL_COLUMNS
    used = channels[row + c.SENT] + channels[row + c.RESERVED] - channels[row + c.TAKEN]
    return bool(used < channels[row + c.DEPTH])


def has_slot(ch: int, channels: Counters) -> bool:
    """Whether there is a slot for the credit; a deep channel begins with few."""
    row = ch * c.CHANNEL_COLUMNS
    number = channels[row + c.SENT] + channels[row + c.RESERVED]
    size = channels[row + c.MASK] + 1
    return bool(number < size or size >= channels[row + c.DEPTH])


def spend(ch: int, now: int, channels: Counters, slots: Counters) -> int:
    """Spend a credit; return the clock, at which it is usable."""
    row = ch * c.CHANNEL_COLUMNS
    before = channels[row + c.SENT] + channels[row + c.RESERVED] - channels[row + c.DEPTH]
    if before >= 0:
        at = (channels[row + c.BASE] + (before & channels[row + c.MASK])) * c.SLOT_COLUMNS
        waited = slots[at + c.USABLE] - now
        if waited > 0:
            returning = min(waited, channels[row + c.BACKWARD])
            channels[row + c.FULL] += waited - returning
            channels[row + c.CREDIT] += returning
            now += waited
    return now


def append(
    ch: int,
    visible: int,
    code: int,
    channels: Counters,
    slots: Counters,
    dimensions: Counters,
    empties: Counters,
) -> bool:
    """Append an element to a channel; False where it refutes a shape the program states."""
    row = ch * c.CHANNEL_COLUMNS
    at = channels[row + c.SENT] & channels[row + c.MASK]
    slot = (channels[row + c.BASE] + at) * c.SLOT_COLUMNS
    slots[slot + c.VISIBLE] = visible
    slots[slot + c.CODE] = code
    channels[row + c.SENT] += 1
    if code & c.BARE:
        channels[row + c.BARE_SENT] += 1
    if channels[row + c.COUNTED] < 0:
        return True
    level = min(code & (c.BARE - 1), channels[row + c.RANK])
    return count(channels[row + c.COUNTED], code, level, dimensions, empties)


def count(first: int, code: int, level: int, dimensions: Counters, empties: Counters) -> bool:
    """Count an element in the groups that it closes; see ``AssumedSink``."""
    empty = 0
    row = first * c.DIMENSION_COLUMNS
    if code & c.BARE:
        empty = empties[code >> c.KIND_SHIFT]
    else:
        dimensions[row + c.SIZE] += 1
    fits = True
    for dimension in range(level):
        size = dimensions[row + c.SIZE]
        if dimension >= empty or size:
            dimensions[row + c.SIZE] = 0
            dimensions[row + c.GROUPS] += 1
            dimensions[row + c.LEAST] = min(dimensions[row + c.LEAST], size)
            dimensions[row + c.MOST] = max(dimensions[row + c.MOST], size)
            claimed = dimensions[row + c.CLAIMED]
            fits = fits and (claimed < 0 or size == claimed)
            dimensions[row + c.DIMENSION_COLUMNS + c.SIZE] += 1
        row += c.DIMENSION_COLUMNS
    return fits


def mark(first: int, number: int, cycle: int, port: int, marks: Counters) -> None:
    """Note as arrival ``number`` that an element came to ``port`` in ``cycle``."""
    at = (first + number) * 2
    marks[at] = cycle
    marks[at + 1] = port


def earliest(first: int, number: int, marks: Counters) -> int:
    """Return which of so many arrivals was the earliest, of equal ones the first noted."""
    best = 0
    for other in range(1, number):
        if marks[(first + other) * 2] < marks[(first + best) * 2]:
            best = other
    return best


def forget(first: int, number: int, arrival: int, marks: Counters) -> None:
    """Forget one of so many arrivals."""
    for at in range((first + arrival) * 2, (first + number - 1) * 2):
        marks[at] = marks[at + 2]


def look_up(state: int, code: int, states: Counters, known: Counters) -> int:
    """Return what follows ``code`` in ``state``; -1 where that is not known."""
    row = state * c.STATE_COLUMNS
    if states[row + c.LAST_CODE] == code and states[row + c.LAST_TRANSITION] >= 0:
        return states[row + c.LAST_TRANSITION]  # type: ignore[no-any-return]
    mask = known.size // c.KNOWN_COLUMNS - 1
    at = ((state * c.STATE_FACTOR) ^ (code * c.CODE_FACTOR) ^ (code >> c.CODE_SHIFT)) & mask
    while known[at * c.KNOWN_COLUMNS]:
        entry = at * c.KNOWN_COLUMNS
        if known[entry] == state + 1 and known[entry + 1] == code:
            states[row + c.LAST_CODE] = code
            states[row + c.LAST_TRANSITION] = known[entry + 2]
            return known[entry + 2]  # type: ignore[no-any-return]
        at = (at + 1) & mask
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
    """Discard what still comes to a stage whose operator has ended; return the clock."""
    stage = s * c.STAGE_COLUMNS
    first = stages[stage + c.FIRST_INPUT]
    last = first + stages[stage + c.INPUTS]
    going_on = False
    for at in range(first, last):
        ch = inputs[at]
        row = ch * c.CHANNEL_COLUMNS
        while channels[row + c.TAKEN] < channels[row + c.SENT]:
            slot = head(ch, channels)
            taken_cycle = max(slots[slot + c.VISIBLE], stages[stage + c.DRAIN])
            slots[slot + c.USABLE] = taken_cycle + channels[row + c.BACKWARD]
            channels[row + c.TAKEN] += 1
            if slots[slot + c.CODE] & c.BARE == 0:
                channels[row + c.LEFT_OVER] += 1
            wake_writer(ch, channels, stages, ready, control)
        going_on = going_on or channels[row + c.CLOSED] < 0
    stages[stage + c.STATUS] = c.DRAINING
    stages[stage + c.WAIT] = 0
    control[c.OUTWARD] = 1
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
    """End the outputs of a stage whose operator has ended."""
    stage = s * c.STAGE_COLUMNS
    first = stages[stage + c.FIRST_OUTPUT]
    for at in range(first, first + stages[stage + c.OUTPUTS]):
        ch = outputs[at]
        if ch >= 0:
            channels[ch * c.CHANNEL_COLUMNS + c.CLOSED] = now
            wake_reader(ch, channels, stages, ready, control)
    stages[stage + c.DRAIN] = now


@partial(MachineCode, uses=(c,))
def go_on(
    stages: Counters,
    channels: Counters,
    slots: Counters,
    dimensions: Counters,
    inputs: Counters,
    outputs: Counters,
    seen: Counters,
    stamps: Counters,
    marks: Counters,
    states: Counters,
    known: Counters,
    transitions: Counters,
    operations: Counters,
    empties: Counters,
    ready: Counters,
    ledger: Counters,
    submitted: Counters,
    control: Counters,
    pace: int,
    budget: int,
) -> tuple[int, int]:
    """Let every stage that is ready go on until it waits.

    Args:
        stages, channels, slots, dimensions, states, transitions, operations: see ``columns``.
        inputs: channel of each port; of stage s, from its FIRST_INPUT on.
        outputs: likewise.
        seen: by input, the code of the element that was looked at last.
        stamps: clock readings of each stage, from its FIRST_STAMP on.
        marks: by input, arrivals that were noted: cycle and port.
        known: hashed by state and code: state + 1, code, transition.
        empties: by kind of value, which dimension a bare stop stands for.
        ready: a ring of the stages that can go on.
        ledger: filled with the changes of on-chip use: cycle and bytes.
        submitted: filled with stages and the number of the burst that each waits for.
        control: see ``columns``.
        pace: a stage whose clock is so far does not send.
        budget: about how many operations, before it comes back.

    Returns:
        Why it comes back, and whom or what that is about: AT_REST where every stage waits; ASKS
        where a stage has come to what is not known, in ASKED_STATE and ASKED_CODE; TIRED; GROWS
        where a channel has no slot left below its depth; RECORDS where the ledger is full; FAILS
        where something is wrong.
    """
    while control[c.READY_COUNT] > 0:
        s = ready[control[c.READY_HEAD]]
        stage = s * c.STAGE_COLUMNS
        now = stages[stage + c.NOW]
        state = stages[stage + c.STATE]
        pc = stages[stage + c.PC]
        end = stages[stage + c.PC_END]
        first = stages[stage + c.FIRST_INPUT]
        status = stages[stage + c.STATUS]
        reason = c.AT_REST
        about = s
        while status == c.READY:
            if budget <= 0:
                reason = c.TIRED
                break
            if pc < end:
                budget -= 1
                row = pc * c.OPERATION_COLUMNS
                what = operations[row + c.WHAT]
                port = operations[row + c.AT]
                amount = operations[row + c.AMOUNT]
                if what == c.TAKE:
                    take(inputs[first + port], now, channels, slots)
                    wake_writer(inputs[first + port], channels, stages, ready, control)
                elif what == c.CHARGE:
                    stages[stage + c.BUSY] += amount
                    now += amount
                elif what == c.COMPUTE:
                    stages[stage + c.FLOPS] += amount
                elif what == c.NOTE:
                    stamps[stages[stage + c.FIRST_STAMP] + operations[row + c.STAMP]] = now
                elif what == c.MARK:
                    visible = slots[head(inputs[first + port], channels) + c.VISIBLE]
                    mark(first, stages[stage + c.MARKS], visible, port, marks)
                    stages[stage + c.MARKS] += 1
                elif what == c.UNTIL:
                    waited = max(0, stages[stage + c.ARRIVAL] + amount - now)
                    stages[stage + c.BUSY] += waited
                    now += waited
                elif what == c.HOLD:
                    at = control[c.LEDGER]
                    if at == ledger.size:
                        reason = c.RECORDS
                        break
                    ledger[at] = now
                    ledger[at + 1] = amount
                    control[c.LEDGER] = at + 2
                elif what == c.CHECK:
                    code = seen[first + port] & c.NUMBER_MASK
                    if code >> c.NUMBER_SHIFT >= amount:
                        reason = c.FAILS
                        break
                elif what == c.BURST:
                    submitted[control[c.SUBMITTED] * 2] = s
                    submitted[control[c.SUBMITTED] * 2 + 1] = amount
                    control[c.SUBMITTED] += 1
                    status = c.OFF_CHIP
                elif what == c.REPEAT:
                    stages[stage + c.TIMES] += 1
                    if stages[stage + c.TIMES] < amount:
                        pc -= port
                        continue
                    stages[stage + c.TIMES] = 0
                else:
                    ch = outputs[stages[stage + c.FIRST_OUTPUT] + port]
                    asked = now
                    if ch >= 0 and what != c.PUT:
                        if not has_credit(ch, channels):
                            status = c.NO_CREDIT
                            stages[stage + c.WAIT] = ch
                            if channels[ch * c.CHANNEL_COLUMNS + c.CONSUMER] < 0:
                                control[c.OUTWARD] = 1
                            break
                        if now >= pace:
                            status = c.PACED
                            control[c.TOO_FAR] = 1
                            break
                        if not has_slot(ch, channels):
                            reason = c.GROWS
                            about = ch
                            break
                        now = spend(ch, now, channels, slots)
                    if ch < 0:
                        pass
                    elif what == c.RESERVE:
                        channels[ch * c.CHANNEL_COLUMNS + c.RESERVED] += 1
                    else:
                        if what == c.PUT:
                            channels[ch * c.CHANNEL_COLUMNS + c.RESERVED] -= 1
                        visible = now + channels[ch * c.CHANNEL_COLUMNS + c.FORWARD]
                        if what == c.SEND_AT:
                            stamp = operations[row + c.STAMP]
                            if stamp >= 0:
                                asked = stamps[stages[stage + c.FIRST_STAMP] + stamp]
                            visible = max(visible, asked + amount)
                        code = operations[row + c.SENDS]
                        if operations[row + c.FROM] >= 0:
                            code |= seen[first + operations[row + c.FROM]] & c.NUMBER_MASK
                        if not append(ch, visible, code, channels, slots, dimensions, empties):
                            reason = c.FAILS
                            break
                        wake_reader(ch, channels, stages, ready, control)
                pc += 1
                continue
            row = state * c.STATE_COLUMNS
            kind = states[row + c.KIND]
            code = c.ENDED_CODE
            arrival = 0
            if kind == c.PEEK:
                at = first + states[row + c.PORT]
                ch = inputs[at]
                ends = ch * c.CHANNEL_COLUMNS
                if channels[ends + c.SENT] > channels[ends + c.TAKEN]:
                    slot = head(ch, channels)
                    waited = max(0, slots[slot + c.VISIBLE] - now)
                    channels[ends + c.EMPTY] += waited
                    now += waited
                    code = slots[slot + c.CODE]
                    seen[at] = code
                    if states[row + c.CARRIES]:
                        code &= ~c.NUMBER_MASK
                elif channels[ends + c.CLOSED] < 0:
                    status = c.NO_ELEMENT
                    stages[stage + c.WAIT] = ch
                    if channels[ends + c.PRODUCER] < 0:
                        control[c.OUTWARD] = 1
                    break
                else:
                    now = see_end(ch, now, channels)
            elif kind == c.POP:
                arrival = earliest(first, stages[stage + c.MARKS], marks)
                code = marks[(first + arrival) * 2 + 1]
            elif kind == c.END:
                finish(s, now, stages, channels, outputs, ready, control)
                status = c.DRAINING
                break
            else:
                status = c.STUCK
                break
            transition = look_up(state, code, states, known) * c.TRANSITION_COLUMNS
            if transition < 0:
                control[c.ASKED_STATE] = state
                control[c.ASKED_CODE] = code
                reason = c.ASKS
                break
            if kind == c.POP:
                stages[stage + c.ARRIVAL] = marks[(first + arrival) * 2]
                forget(first, stages[stage + c.MARKS], arrival, marks)
                stages[stage + c.MARKS] -= 1
            pc = transitions[transition + c.START]
            end = transitions[transition + c.STOP]
            state = transitions[transition + c.NEXT]
        stages[stage + c.STATE] = state
        stages[stage + c.PC] = pc
        stages[stage + c.PC_END] = end
        if reason != c.AT_REST:
            stages[stage + c.NOW] = now
            return reason, about
        stages[stage + c.STATUS] = status
        if status == c.DRAINING:
            now = drain(s, now, stages, channels, slots, inputs, ready, control)
        stages[stage + c.NOW] = now
        control[c.READY_HEAD] = (control[c.READY_HEAD] + 1) & (ready.size - 1)
        control[c.READY_COUNT] -= 1
    return c.AT_REST, 0
