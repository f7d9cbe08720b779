"""The compiled loop: stages run one after the other, until every stage waits.

Cycles, credits and counters are the same as in a run with tasks.
"""

from __future__ import annotations

from functools import partial

from fabric.timing.compiled import kernel_channels
from fabric.timing.compiled import world as c
from fabric.timing.compiled.kernel_channels import (
    answer,
    arrive,
    close,
    drop,
    head_shown,
    is_full,
    is_open,
    lacks,
    look,
    see,
    see_end,
    send,
    take,
    wake_reader,
    wake_writer,
    write,
)
from fabric.timing.compiled.world import ChannelRow, Operation, StageRow, World
from fabric.timing.engine import channel_rule, log
from fabric.timing.engine.machine_code import MachineCode
from fabric.timing.memories.flat import MOST_REQUESTS, advance_flat, begin
from fabric.timing.network import fair_share
from fabric.timing.network.fair_share import advance_links, next_cycle


@partial(MachineCode, uses=(channel_rule, kernel_channels, fair_share, log))
def run_loop(w: World, pace: int, budget: int) -> tuple[int, int]:
    """Run every ready stage until it waits.

    A stage with a clock at or after ``pace`` does not spend credits. Links and memory advance while
    all stages wait, up to the horizon in ``control``. The loop returns after about ``budget``
    operations and requests.

    Returns:
        The reason to return (see ``world.AT_REST``), and the number of a stage. For SLOTS_FULL and
        QUEUE_FULL, it is the number of a channel.
    """
    control = w.control
    while True:
        if (control.arrives and not arrive(w)) or lacks(w, w.memory.clients.size):
            return c.BUFFER_FULL, 0
        while control.ready_count > 0:
            number = w.ready[control.ready_head]
            stage = w.stages[number]
            status, reason, budget = run_stage(w, number, stage, pace, budget)
            if reason in (c.SLOTS_FULL, c.QUEUE_FULL):
                port = w.operations[stage.pc].port
                return reason, w.outputs[stage.first_output + port]
            if reason != c.AT_REST:
                return reason, number
            stage.status = status
            if status == c.DRAINING and not drain(w, stage):
                return c.BUFFER_FULL, number
            control.ready_head = (control.ready_head + 1) & (w.ready.size - 1)
            control.ready_count -= 1
        outward = control.touched + control.submitted + control.answered
        outward += control.outward + control.too_far
        if outward or next_event(w) > control.horizon_cycle:
            control.horizon_cycle = c.OUTSIDE
            return c.AT_REST, 0
        budget = advance_to_event(w, budget)
        if budget < 0:
            return c.BUDGET_SPENT, 0


def next_event(w: World) -> int:
    """Return a cycle before which nothing arrives over links and no burst is seen complete."""
    progress = w.memory.progress
    return min(next_cycle(w.links), progress.silent_until, progress.seen_cycle)


def advance_to_event(w: World, budget: int) -> int:
    """Advance to the next arrival or answer; return the budget left, negative if it ran out."""
    control, progress = w.control, w.memory.progress
    arrival = next_cycle(w.links)
    if next_event(w) < arrival:
        budget = advance_flat(w.memory, min(arrival, control.horizon_cycle), budget)
        if budget < 0 or progress.finished == 0:
            return budget
        answer(w)
    else:
        control.arrival_cycle = advance_links(w.links)
        control.arrives = 1
    control.horizon_cycle = min(control.horizon_cycle, control.quiet_cycle)
    return budget - 1


def run_stage(
    w: World, number: int, stage: StageRow, pace: int, budget: int
) -> tuple[int, int, int]:
    """Run a stage; return its status, the reason to return or AT_REST, and the budget left."""
    now, status, reason = stage.now, stage.status, c.AT_REST
    while status == c.READY and reason == c.AT_REST:
        budget -= 1
        if budget < 0:
            reason = c.BUDGET_SPENT
        elif is_full(w):
            reason = c.BUFFER_FULL
        elif now > c.FAR or stage.flops > c.FAR:
            reason = c.UNFIT
        elif stage.pc < stage.end:
            operation = w.operations[stage.pc]
            now, status, reason = operate(w, number, stage, operation, now, pace)
            if reason == c.AT_REST and (status == c.READY or status >= c.OFF_CHIP):
                stage.pc += 1
        else:
            now, status, reason = turn(w, stage, now)
    stage.now = now
    return status, reason, budget


def operate(
    w: World, number: int, stage: StageRow, operation: Operation, now: int, pace: int
) -> tuple[int, int, int]:
    """Do an operation; return the clock, the status, and the reason to return or AT_REST."""
    what, port, amount = operation.what, operation.port, operation.amount
    if what == c.TAKE:
        ch = w.inputs[stage.first_input + port].channel
        take(w, w.channels[ch], now)
        waited = stage.waited if amount == c.AT_ONCE else 0
        write(w, stage.unit, log.TAKE, w.channels[ch].number, 0, 0, now, waited)
        wake_writer(w, ch)
    elif what <= c.LAST_WORK:
        now = work(w, number, stage, operation, now)
    elif what <= c.LAST_SEND:
        return send_on(w, number, stage, operation, now, pace)
    elif what == c.REPEAT:
        stage.times += 1
        if stage.times < amount:
            stage.pc -= port + 1
        else:
            stage.times = 0
    elif what == c.MARK:
        mark(w, stage, port)
    elif what == c.CHECK:
        return now, c.READY, c.AT_REST if number_in(w, stage, port) < amount else c.UNFIT
    elif what == c.HOLD:
        return now, c.READY, hold(w, now, amount)
    else:
        return now, *submit(w, stage, operation, now)
    return now, c.READY, c.AT_REST


def hold(w: World, now: int, size_bytes: int) -> int:
    """Note a change of on-chip use; return the reason to return or AT_REST."""
    if w.control.changes == w.ledger.size:
        return c.BUFFER_FULL
    change = w.ledger[w.control.changes]
    change.cycle = now
    change.size_bytes = size_bytes
    w.control.changes += 1
    return c.AT_REST


def submit(w: World, stage: StageRow, operation: Operation, now: int) -> tuple[int, int]:
    """Begin a burst; return the status, and the reason to return or AT_REST."""
    if stage.client < 0:
        w.control.submitted = 1
        return c.SUBMITS, c.AT_REST
    size = w.bursts[operation.amount]
    requests = size.rows * -(-size.row_bytes // w.memory.progress.request_bytes)
    if requests > MOST_REQUESTS:
        return c.OFF_CHIP, c.UNFIT
    stage.off_chip_bytes += size.rows * size.row_bytes
    begin(w.memory, stage.client, now, requests)
    return c.OFF_CHIP, c.AT_REST


def work(w: World, number: int, stage: StageRow, operation: Operation, now: int) -> int:
    """Do an operation without a channel; return the clock."""
    what, amount = operation.what, operation.amount
    if what == c.COMPUTE:
        stage.flops += amount
        return now
    if what == c.NOTE:
        w.stamps[number * c.STAMPS + operation.stamp] = now
        write(w, stage.unit, log.NOTE, c.OUTSIDE, 0, operation.stamp, now, 0)
        return now
    charged = amount if what == c.CHARGE else max(0, stage.arrival + amount - now)
    stage.busy += charged
    if what == c.UNTIL:
        write(w, stage.unit, log.UNTIL, c.OUTSIDE, amount, 0, now + charged, charged)
    return now + charged


def send_on(
    w: World, number: int, stage: StageRow, operation: Operation, now: int, pace: int
) -> tuple[int, int, int]:
    """Reserve, put or send on an output, if it is read; see ``operate``."""
    ch = w.outputs[stage.first_output + operation.port]
    if ch < 0:
        return now, c.READY, c.AT_REST
    what, code, requested, before = operation.what, operation.sends, 0, now
    if operation.source >= 0:
        code |= w.inputs[stage.first_input + operation.source].seen & c.NUMBER_MASK
    if what == c.SEND_AT:
        requested = w.stamps[number * c.STAMPS + operation.stamp] + operation.amount
    now, status, reason = send(w, w.channels[ch], what, code, now, pace, requested)
    if status != c.READY:
        wait_for(w, stage, ch, status)
    elif reason == c.AT_REST:
        log_send(w, stage, operation, code, requested, before, now)
        if what != c.RESERVE:
            wake_reader(w, ch)
    return now, status, reason


def log_send(
    w: World, stage: StageRow, op: Operation, code: int, requested: int, before: int, now: int
) -> None:
    unit, what = stage.unit, op.what
    ch = w.channels[w.outputs[stage.first_output + op.port]].number
    if what == c.RESERVE:
        write(w, unit, log.RESERVE, ch, 0, 0, now, now - before)
        return
    if what == c.SEND_AT:
        write(w, unit, log.LATE, ch, requested, op.stamp, before, 0)
    size_bytes = w.kinds[code >> c.KIND_SHIFT].size_bytes
    level = code & (c.BARE - 1)
    stop = ~level if code & c.BARE else level
    kind = log.PUT if what == c.PUT else log.SEND
    write(w, unit, kind, ch, size_bytes, stop, now, now - before)


def wait_for(w: World, stage: StageRow, ch: int, status: int) -> None:
    """Note the channel that a stage waits for, and whether the stage waits for a task."""
    stage.wait = ch
    channel = w.channels[ch]
    if status == c.PACED:
        w.control.too_far = 1
    elif (status == c.NO_CREDIT and channel.consumer < 0) or (
        status == c.NO_ELEMENT and channel.producer < 0
    ):
        w.control.outward = 1


def number_in(w: World, stage: StageRow, port: int) -> int:
    """Return the number in the tile that an input has shown last."""
    return (w.inputs[stage.first_input + port].seen & c.NUMBER_MASK) >> c.NUMBER_SHIFT


def mark(w: World, stage: StageRow, port: int) -> None:
    """Note the arrival of the next element in ``port``."""
    channel = w.channels[w.inputs[stage.first_input + port].channel]
    noted = w.inputs[stage.first_input + stage.marks]
    noted.mark_cycle = head_shown(w, channel)
    noted.mark_port = port
    stage.marks += 1


def earliest(w: World, stage: StageRow) -> int:
    """Return the row of the earliest arrival; among equal cycles, the one noted first."""
    best = first = stage.first_input
    for other in range(first + 1, first + stage.marks):
        if w.inputs[other].mark_cycle < w.inputs[best].mark_cycle:
            best = other
    return best


def pop(w: World, stage: StageRow, arrival: int, now: int) -> None:
    if stage.marks > 1:
        write(w, stage.unit, log.CHOICE, c.OUTSIDE, 0, 0, now, 0)
    channel = w.channels[w.inputs[stage.first_input + w.inputs[arrival].mark_port].channel]
    write(w, stage.unit, log.ARRIVAL, channel.number, channel.taken, 0, now, 0)
    stage.arrival = w.inputs[arrival].mark_cycle
    stage.marks -= 1
    for at in range(arrival, stage.first_input + stage.marks):
        w.inputs[at].mark_cycle = w.inputs[at + 1].mark_cycle
        w.inputs[at].mark_port = w.inputs[at + 1].mark_port


def turn(w: World, stage: StageRow, now: int) -> tuple[int, int, int]:
    """Take the next transition; see ``operate``."""
    state, control = w.states[stage.state], w.control
    if state.kind == c.END:
        finish(w, stage, now)
        return now, c.DRAINING, c.AT_REST
    if state.kind == c.STARVE:
        return now, c.STUCK, c.AT_REST
    at, shown = stage.first_input + state.port, c.ENDED_CODE
    if state.kind == c.POP:
        at = earliest(w, stage)
        code = w.inputs[at].mark_port
    else:
        ch = w.inputs[at].channel
        status, shown = look(w, w.channels[ch])
        if status != c.READY:
            wait_for(w, stage, ch, status)
            return now, status, c.AT_REST
        code = shown & ~c.NUMBER_MASK if state.carries and shown >= 0 else shown
    number = look_up(w, stage.state, code)
    if number < 0:
        control.unknown_state = stage.state
        control.unknown_code = code
        return now, c.READY, c.UNKNOWN_CODE
    transition = w.transitions[number]
    stage.pc = transition.start
    stage.end = transition.stop
    stage.state = transition.next
    # The element counts as seen only now: above, the function may return and be called again.
    if state.kind == c.POP:
        pop(w, stage, at, now)
    elif shown >= 0:
        w.inputs[at].seen = shown
        now = see_next(w, stage, w.channels[w.inputs[at].channel], now)
    else:
        now = see_end(w, stage, w.channels[w.inputs[at].channel], now)
    return now, c.READY, c.AT_REST


def see_next(w: World, stage: StageRow, channel: ChannelRow, now: int) -> int:
    """See the next element, which the next operation may dequeue; return the clock."""
    shown = see(w, stage, channel, now)
    stage.waited = shown - now
    if stage.pc < stage.end:
        operation = w.operations[stage.pc]
        if operation.what == c.TAKE and operation.amount == c.AT_ONCE:
            return shown
    if channel.seen == 0:
        channel.seen = 1
        write(w, stage.unit, log.SEE, channel.number, 0, 0, shown, shown - now)
    return shown


def entry_of(state: int, code: int, entries: int) -> int:
    """Return the hash index of ``code`` in ``state``; ``entries`` is a power of two."""
    return ((state * c.STATE_FACTOR) ^ (code * c.CODE_FACTOR) ^ (code >> c.CODE_SHIFT)) & (
        entries - 1
    )


def look_up(w: World, number: int, code: int) -> int:
    """Return the transition for ``code`` in state ``number``; OUTSIDE if unknown."""
    state = w.states[number]
    if state.last_code == code and state.last_transition >= 0:
        return state.last_transition
    at = entry_of(number, code, w.known.size)
    while w.known[at].follower:
        entry = w.known[at]
        if entry.follower == number + 1 and entry.code == code:
            state.last_code = code
            state.last_transition = entry.transition
            return entry.transition
        at = (at + 1) & (w.known.size - 1)
    return c.OUTSIDE


def drain(w: World, stage: StageRow) -> bool:
    """Discard the rest of the inputs of an ended operator; False if the log is full."""
    first, end = stage.first_input, stage.first_input + stage.inputs
    more = False
    for at in range(first, end):
        ch = w.inputs[at].channel
        channel = w.channels[ch]
        while channel.taken < channel.arrived:
            if is_full(w):
                return False
            drop(w, stage.unit, channel, stage.drain)
            wake_writer(w, ch)
        more = more or is_open(channel)
        if channel.producer < 0:
            w.control.outward = 1
    stage.wait = 0
    if not more:
        for at in range(first, end):
            if is_full(w):
                return False
            stage.now = see_end(w, stage, w.channels[w.inputs[at].channel], stage.now)
        stage.status = c.FINISHED
        stage.wait = c.OUTSIDE
        w.control.live -= 1
    return True


def finish(w: World, stage: StageRow, now: int) -> None:
    """End the outputs of an ended operator."""
    for at in range(stage.first_output, stage.first_output + stage.outputs):
        ch = w.outputs[at]
        if ch >= 0:
            close(stage, w.channels[ch], now)
            wake_reader(w, ch)
    stage.drain = now
    write(w, stage.unit, log.FINISH, c.OUTSIDE, 0, 0, now, 0)
