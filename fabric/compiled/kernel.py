"""The compiled loop: stages go on, one after the other, until each of them waits.

It follows the rules of ``fabric.engine.channel`` and ``fabric.engine.ports`` to the cycle, the
credit and the counter; what an operator does is in the tables. See ``columns`` for the arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from fabric.compiled import columns as c

__all__ = ["go_on"]

Array: TypeAlias = NDArray[np.int64]


def _compiled(signature: str) -> Callable[[Callable[..., Any]], Any]:
    def compiled(function: Callable[..., Any]) -> Any:  # numba's dispatchers have no types
        try:
            return numba.njit(signature, cache=True)(function)
        except RuntimeError:
            # Neither the installation nor the home folder can be written: compile in every run.
            return numba.njit(signature)(function)

    return compiled


_2D: Final = "int64[:, ::1]"
_1D: Final = "int64[::1]"


@_compiled(
    f"int64({_2D}, {_2D}, {_2D}, {_2D}, {_1D}, {_1D}, {_1D}, {_1D}, {_2D}, {_2D}, {_2D}, {_2D}, "
    f"{_2D}, {_1D}, {_1D}, {_2D}, {_1D})"
)
def go_on(
    stages: Array,
    channels: Array,
    slots: Array,
    dimensions: Array,
    inputs: Array,
    outputs: Array,
    seen: Array,
    stamps: Array,
    marks: Array,
    states: Array,
    table: Array,
    transitions: Array,
    operations: Array,
    empties: Array,
    ready: Array,
    ledger: Array,
    control: Array,
) -> int:
    """Let every stage that is ready go on until it waits.

    Args:
        stages, channels, slots, dimensions, states, table, transitions, operations: see ``columns``.
        inputs, outputs: channel of each port; of stage s, from its FIRST_INPUT, FIRST_OUTPUT on.
        seen: by input, the code of the element that was looked at last.
        stamps: clock readings of each stage, from its FIRST_STAMP on.
        marks: by input, arrivals that were marked: cycle and port, oldest mark first.
        table: hashed by state and code: state + 1, code, transition.
        empties: by kind of value, which dimension a bare stop stands for.
        ready: a ring of the stages that can go on.
        ledger: filled with the changes of on-chip use: cycle and bytes.
        control: see ``columns``.

    Returns:
        AT_REST where every stage waits; ASKS where a transition is not known; TIRED after about
        BUDGET operations; GROWS where channel WHO has no slot left below its depth; RECORDS where
        the ledger is full; FAILS where something is wrong.
    """
    budget = control[c.BUDGET]
    pace = control[c.PACE]
    ready_mask = ready.size - 1
    table_mask = table.shape[0] - 1
    while control[c.READY_COUNT] > 0:
        s = ready[control[c.READY_HEAD]]
        control[c.WHO] = s
        now = stages[s, c.NOW]
        state = stages[s, c.STATE]
        pc = stages[s, c.PC]
        end = stages[s, c.PC_END]
        first_input = stages[s, c.FIRST_INPUT]
        first_output = stages[s, c.FIRST_OUTPUT]
        status = c.READY
        reason = c.AT_REST
        drains = stages[s, c.STATUS] == c.DRAINING
        while not drains:
            if budget <= 0:
                reason = c.TIRED
                break
            if pc < end:
                budget -= 1
                what = operations[pc, c.WHAT]
                if what == c.TAKE:
                    ch = inputs[first_input + operations[pc, c.AT]]
                    taken = channels[ch, c.TAKEN]
                    slot = channels[ch, c.BASE] + (taken & channels[ch, c.MASK])
                    visible = slots[slot, c.VISIBLE]
                    before = taken - channels[ch, c.PEAK]
                    if before >= 0:
                        at = channels[ch, c.BASE] + (before & channels[ch, c.MASK])
                        if slots[at, c.USABLE] + channels[ch, c.FORWARD] > visible:
                            channels[ch, c.PEAK] += 1
                    usable = now + channels[ch, c.BACKWARD]
                    slots[slot, c.USABLE] = usable
                    channels[ch, c.LAST_CREDIT] = usable
                    channels[ch, c.TAKEN] = taken + 1
                    other = channels[ch, c.PRODUCER]
                    if other < 0:
                        control[c.TOUCHED] = 1
                    elif stages[other, c.STATUS] == c.NO_CREDIT and stages[other, c.WAIT] == ch:
                        stages[other, c.STATUS] = c.READY
                        ready[(control[c.READY_HEAD] + control[c.READY_COUNT]) & ready_mask] = other
                        control[c.READY_COUNT] += 1
                elif what == c.CHARGE:
                    stages[s, c.BUSY] += operations[pc, c.AMOUNT]
                    now += operations[pc, c.AMOUNT]
                elif what == c.COMPUTE:
                    stages[s, c.FLOPS] += operations[pc, c.AMOUNT]
                elif what == c.NOTE:
                    stamps[stages[s, c.FIRST_STAMP] + operations[pc, c.STAMP]] = now
                elif what == c.MARK:
                    port = operations[pc, c.AT]
                    ch = inputs[first_input + port]
                    at = first_input + stages[s, c.MARKS]
                    slot = channels[ch, c.BASE] + (channels[ch, c.TAKEN] & channels[ch, c.MASK])
                    marks[at, 0] = slots[slot, c.VISIBLE]
                    marks[at, 1] = port
                    stages[s, c.MARKS] += 1
                elif what == c.UNTIL:
                    cycles = stages[s, c.ARRIVAL] + operations[pc, c.AMOUNT] - now
                    if cycles > 0:
                        stages[s, c.BUSY] += cycles
                        now += cycles
                elif what == c.HOLD:
                    at = control[c.LEDGER]
                    if at == ledger.shape[0]:
                        reason = c.RECORDS
                        break
                    ledger[at, 0] = now
                    ledger[at, 1] = operations[pc, c.AMOUNT]
                    control[c.LEDGER] = at + 1
                elif what == c.CHECK:
                    code = seen[first_input + operations[pc, c.AT]] & c.NUMBER_MASK
                    if code >> c.NUMBER_SHIFT >= operations[pc, c.AMOUNT]:
                        return c.FAILS
                elif what == c.BURST:
                    stages[s, c.REQUESTS] = operations[pc, c.AMOUNT]
                    pc += 1
                    control[c.SUBMITTED] += 1
                    status = c.OFF_CHIP
                    break
                else:
                    ch = outputs[first_output + operations[pc, c.AT]]
                    if ch >= 0:
                        number = channels[ch, c.SENT]
                        slot = channels[ch, c.BASE] + (number & channels[ch, c.MASK])
                        asked = now
                        if what != c.PUT:
                            number += channels[ch, c.RESERVED]
                            depth = channels[ch, c.DEPTH]
                            if number - channels[ch, c.TAKEN] >= depth:
                                status = c.NO_CREDIT
                                stages[s, c.WAIT] = ch
                                break
                            if now >= pace:
                                status = c.PACED
                                break
                            if number > channels[ch, c.MASK] and channels[ch, c.MASK] + 1 < depth:
                                control[c.WHO] = ch
                                reason = c.GROWS
                                break
                            if number >= depth:
                                at = channels[ch, c.BASE] + (
                                    (number - depth) & channels[ch, c.MASK]
                                )
                                waited = slots[at, c.USABLE] - now
                                if waited > 0:
                                    returning = min(waited, channels[ch, c.BACKWARD])
                                    channels[ch, c.FULL] += waited - returning
                                    channels[ch, c.CREDIT] += returning
                                    now += waited
                        if what == c.RESERVE:
                            channels[ch, c.RESERVED] += 1
                        else:
                            if what == c.PUT:
                                channels[ch, c.RESERVED] -= 1
                            earliest = now + channels[ch, c.FORWARD]
                            if what == c.SEND_AT:
                                if operations[pc, c.STAMP] >= 0:
                                    at = stages[s, c.FIRST_STAMP] + operations[pc, c.STAMP]
                                    asked = stamps[at]
                                visible = max(asked + operations[pc, c.AMOUNT], earliest)
                            else:
                                visible = earliest
                            code = operations[pc, c.SENDS]
                            if operations[pc, c.FROM] >= 0:
                                code |= seen[first_input + operations[pc, c.FROM]] & c.NUMBER_MASK
                            slots[slot, c.VISIBLE] = visible
                            slots[slot, c.CODE] = code
                            channels[ch, c.SENT] += 1
                            if code & c.BARE:
                                channels[ch, c.BARE_SENT] += 1
                            first = channels[ch, c.COUNTED]
                            if first >= 0:
                                empty = 0
                                if code & c.BARE:
                                    empty = empties[code >> c.KIND_SHIFT]
                                else:
                                    dimensions[first, c.SIZE] += 1
                                level = min(code & (c.BARE - 1), channels[ch, c.RANK])
                                for at in range(level):
                                    size = dimensions[first + at, c.SIZE]
                                    if at >= empty or size:
                                        dimensions[first + at, c.SIZE] = 0
                                        dimensions[first + at, c.GROUPS] += 1
                                        dimensions[first + at, c.LEAST] = min(
                                            dimensions[first + at, c.LEAST], size
                                        )
                                        dimensions[first + at, c.MOST] = max(
                                            dimensions[first + at, c.MOST], size
                                        )
                                        claimed = dimensions[first + at, c.CLAIMED]
                                        if claimed >= 0 and size != claimed:
                                            return c.FAILS
                                        dimensions[first + at + 1, c.SIZE] += 1
                            other = channels[ch, c.CONSUMER]
                            if other < 0:
                                control[c.TOUCHED] = 1
                            else:
                                its = stages[other, c.STATUS]
                                if its == c.DRAINING or (
                                    its == c.NO_ELEMENT and stages[other, c.WAIT] == ch
                                ):
                                    if its == c.NO_ELEMENT:
                                        stages[other, c.STATUS] = c.READY
                                    if its == c.NO_ELEMENT or stages[other, c.WAIT] >= 0:
                                        stages[other, c.WAIT] = -1
                                        tail = control[c.READY_HEAD] + control[c.READY_COUNT]
                                        ready[tail & ready_mask] = other
                                        control[c.READY_COUNT] += 1
                pc += 1
                continue
            kind = states[state, c.KIND]
            if kind == c.PEEK:
                port = states[state, c.PORT]
                ch = inputs[first_input + port]
                if channels[ch, c.SENT] == channels[ch, c.TAKEN]:
                    closed = channels[ch, c.CLOSED]
                    if closed < 0:
                        status = c.NO_ELEMENT
                        stages[s, c.WAIT] = ch
                        break
                    if channels[ch, c.ENDED] == 0:
                        channels[ch, c.ENDED] = 1
                        if closed > now:
                            channels[ch, c.EMPTY] += closed - now
                            now = closed
                    code = c.ENDED_CODE
                else:
                    slot = channels[ch, c.BASE] + (channels[ch, c.TAKEN] & channels[ch, c.MASK])
                    visible = slots[slot, c.VISIBLE]
                    if visible > now:
                        channels[ch, c.EMPTY] += visible - now
                        now = visible
                    code = slots[slot, c.CODE]
                    seen[first_input + port] = code
                    if states[state, c.CARRIES]:
                        code &= ~c.NUMBER_MASK
            elif kind == c.POP:
                count = stages[s, c.MARKS]
                best = 0
                for other in range(1, count):
                    if marks[first_input + other, 0] < marks[first_input + best, 0]:
                        best = other
                stages[s, c.ARRIVAL] = marks[first_input + best, 0]
                code = marks[first_input + best, 1]
                for other in range(best, count - 1):
                    marks[first_input + other, 0] = marks[first_input + other + 1, 0]
                    marks[first_input + other, 1] = marks[first_input + other + 1, 1]
                stages[s, c.MARKS] = count - 1
            elif kind == c.END:
                for port in range(stages[s, c.OUTPUTS]):
                    ch = outputs[first_output + port]
                    if ch >= 0:
                        channels[ch, c.CLOSED] = now
                        other = channels[ch, c.CONSUMER]
                        if other < 0:
                            control[c.TOUCHED] = 1
                        else:
                            its = stages[other, c.STATUS]
                            if (its == c.DRAINING and stages[other, c.WAIT] >= 0) or (
                                its == c.NO_ELEMENT and stages[other, c.WAIT] == ch
                            ):
                                if its == c.NO_ELEMENT:
                                    stages[other, c.STATUS] = c.READY
                                stages[other, c.WAIT] = -1
                                tail = control[c.READY_HEAD] + control[c.READY_COUNT]
                                ready[tail & ready_mask] = other
                                control[c.READY_COUNT] += 1
                stages[s, c.DRAIN] = now
                drains = True
                break
            else:
                status = c.STUCK
                break
            if states[state, c.LAST_CODE] == code and states[state, c.LAST_TRANSITION] >= 0:
                transition = states[state, c.LAST_TRANSITION]
            else:
                at = ((state * 0x9E3779B1) ^ (code * 0x85EBCA77) ^ (code >> 29)) & table_mask
                transition = -1
                while table[at, 0] != 0:
                    if table[at, 0] == state + 1 and table[at, 1] == code:
                        transition = table[at, 2]
                        break
                    at = (at + 1) & table_mask
                if transition < 0:
                    control[c.ASKED_STATE] = state
                    control[c.ASKED_CODE] = code
                    if kind == c.POP:
                        # It is asked again: the mark goes back to the front.
                        for other in range(stages[s, c.MARKS], 0, -1):
                            marks[first_input + other, 0] = marks[first_input + other - 1, 0]
                            marks[first_input + other, 1] = marks[first_input + other - 1, 1]
                        marks[first_input, 0] = stages[s, c.ARRIVAL]
                        marks[first_input, 1] = code
                        stages[s, c.MARKS] += 1
                    reason = c.ASKS
                    break
                states[state, c.LAST_CODE] = code
                states[state, c.LAST_TRANSITION] = transition
            pc = transitions[transition, c.START]
            end = transitions[transition, c.STOP]
            state = transitions[transition, c.NEXT]
        if drains:
            cycle = stages[s, c.DRAIN]
            going_on = False
            for port in range(stages[s, c.INPUTS]):
                ch = inputs[first_input + port]
                while channels[ch, c.TAKEN] < channels[ch, c.SENT]:
                    taken = channels[ch, c.TAKEN]
                    slot = channels[ch, c.BASE] + (taken & channels[ch, c.MASK])
                    slots[slot, c.USABLE] = (
                        max(slots[slot, c.VISIBLE], cycle) + channels[ch, c.BACKWARD]
                    )
                    channels[ch, c.TAKEN] = taken + 1
                    if slots[slot, c.CODE] & c.BARE == 0:
                        channels[ch, c.LEFT_OVER] += 1
                    other = channels[ch, c.PRODUCER]
                    if other < 0:
                        control[c.TOUCHED] = 1
                    elif stages[other, c.STATUS] == c.NO_CREDIT and stages[other, c.WAIT] == ch:
                        stages[other, c.STATUS] = c.READY
                        ready[(control[c.READY_HEAD] + control[c.READY_COUNT]) & ready_mask] = other
                        control[c.READY_COUNT] += 1
                if channels[ch, c.CLOSED] < 0:
                    going_on = True
            status = c.DRAINING
            if going_on:
                stages[s, c.WAIT] = 0
            else:
                stages[s, c.WAIT] = -1
                for port in range(stages[s, c.INPUTS]):
                    ch = inputs[first_input + port]
                    if channels[ch, c.ENDED] == 0:
                        channels[ch, c.ENDED] = 1
                        if channels[ch, c.CLOSED] > now:
                            channels[ch, c.EMPTY] += channels[ch, c.CLOSED] - now
                            now = channels[ch, c.CLOSED]
                status = c.FINISHED
                control[c.LIVE] -= 1
        stages[s, c.NOW] = now
        stages[s, c.STATE] = state
        stages[s, c.PC] = pc
        stages[s, c.PC_END] = end
        if reason != c.AT_REST:
            return reason
        stages[s, c.STATUS] = status
        control[c.READY_HEAD] = (control[c.READY_HEAD] + 1) & ready_mask
        control[c.READY_COUNT] -= 1
    return c.AT_REST
