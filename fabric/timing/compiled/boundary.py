"""Channels between the compiled region and tasks, and the region's counters.

Elements, ends and credits cross in both directions. Counters of units and channels are copied from
the arrays of the loop.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fabric.graph.values.value import Element
from fabric.messages.telling.causes import Operation
from fabric.timing.compiled import columns as c
from fabric.timing.compiled.arrays import Arrays, Joint, Stage
from fabric.timing.compiled.kernel_channels import goes_on
from fabric.timing.engine.unit import Wait


class Boundary:
    """Channels between stages and tasks.

    Elements are fetched once available; otherwise the stage's unit is registered as waiting, so
    that the channel wakes it.
    """

    def __init__(self, arrays: Arrays) -> None:
        self._arrays: Final = arrays
        channels = arrays.channels
        self._entrances = np.flatnonzero(channels[:, c.PRODUCER] < 0)
        self._exits = np.flatnonzero(channels[:, c.CONSUMER] < 0)
        self._into = channels[self._entrances, c.CONSUMER].copy()
        self._out_of = channels[self._exits, c.PRODUCER].copy()
        self._taken = np.zeros(len(self._entrances), np.int64)
        self._sent = np.zeros(len(self._exits), np.int64)
        self._closed = np.full(len(self._exits), c.OUTSIDE)
        self._armed = np.zeros(len(channels), np.bool_)
        self._shown = [0] * len(channels)

    def is_there(self, stage: int) -> bool:
        """Fetch what a woken stage waited for; return whether there is any."""
        arrays = self._arrays
        row = arrays.rows[stage]
        status, waits = row.item(c.STATUS), row.item(c.WAIT)
        if status == c.DRAINING:
            for channel in arrays.stages[stage].inputs:
                number = arrays.number[channel]
                if arrays.joints[number].producer < 0:
                    self._fetch(number)
            return bool(waits >= 0)
        if status == c.NO_ELEMENT:
            return self._fetch(waits)
        return status != c.NO_CREDIT or self._fetch_credits(waits)

    def _fetch(self, number: int) -> bool:
        """Fetch elements of a channel from outside; return whether there is one, or the end."""
        arrays = self._arrays
        self._armed[number] = False
        channel, row = arrays.joints[number].channel, arrays.channels[number]
        self._hide(number)
        queue = channel.queue
        while row[c.MASK] + 1 < row[c.DEPTH] and row[c.SENT] + len(queue) > row[c.MASK] + 1:
            arrays.grow(number)
        base, mask = arrays.place(number)
        sent = row.item(c.SENT)
        slots = arrays.slots.array
        for visible, element in queue:
            code = arrays.codes.code(element)
            slots[base + (sent & mask), : c.USABLE] = visible, code
            sent += 1
        # What cannot be written down stays where it is, with all that has come with it.
        channel.fetch()
        if channel.way is not None:
            indices = base + (np.arange(row[c.SENT], sent) & mask)
            slots[indices, c.SET_OUT :] = np.array(channel.way.arrived).reshape(-1, 2)
            channel.way.arrived.clear()
        row[c.SENT] = row[c.ARRIVED] = sent
        if channel.closed_cycle is not None:
            row[c.CLOSED] = channel.closed_cycle
            return True
        return bool(sent > row[c.TAKEN])

    def _fetch_credits(self, number: int) -> bool:
        """Fetch credits of a channel to outside; return whether there were any."""
        arrays = self._arrays
        self._armed[number] = False
        channel, row = arrays.joints[number].channel, arrays.channels[number]
        base, mask = arrays.place(number)
        taken = row.item(c.TAKEN)
        for usable in channel.returned_cycles:
            arrays.slots.array[base + (taken & mask), c.USABLE] = usable
            taken += 1
        channel.collect()
        found = bool(taken > row[c.TAKEN])
        row[c.TAKEN] = taken
        return found

    def emit(self) -> None:
        """Pass elements and credits to the units outside."""
        arrays = self._arrays
        if not arrays.control[c.TOUCHED]:
            return
        arrays.control[c.TOUCHED] = 0
        rows, slots = arrays.channels, arrays.slots.array
        self._arrive()
        exits = rows.take(self._exits, 0)
        sent, closed = exits[:, c.ARRIVED], exits[:, c.CLOSED]
        # Of what is under way the consumer knows nothing, and so not that it is the last.
        closed = np.where(sent == exits[:, c.SENT], closed, c.OUTSIDE)
        for at in ((sent != self._sent) | (closed != self._closed)).nonzero()[0].tolist():
            number, end = int(self._exits[at]), int(closed[at])
            elements = self._elements(number, int(self._sent[at]), int(sent[at]))
            channel = arrays.joints[number].channel
            if channel.way is not None:
                late = self._late(number, int(self._sent[at]), int(sent[at]))
                channel.way.arrived.extend(late)
            channel.hand_over(elements, None if end < 0 else end)
        self._sent, self._closed = sent, closed
        taken = rows.take(self._entrances, 0)[:, c.TAKEN]
        for at in (taken != self._taken).nonzero()[0].tolist():
            number = int(self._entrances[at])
            channel, base, mask = arrays.joints[number].channel, *arrays.place(number)
            indices = base + (np.arange(self._taken[at], taken[at]) & mask)
            channel.give_back(slots[indices, c.USABLE].tolist())
        self._taken = taken

    def _arrive(self) -> None:
        network = self._arrays.network
        if network is not None:
            cycle = self._arrays.control.item(c.ARRIVAL_CYCLE)
            network.hand_over(self._arrays.outer_flows, cycle)

    def arm(self) -> bool:
        """Register waiting stages at their channels; return whether something is available."""
        arrays = self._arrays
        rows, found = arrays.rows, False
        if not arrays.control[c.OUTWARD]:
            return False
        arrays.control[c.OUTWARD] = 0
        into = rows.take(self._into, 0)
        status = into[:, c.STATUS]
        waits = (status == c.NO_ELEMENT) & (into[:, c.WAIT] == self._entrances)
        waits |= status == c.DRAINING
        waits &= ~self._armed.take(self._entrances)
        for at in waits.nonzero()[0].tolist():
            number, stage = int(self._entrances[at]), int(self._into[at])
            channel = arrays.joints[number].channel
            before = int(arrays.channels[number, c.CLOSED])
            if len(channel.queue) > self._shown[number] or (
                before < 0 and channel.closed_cycle is not None
            ):
                self._fetch(number)
                found = True
                if rows[stage, c.WAIT] >= 0:
                    arrays.wake(stage)
            elif before < 0:
                self._armed[number] = True
                channel.reader = channel.consumer
        out_of = rows.take(self._out_of, 0)
        waits = (out_of[:, c.STATUS] == c.NO_CREDIT) & (out_of[:, c.WAIT] == self._exits)
        waits &= ~self._armed.take(self._exits)
        for at in waits.nonzero()[0].tolist():
            number, stage = int(self._exits[at]), int(self._out_of[at])
            if self._fetch_credits(number):
                found = True
                arrays.wake(stage)
            else:
                channel = arrays.joints[number].channel
                self._armed[number] = True
                channel.writer = channel.producer
        return found

    def disarm(self) -> None:
        """Unregister the stages, which will look themselves.

        A registered stage that counts as running would miss arrivals.
        """
        arrays = self._arrays
        for number in self._armed.nonzero()[0].tolist():
            channel = arrays.joints[number].channel
            if arrays.joints[number].producer < 0:
                channel.reader = None
            else:
                channel.writer = None
        self._armed[:] = False
        arrays.control[c.OUTWARD] = 1

    def show(self, number: int, taken: int, arrived: int) -> None:
        """Fill the queue of a channel into a stage with elements the stage has not taken."""
        held = self._elements(number, taken, arrived) if taken < arrived else []
        joint = self._arrays.joints[number]
        channel = joint.channel
        if joint.producer >= 0:
            channel.hold(held)
            if channel.way is not None:
                channel.way.arrived.clear()
                channel.way.arrived.extend(self._late(number, taken, arrived))
            return
        self._hide(number)
        channel.queue.extendleft(reversed(held))
        if channel.way is not None:
            channel.way.arrived.extendleft(reversed(self._late(number, taken, arrived)))
        self._shown[number] = len(held)

    def on_way(self, number: int) -> list[tuple[int, int, Element]]:
        """Return the elements of a stage on links, as in ``Way``."""
        row = self._arrays.channels[number]
        arrived, sent = row.item(c.ARRIVED), row.item(c.SENT)
        if arrived == sent:
            return []
        held = self._elements(number, arrived, sent)
        set_out = (cycle for cycle, _ in self._late(number, arrived, sent))
        return [(cycle, *each) for cycle, each in zip(set_out, held, strict=True)]

    def _late(self, number: int, first: int, end: int) -> list[tuple[int, int]]:
        """Return when elements were sent over links, and their delays."""
        if first == end:
            return []
        base, mask = self._arrays.place(number)
        indices = base + (np.arange(first, end) & mask)
        return [*map(tuple, self._arrays.slots.array[indices, c.SET_OUT :].tolist())]

    def _hide(self, number: int) -> None:
        channel = self._arrays.joints[number].channel
        for _ in range(self._shown[number]):
            channel.queue.popleft()
            if channel.way is not None:
                channel.way.arrived.popleft()
        self._shown[number] = 0

    def _elements(self, number: int, first: int, end: int) -> list[tuple[int, Element]]:
        """Return elements ``first`` to ``end`` - 1 of a channel, as in its queue."""
        arrays = self._arrays
        base, mask = arrays.place(number)
        elements = []
        for index in range(first, end):
            visible, code = arrays.slots.array[base + (index & mask), : c.USABLE].tolist()
            element = arrays.codes.element(code)
            assert element is not None
            elements.append((visible, element))
        return elements


def publish(arrays: Arrays, boundary: Boundary) -> None:
    """Copy the progress to units and channels."""
    for stage, row in zip(arrays.stages, arrays.rows.tolist(), strict=True):
        unit = stage.unit
        # A burst may have been answered since, which the loop has not been told.
        unit.now = max(unit.now, row[c.NOW]) if row[c.STATUS] == c.OFF_CHIP else row[c.NOW]
        unit.busy_cycles, unit.flops = row[c.BUSY], row[c.FLOPS]
        unit.finished = row[c.STATUS] == c.FINISHED
        if unit.wait is not None:
            unit.wait = None if unit.finished else _wait(arrays, stage, row)
    rows = arrays.channels.tolist()
    for number, (joint, row) in enumerate(zip(arrays.joints, rows, strict=True)):
        if joint.producer >= 0:
            _publish_sent(arrays, joint, row)
        if joint.consumer >= 0:
            _publish_taken(joint, row)
            boundary.show(number, row[c.TAKEN], row[c.ARRIVED])
        if joint.channel.way is not None:
            if joint.consumer >= 0:
                joint.channel.way.links_cycles = row[c.LINKS]
            if joint.producer >= 0:
                closed = row[c.CLOSED] if row[c.CLOSED] >= 0 else None
                joint.channel.send_elsewhere(row[c.CARRIED], boundary.on_way(number), closed)


def _wait(arrays: Arrays, stage: Stage, row: list[int]) -> Wait:
    now, status = row[c.NOW], row[c.STATUS]
    if status == c.NO_CREDIT:
        return Wait(Operation.SEND, (arrays.joints[row[c.WAIT]].channel,), now)
    if status == c.NO_ELEMENT:
        return Wait(Operation.RECEIVE, (arrays.joints[row[c.WAIT]].channel,), now)
    if status == c.DRAINING:
        going_on = tuple(
            channel
            for channel in stage.inputs
            if goes_on(arrays.number[channel], arrays.channels.reshape(-1))
        )
        return Wait(Operation.RECEIVE, going_on, now, any_of=True)
    if status == c.OFF_CHIP:
        return Wait(Operation.OFF_CHIP, (), now)
    if status == c.STUCK:
        awaited = stage.automaton.awaited(row[c.STATE])
        assert awaited is not None
        return Wait(Operation.RECEIVE, (stage.inputs[awaited.port],), now, stops=awaited.stops)
    return Wait(Operation.REACH, (), now)


def _publish_sent(arrays: Arrays, joint: Joint, row: list[int]) -> None:
    channel, assumed = joint.channel, joint.assumed
    if assumed is not None:
        first = row[c.COUNTED]
        rows = arrays.dimensions.array[first : first + row[c.RANK] + 1].tolist()
        assumed.count_sent(
            [each[c.SIZE] for each in rows],
            [each[c.GROUPS] for each in rows],
            [(each[c.LEAST], each[c.MOST]) for each in rows],
        )
    channel.count_sent(row[c.BARE_SENT], row[c.FULL], row[c.CREDIT])
    is_networked = channel.way is not None
    if joint.consumer >= 0 and row[c.CLOSED] >= 0 and not is_networked:
        channel.closed_cycle = row[c.CLOSED]


def _publish_taken(joint: Joint, row: list[int]) -> None:
    joint.channel.count_taken(
        row[c.TAKEN],
        row[c.EMPTY],
        row[c.LEFT_OVER],
        row[c.PEAK],
        row[c.LAST_CREDIT],
        ended=bool(row[c.ENDED]),
    )
