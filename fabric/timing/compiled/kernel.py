"""The compiled loop: stages run one after the other, until each of them waits.

Cycles, credits and counters equal those of tasks. ``columns`` has the layout of the tables, which
are flat arrays of rows.
"""

from __future__ import annotations

from functools import partial

from fabric.timing.compiled import columns as c
from fabric.timing.compiled import kernel_channels, kernel_stages
from fabric.timing.compiled.kernel_channels import (
    arrive,
    head_shown,
    take,
    wake_reader,
    wake_writer,
)
from fabric.timing.compiled.kernel_stages import (
    carried,
    drain,
    earliest,
    finish,
    forget,
    hold,
    look,
    look_up,
    mark,
    note_outward,
    requested,
    see,
    send,
    submit,
    work,
    write,
)
from fabric.timing.engine import channel_rule
from fabric.timing.engine.machine_code import MachineCode
from fabric.timing.engine.tables import Counters
from fabric.timing.network import fair_share
from fabric.timing.network.fair_share import LinkWorld, advance_links, next_cycle


@partial(MachineCode, uses=(c, channel_rule, kernel_channels, kernel_stages, fair_share))
def go_on(  # noqa: C901, PLR0912, PLR0915 - one switch; what it chooses from is elsewhere
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
    sizes: Counters,
    ready: Counters,
    ledger: Counters,
    submitted: Counters,
    journal: Counters,
    control: Counters,
    ends: Counters,
    links: LinkWorld,
    pace: int,
    horizon: int,
    budget: int,
) -> tuple[int, int]:
    """Run every ready stage until it waits.

    Arguments without a row in ``columns``: ``seen`` has the last code of each input; ``marks`` the
    cycle and port of noted arrivals; ``known`` the transitions, hashed, as state + 1, code,
    transition. ``ready`` is a ring of stages, ``ledger`` gets changes of on-chip use in cycles and
    bytes, ``submitted`` the bursts of stages, and ``journal`` their transitions (size 0 if not
    recorded). ``ends`` has the channels of each flow of ``links``. A stage at ``pace`` does not
    send, links advance up to ``horizon`` while all stages wait, and about ``budget`` operations are
    done.

    Returns:
        Why it returns, and for which stage or channel: AT_REST if all wait; ASKS for an unknown
        transition, in ASKED_STATE and ASKED_CODE; TIRED after the budget; GROWS if a channel and
        CROWDS if a flow needs more room; RECORDS if the ledger or the journal is full; FAILS on
        errors.
    """
    while True:
        while control[c.READY_COUNT] > 0:
            s = ready[control[c.READY_HEAD]]
            stage = s * c.STAGE_COLUMNS
            now = stages[stage + c.NOW]
            state = stages[stage + c.STATE]
            pc = stages[stage + c.PC]
            end = stages[stage + c.PC_END]
            first = stages[stage + c.FIRST_INPUT]
            status = stages[stage + c.STATUS]
            reason, about = c.AT_REST, s
            while status == c.READY and reason == c.AT_REST:
                budget -= 1
                if budget < 0:
                    reason = c.TIRED
                elif now > c.FAR or stages[stage + c.FLOPS] > c.FAR:
                    reason = c.FAILS
                elif pc < end:
                    row = pc * c.OPERATION_COLUMNS
                    what = operations[row + c.WHAT]
                    port = operations[row + c.AT]
                    amount = operations[row + c.AMOUNT]
                    if what == c.TAKE:
                        take(inputs[first + port], now, channels, slots)
                        wake_writer(inputs[first + port], channels, stages, ready, control)
                    elif what <= c.LAST_WORK:
                        now = work(stage, row, now, stages, operations, stamps)
                    elif what <= c.LAST_SEND:
                        ch = outputs[stages[stage + c.FIRST_OUTPUT] + port]
                        if ch >= 0:
                            asked = requested(stage, row, now, stages, operations, stamps)
                            code = carried(first, row, operations, seen)
                            now, status, reason = send(
                                ch,
                                row,
                                now,
                                pace,
                                asked,
                                code,
                                channels,
                                slots,
                                dimensions,
                                operations,
                                empties,
                                sizes,
                                links,
                            )
                            if status == c.READY and reason == c.AT_REST and what != c.RESERVE:
                                wake_reader(ch, channels, stages, ready, control)
                            elif status != c.READY:
                                stages[stage + c.WAIT] = ch
                                note_outward(ch, status, channels, control)
                            elif reason != c.AT_REST:
                                about = ch
                    elif what == c.REPEAT:
                        stages[stage + c.TIMES] += 1
                        if stages[stage + c.TIMES] < amount:
                            pc -= port + 1
                        else:
                            stages[stage + c.TIMES] = 0
                    elif what == c.MARK:
                        came = head_shown(inputs[first + port], channels, slots)
                        mark(first, stages[stage + c.MARKS], came, port, marks)
                        stages[stage + c.MARKS] += 1
                    elif what == c.CHECK:
                        number = (seen[first + port] & c.NUMBER_MASK) >> c.NUMBER_SHIFT
                        reason = c.AT_REST if number < amount else c.FAILS
                    elif what == c.HOLD:
                        reason = hold(now, amount, ledger, control)
                    else:
                        submit(s, first, row, operations, seen, submitted, control)
                        status = c.OFF_CHIP
                    if reason == c.AT_REST and status in (c.READY, c.OFF_CHIP):
                        pc += 1
                else:
                    row = state * c.STATE_COLUMNS
                    kind = states[row + c.KIND]
                    code = shown = c.ENDED_CODE
                    arrival = 0
                    if kind == c.PEEK:
                        at = first + states[row + c.PORT]
                        status, shown = look(inputs[at], channels, slots)
                        code = shown
                        if status != c.READY:
                            stages[stage + c.WAIT] = inputs[at]
                            note_outward(inputs[at], status, channels, control)
                        elif states[row + c.CARRIES] and code >= 0:
                            code &= ~c.NUMBER_MASK
                    elif kind == c.POP:
                        arrival = earliest(first, stages[stage + c.MARKS], marks)
                        code = marks[(first + arrival) * 2 + 1]
                    elif kind == c.END:
                        finish(s, now, stages, channels, outputs, ready, control)
                        status = c.DRAINING
                    else:
                        status = c.STUCK
                    if status == c.READY:
                        number = look_up(state, code, states, known)
                        if number < 0:
                            control[c.ASKED_STATE] = state
                            control[c.ASKED_CODE] = code
                            reason = c.ASKS
                        else:
                            reason = write(s, number, journal, control)
                        # What is asked for, or cannot be noted, has not been seen.
                        if reason == c.AT_REST:
                            if kind == c.PEEK:
                                at = first + states[row + c.PORT]
                                now = see(inputs[at], now, channels, slots)
                                if shown >= 0:
                                    seen[at] = shown
                            elif kind == c.POP:
                                if stages[stage + c.MARKS] > 1:
                                    stages[stage + c.CHOSE] = 1
                                stages[stage + c.ARRIVAL] = marks[(first + arrival) * 2]
                                forget(first, stages[stage + c.MARKS], arrival, marks)
                                stages[stage + c.MARKS] -= 1
                            transition = number * c.TRANSITION_COLUMNS
                            stages[stage + c.BEGAN] = transitions[transition + c.START]
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
        outward = (
            control[c.TOUCHED] + control[c.SUBMITTED] + control[c.OUTWARD] + control[c.TOO_FAR]
        )
        if outward or next_cycle(links) > horizon:
            return c.AT_REST, 0
        budget -= 1
        if budget < 0:
            return c.TIRED, 0
        cycle = advance_links(links)
        arrive(cycle, channels, slots, stages, ready, control, ends, links)
