"""Channels between the compiled region and tasks, and the region's counters.

Elements, ends and credits cross in both directions. Counters of units and channels are copied from
the arrays of the loop.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fabric.graph.values.value import Element
from fabric.messages.causes import Operation
from fabric.timing.compiled import world as c
from fabric.timing.compiled.arrays import Arrays, Joint, Stage
from fabric.timing.compiled.kernel_channels import is_open, wake
from fabric.timing.compiled.world import ChannelRow, StageRow
from fabric.timing.engine.unit import Wait


class Boundary:
    """Channels between stages and tasks.

    A stage fetches the elements that have arrived. If none has arrived, its unit is registered as
    waiting, so that the channel wakes it.
    """

    def __init__(self, arrays: Arrays) -> None:
        self._arrays: Final = arrays
        rows, stages = arrays.world.channels.rows, arrays.world.stages.rows
        self._arrived, self._all_sent = rows["arrived"], rows["sent"]
        self._all_closed, self._all_taken = rows["closed"], rows["taken"]
        self._status, self._waits = stages["status"], stages["wait"]
        self._entrances = np.flatnonzero(rows["producer"] < 0)
        self._exits = np.flatnonzero(rows["consumer"] < 0)
        self._into = rows["consumer"][self._entrances]
        self._out_of = rows["producer"][self._exits]
        self._taken = np.zeros(len(self._entrances), np.int64)
        self._sent = np.zeros(len(self._exits), np.int64)
        self._closed = np.full(len(self._exits), c.OUTSIDE)
        self._armed = np.zeros(len(rows), np.bool_)
        self._shown = [0] * len(rows)

    def fetch_awaited(self, number: int) -> bool:
        """Fetch the elements or credits that a woken stage waits for; return whether it has any."""
        arrays = self._arrays
        stage = arrays.world.stages[number]
        if stage.status == c.DRAINING:
            for channel in arrays.stages[number].inputs:
                into = arrays.number[channel]
                if arrays.joints[into].producer < 0:
                    self._fetch(into)
            return stage.wait >= 0
        if stage.status == c.NO_ELEMENT:
            return self._fetch(stage.wait)
        return stage.status != c.NO_CREDIT or self._fetch_credits(stage.wait)

    def _fetch(self, number: int) -> bool:
        """Fetch the elements of a channel from a task; return whether any or the end arrived."""
        arrays = self._arrays
        self._armed[number] = False
        channel, row = arrays.joints[number].channel, arrays.world.channels[number]
        self._hide(number)
        queue = channel.queue
        sent = row.sent + len(queue)
        while row.mask + 1 < row.depth and sent > row.mask + 1:
            arrays.grow(number)
        codes = [arrays.codes.code(element) for _, element in queue]
        slots, at = arrays.slots.table.rows, arrays.slots_of(number, row.sent, sent)
        slots["visible"][at], slots["code"][at] = [visible for visible, _ in queue], codes
        # The queue is emptied last, because an element without a code raises an error above.
        channel.fetch()
        if channel.way is not None:
            slots["set_out"][at], slots["late"][at] = np.array(channel.way.arrived).reshape(-1, 2).T
            channel.way.arrived.clear()
        row.sent = row.arrived = sent
        if channel.closed_cycle is not None:
            row.closed = channel.closed_cycle
            return True
        return sent > row.taken

    def _fetch_credits(self, number: int) -> bool:
        """Fetch the credits of a channel to a task; return whether there were any."""
        arrays = self._arrays
        self._armed[number] = False
        channel, row = arrays.joints[number].channel, arrays.world.channels[number]
        usable = channel.collect()
        at = arrays.slots_of(number, row.taken, row.taken + len(usable))
        arrays.slots.table.rows["usable"][at] = usable
        row.taken += len(usable)
        return bool(usable)

    def emit(self) -> None:
        """Pass elements and credits to tasks."""
        arrays = self._arrays
        if not arrays.world.control.touched:
            return
        arrays.world.control.touched = 0
        slots = arrays.slots.table.rows
        if arrays.network is not None:
            arrays.network.hand_over(arrays.outer_flows, arrays.world.control.arrival_cycle)
        sent, closed = self._arrived.take(self._exits), self._all_closed.take(self._exits)
        # The consumer sees the end of a stream only after the last element has arrived.
        closed[sent != self._all_sent.take(self._exits)] = c.OUTSIDE
        for at in ((sent != self._sent) | (closed != self._closed)).nonzero()[0].tolist():
            number, end = int(self._exits[at]), int(closed[at])
            elements = self._elements(number, int(self._sent[at]), int(sent[at]))
            channel = arrays.joints[number].channel
            if channel.way is not None:
                late = self._late(number, int(self._sent[at]), int(sent[at]))
                channel.way.arrived.extend(late)
            channel.hand_over(elements, None if end < 0 else end)
        self._sent, self._closed = sent, closed
        taken = self._all_taken.take(self._entrances)
        for at in (taken != self._taken).nonzero()[0].tolist():
            number = int(self._entrances[at])
            indices = arrays.slots_of(number, int(self._taken[at]), int(taken[at]))
            arrays.joints[number].channel.give_back(slots["usable"][indices].tolist())
        self._taken = taken

    def arm(self) -> bool:
        """Register waiting stages at their channels; return whether a stage can continue."""
        arrays = self._arrays
        world, is_available = arrays.world, False
        if not world.control.outward:
            return False
        world.control.outward = 0
        status = self._status.take(self._into)
        waits = (status == c.NO_ELEMENT) & (self._waits.take(self._into) == self._entrances)
        waits |= status == c.DRAINING
        waits &= ~self._armed.take(self._entrances)
        for at in waits.nonzero()[0].tolist():
            number, stage = int(self._entrances[at]), int(self._into[at])
            channel = arrays.joints[number].channel
            before = world.channels[number].closed
            if len(channel.queue) > self._shown[number] or (
                before < 0 and channel.closed_cycle is not None
            ):
                self._fetch(number)
                is_available = True
                if world.stages[stage].wait >= 0:
                    wake(world, stage)
            elif before < 0:
                self._armed[number] = True
                channel.reader = channel.consumer
        waits = self._status.take(self._out_of) == c.NO_CREDIT
        waits &= self._waits.take(self._out_of) == self._exits
        waits &= ~self._armed.take(self._exits)
        for at in waits.nonzero()[0].tolist():
            number, stage = int(self._exits[at]), int(self._out_of[at])
            if self._fetch_credits(number):
                is_available = True
                wake(world, stage)
            else:
                channel = arrays.joints[number].channel
                self._armed[number] = True
                channel.writer = channel.producer
        return is_available

    def disarm(self) -> None:
        """Unregister the stages, so that the next ``arm`` looks for arrivals.

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
        arrays.world.control.outward = 1

    def show(self, number: int, taken: int, arrived: int) -> None:
        """Put the elements that the consuming stage has not dequeued into the channel's queue."""
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
        """Return the elements of a channel that are on links, in the form of ``Way.sent``."""
        counts = self._arrays.world.channels[number]
        held = self._elements(number, counts.arrived, counts.sent)
        late = self._late(number, counts.arrived, counts.sent)
        return [(set_out, *element) for (set_out, _), element in zip(late, held, strict=True)]

    def _late(self, number: int, first: int, end: int) -> list[tuple[int, int]]:
        """Return the cycles in which elements were sent over links, and their delays."""
        at = self._arrays.slots_of(number, first, end)
        slots = self._arrays.slots.table.rows
        return [*zip(slots["set_out"][at].tolist(), slots["late"][at].tolist(), strict=True)]

    def _hide(self, number: int) -> None:
        channel = self._arrays.joints[number].channel
        for _ in range(self._shown[number]):
            channel.queue.popleft()
            if channel.way is not None:
                channel.way.arrived.popleft()
        self._shown[number] = 0

    def _elements(self, number: int, first: int, end: int) -> list[tuple[int, Element]]:
        """Return elements ``first`` to ``end`` - 1 of a channel, as in its queue."""
        at = self._arrays.slots_of(number, first, end)
        slots = self._arrays.slots.table.rows
        coded = map(self._arrays.codes.element, slots["code"][at].tolist())
        elements = [element for element in coded if element is not None]
        return [*zip(slots["visible"][at].tolist(), elements, strict=True)]


def publish(arrays: Arrays, boundary: Boundary) -> None:
    """Copy the progress to units and channels."""
    for stage, row in zip(arrays.stages, arrays.world.stages.copies(), strict=True):
        unit = stage.unit
        # An answer to a burst may have advanced the unit's clock since the loop ran.
        unit.now = max(unit.now, row.now) if row.status == c.OFF_CHIP else row.now
        unit.busy_cycles, unit.flops = row.busy, row.flops
        if row.client >= 0:
            unit.off_chip_cycles, unit.off_chip_bytes = row.off_chip_cycles, row.off_chip_bytes
        unit.finished = row.status == c.FINISHED
        if unit.wait is not None:
            unit.wait = None if unit.finished else _wait(arrays, stage, row)
    rows = zip(arrays.joints, arrays.world.channels.copies(), strict=True)
    for number, (joint, counts) in enumerate(rows):
        channel = joint.channel
        if joint.producer >= 0:
            _publish_sent(arrays, joint, counts)
        if joint.consumer >= 0:
            channel.count_taken(
                counts.taken, counts.empty, counts.left_over, counts.peak, counts.last_credit,
                ended=bool(counts.ended),
            )  # fmt: skip
            boundary.show(number, counts.taken, counts.arrived)
        if channel.way is not None:
            if joint.consumer >= 0:
                channel.way.links_cycles = counts.links
            if joint.producer >= 0:
                closed = counts.closed if counts.closed >= 0 else None
                channel.set_way(counts.carried, boundary.on_way(number), closed)


def _wait(arrays: Arrays, stage: Stage, row: StageRow) -> Wait:
    now, status = row.now, row.status
    if status == c.NO_CREDIT:
        return Wait(Operation.SEND, (arrays.joints[row.wait].channel,), now)
    if status == c.NO_ELEMENT:
        return Wait(Operation.RECEIVE, (arrays.joints[row.wait].channel,), now)
    if status == c.DRAINING:
        channels, number = arrays.world.channels, arrays.number
        open_inputs = tuple(c for c in stage.inputs if is_open(channels[number[c]]))
        return Wait(Operation.RECEIVE, open_inputs, now, any_of=True)
    if status == c.OFF_CHIP:
        return Wait(Operation.OFF_CHIP, (), now)
    if status == c.STUCK:
        awaited = stage.automaton.awaited[row.state]
        return Wait(Operation.RECEIVE, (stage.inputs[awaited.port],), now, stops=awaited.stops)
    return Wait(Operation.REACH, (), now)


def _publish_sent(arrays: Arrays, joint: Joint, row: ChannelRow) -> None:
    channel, assumed = joint.channel, joint.assumed
    if assumed is not None:
        first = row.counted
        rows = arrays.world.dimensions.rows[first : first + row.rank + 1]
        assumed.count_sent(
            rows["size"].tolist(), rows["groups"].tolist(), rows[["least", "most"]].tolist()
        )
    channel.count_sent(row.bare_sent, row.full, row.credit)
    if joint.consumer >= 0 and row.closed >= 0 and channel.way is None:
        channel.closed_cycle = row.closed
