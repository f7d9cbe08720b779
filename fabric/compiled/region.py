"""The operators of a run whose behaviour is a table: they go on in one compiled loop.

To the clock and to the channels at its boundary each of them is a unit like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import trio

from fabric.compiled import columns as c
from fabric.compiled.automaton import Automaton
from fabric.compiled.codes import Codes, Uncoded
from fabric.compiled.kernel import go_on
from fabric.compiled.recording import Unfit
from fabric.compiled.tables import Rows, Tables
from fabric.engine.strand import Strand
from fabric.engine.unit import Unit, Wait
from fabric.telling.causes import Operation
from fabric.values.value import Element

if TYPE_CHECKING:
    from fabric.engine.assumed_sink import AssumedSink
    from fabric.engine.channel import Channel
    from fabric.engine.clock import VirtualClock
    from fabric.engine.off_chip import OffChip
    from fabric.engine.on_chip import OnChipMemory

__all__ = ["Joint", "Region", "Stage"]

_BUDGET: Final = 2_000_000
"""Operations after which Python looks whether there was a signal."""

_ANY_SIZE: Final = 1 << 62

_FIRST_SLOTS: Final = 1024
"""Of a channel at most, until it needs more."""


class Stage(NamedTuple):
    """An operator in the region.

    Attributes:
        unit: where it runs.
        automaton: what it does.
        inputs: its channels.
        outputs: likewise; None where nobody reads.
    """

    unit: Unit
    automaton: Automaton
    inputs: tuple[Channel, ...]
    outputs: tuple[Channel | None, ...]


class Joint(NamedTuple):
    """A channel at an end of which there is a stage.

    Attributes:
        channel: it.
        assumed: counts the groups of what a stage sends, where the program states a shape.
        producer, consumer: numbers of stages; OUTSIDE for a unit that is a task.
    """

    channel: Channel
    assumed: AssumedSink | None
    producer: int
    consumer: int


class _Woken(Strand):
    """Tells the region that a unit in it has been woken."""

    __slots__ = ()

    def interrupt(self, error: BaseException) -> None:
        """Do nothing: there is no task."""


class Region:
    """Runs stages.

    Attributes:
        gave_up: it came upon something that cannot be written down.
        indices: of the nodes whose operators are in it.
    """

    def __init__(
        self,
        clock: VirtualClock,
        on_chip: OnChipMemory,
        off_chip: OffChip | None,
        codes: Codes,
        tables: Tables,
        stages: Sequence[Stage],
        joints: Sequence[Joint],
    ) -> None:
        """Let ``stages`` stand before their first elements."""
        self._clock: Final = clock
        self._on_chip: Final = on_chip
        self._off_chip: Final = off_chip
        self._codes: Final = codes
        self._tables: Final = tables
        self._stages: Final = stages
        self._joints: Final = joints
        self.gave_up = False
        self.indices: Final = frozenset(stage.unit.index for stage in stages)
        self._number = {joint.channel: number for number, joint in enumerate(joints)}
        self._build_channels()
        self._build_stages()
        self._control = np.zeros(c.CONTROLS, np.int64)
        self._control[c.LIVE] = len(stages)
        self._ledger = np.zeros(1 << 14, np.int64)
        size = 1 << (len(stages) + 1).bit_length()
        self._ready = np.zeros(size, np.int64)
        self._ready[: len(stages)] = range(len(stages))
        self._control[c.READY_COUNT] = len(stages)
        self._over: Final = trio.Event()
        self._woken = list(range(len(stages)))
        self._touched: list[int] = []
        self._scheduled = False
        self._pacing: set[int] = set()
        self._is_published = True
        self._coded: dict[int, tuple[object, int]] = {}
        self._waiting: Final = Wait(Operation.RECEIVE, (), 0)
        self._strand: Final = Strand()
        self._strand.step = self._go
        self._linked: dict[str, Array] = {}
        self._link()
        for number, stage in enumerate(stages):
            strand = stage.unit.strand = _Woken()
            strand.parked = True
            strand.step = lambda _, number=number: self._touch(number)

    def _build_channels(self) -> None:
        joints = self._joints
        self._channels = np.zeros((len(joints), c.CHANNEL_COLUMNS), np.int64)
        self._slots = Rows(c.SLOT_COLUMNS)
        rows = self._channels
        self._dimensions = Rows(c.DIMENSION_COLUMNS)
        for number, (channel, assumed, producer, consumer) in enumerate(joints):
            row = rows[number]
            row[c.COUNTED] = -1
            if assumed is not None:
                expected = [-1 if size is None else size for size in assumed.expected]
                row[c.RANK] = len(expected) - 1
                row[c.COUNTED] = self._dimensions.extend(
                    [[0, 0, _ANY_SIZE, 0, size] for size in expected]
                )
            row[c.DEPTH] = channel.depth
            row[c.FORWARD], row[c.BACKWARD] = channel.forward_cycles, channel.backward_cycles
            size = 1 << (min(channel.depth, _FIRST_SLOTS) - 1).bit_length()
            row[c.MASK] = size - 1
            row[c.BASE] = self._slots.extend([[0, 0, 0]] * size)
            row[c.CLOSED] = -1
            row[c.PEAK] = 1
            row[c.PRODUCER], row[c.CONSUMER] = producer, consumer
        self._entrances = np.flatnonzero(rows[:, c.PRODUCER] < 0)
        self._exits = np.flatnonzero(rows[:, c.CONSUMER] < 0)
        self._into = rows[self._entrances, c.CONSUMER].copy()
        self._out_of = rows[self._exits, c.PRODUCER].copy()
        self._taken = np.zeros(len(self._entrances), np.int64)
        self._sent = np.zeros(len(self._exits), np.int64)
        self._armed = np.zeros(len(joints), np.bool_)
        self._shown = [0] * len(joints)

    def _build_stages(self) -> None:
        stages = self._stages
        self._rows = np.zeros((len(stages), c.STAGE_COLUMNS), np.int64)
        inputs: list[int] = []
        outputs: list[int] = []
        for number, stage in enumerate(stages):
            row = self._rows[number]
            row[c.STATE] = stage.automaton.first_state
            row[c.PC], row[c.PC_END] = stage.automaton.first_stretch
            row[c.WAIT] = -1
            row[c.FIRST_INPUT], row[c.INPUTS] = len(inputs), len(stage.inputs)
            row[c.FIRST_OUTPUT], row[c.OUTPUTS] = len(outputs), len(stage.outputs)
            row[c.FIRST_STAMP] = number * c.STAMPS
            inputs += [self._number[each] for each in stage.inputs]
            outputs += [c.OUTSIDE if each is None else self._number[each] for each in stage.outputs]
        self._inputs = np.array(inputs or [0], np.int64)
        self._outputs = np.array(outputs or [0], np.int64)
        self._seen = np.zeros(len(self._inputs), np.int64)
        self._marks = np.zeros((len(self._inputs), 2), np.int64)
        self._stamps = np.zeros(len(stages) * c.STAMPS, np.int64)

    def _link(self) -> None:
        """Let the loop know the arrays, some of which grow."""
        tables = self._tables
        arrays = {
            "stages": self._rows,
            "channels": self._channels,
            "slots": self._slots.array,
            "dimensions": self._dimensions.array,
            "inputs": self._inputs,
            "outputs": self._outputs,
            "seen": self._seen,
            "stamps": self._stamps,
            "marks": self._marks,
            "states": tables.states.array,
            "known": tables.known,
            "transitions": tables.transitions.array,
            "operations": tables.operations.array,
            "empties": self._codes.empties,
            "ready": self._ready,
            "ledger": self._ledger,
            "control": self._control,
        }
        if any(self._linked.get(name) is not array for name, array in arrays.items()):
            self._linked = arrays
            flat = {name: array.reshape(-1) for name, array in arrays.items()}
            self._loop = go_on.over(**flat)

    async def run(self) -> None:
        """Let the stages go on, as the conductor does, until all of them have ended."""
        self._schedule()
        await self._over.wait()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._clock.conductor.resume(self._strand)

    def _touch(self, stage: int) -> None:
        """Know that ``stage`` was woken."""
        self._woken.append(stage)
        self._touched.append(stage)
        self._schedule()

    def _go(self, _: object) -> None:
        """Let the stages go on until all of them wait."""
        self._scheduled = False
        clock = self._clock
        if clock.stopped:
            return
        if clock.conductor.is_busy:
            # What others are about to send need not be fetched one by one.
            self._schedule()
            return
        self._is_published = False
        try:
            touched, self._touched = self._touched, []
            for stage in touched:
                self._absorb(stage)
            while True:
                self._link()
                if not self._run():
                    clock.conductor.pause()
                    self._schedule()
                    return
                self._submit()
                self._emit()
                if not self._arm():
                    break
        except (Unfit, Uncoded):
            self.gave_up = True
            clock.stopping = True
        self._rest()

    def _run(self) -> bool:
        """Run the loop until all stages wait; False where it came back early."""
        control = self._control
        while True:
            reason, about = self._loop(self._clock.pace_cycle, _BUDGET)
            if control[c.LEDGER]:
                changes = self._ledger[: control[c.LEDGER]].reshape(-1, 2).tolist()
                self._on_chip.record(changes)
                control[c.LEDGER] = 0
            if reason == c.ASKS:
                automaton = self._stages[about].automaton
                automaton.ask(int(control[c.ASKED_STATE]), int(control[c.ASKED_CODE]))
                self._link()
            elif reason == c.FAILS:
                raise Unfit
            elif reason == c.GROWS:
                self._grow(about)
                self._link()
            elif reason != c.RECORDS:
                return bool(reason == c.AT_REST)

    def _grow(self, number: int) -> None:
        """Give a channel twice the slots; none of them has been used twice yet."""
        row = self._channels[number]
        base, size = int(row[c.BASE]), int(row[c.MASK]) + 1
        row[c.BASE] = at = self._slots.extend([[0, 0, 0]] * (2 * size))
        self._slots.array[at : at + size] = self._slots.array[base : base + size]
        row[c.MASK] = 2 * size - 1

    def _push(self, stage: int) -> None:
        control = self._control
        self._rows[stage, c.STATUS] = c.READY
        self._ready[(control[c.READY_HEAD] + control[c.READY_COUNT]) % len(self._ready)] = stage
        control[c.READY_COUNT] += 1

    def _absorb(self, stage: int) -> None:
        """Fetch what a stage that was woken waited for."""
        row = self._rows[stage]
        status, waits = row[c.STATUS], int(row[c.WAIT])
        if status == c.DRAINING:
            for channel in self._stages[stage].inputs:
                number = self._number[channel]
                if self._channels[number, c.PRODUCER] < 0:
                    self._fetch(number)
            if waits >= 0:
                self._push(stage)
                row[c.STATUS] = c.DRAINING
                row[c.WAIT] = -1
        elif status == c.PACED:
            self._pacing.discard(stage)
            self._push(stage)
        elif status == c.OFF_CHIP:
            row[c.NOW] = self._stages[stage].unit.now
            self._push(stage)
        elif status == c.NO_ELEMENT:
            if self._fetch(waits):
                self._push(stage)
        elif status == c.NO_CREDIT and self._fetch_credits(waits):
            self._push(stage)

    def _fetch(self, number: int) -> bool:
        """Fetch the elements of a channel from outside; whether there is one, or the end."""
        self._armed[number] = False
        channel, row = self._joints[number].channel, self._channels[number]
        queue = channel.queue
        for _ in range(self._shown[number]):
            queue.popleft()
        self._shown[number] = 0
        while row[c.MASK] + 1 < row[c.DEPTH] and row[c.SENT] + len(queue) > row[c.MASK] + 1:
            self._grow(number)
        base, mask, sent = int(row[c.BASE]), int(row[c.MASK]), int(row[c.SENT])
        slots = self._slots.array
        while queue:
            visible, element = queue.popleft()
            code = self._code(element)
            slots[base + (sent & mask), : c.USABLE] = visible, code
            row[c.BARE_SENT] += bool(code & c.BARE)
            sent += 1
        row[c.SENT] = sent
        if channel.closed_cycle is not None:
            row[c.CLOSED] = channel.closed_cycle
            return True
        return bool(sent > row[c.TAKEN])

    def _code(self, element: Element) -> int:
        value, level = element
        known = self._coded.get(id(value))
        if known is None:
            code = self._codes.code((value, 0))
            if not code & c.NUMBER_MASK:
                # The value is kept, so that its identity stays its own.
                self._coded[id(value)] = value, code
        else:
            code = known[1]
        if not 0 <= level < c.BARE:
            raise Uncoded
        return code | level

    def _fetch_credits(self, number: int) -> bool:
        """Fetch the credits of a channel to outside; whether there were any."""
        self._armed[number] = False
        channel, row = self._joints[number].channel, self._channels[number]
        returned = list(channel.collect())
        base, mask, taken = int(row[c.BASE]), int(row[c.MASK]), int(row[c.TAKEN])
        for usable in returned:
            self._slots.array[base + (taken & mask), c.USABLE] = usable
            taken += 1
        row[c.TAKEN] = taken
        return bool(returned)

    def _submit(self) -> None:
        """Hand bursts to the memory off chip."""
        control, rows = self._control, self._rows
        if not control[c.SUBMITTED]:
            return
        control[c.SUBMITTED] = 0
        asks = (rows[:, c.STATUS] == c.OFF_CHIP) & (rows[:, c.REQUESTS] >= 0)
        for number in np.flatnonzero(asks).tolist():
            row, unit = rows[number], self._stages[number].unit
            burst = self._codes.bursts[row[c.REQUESTS]]
            row[c.REQUESTS] = -1
            unit.now = int(row[c.NOW])
            unit.off_chip_bytes += burst.rows * burst.row_bytes
            self._off_chip.submit(unit, burst)

    def _emit(self) -> None:
        """Hand what was sent and taken to the units outside."""
        if not self._control[c.TOUCHED]:
            return
        self._control[c.TOUCHED] = 0
        rows, slots = self._channels, self._slots.array
        sent = rows[self._exits, c.SENT]
        closed = rows[self._exits, c.CLOSED]
        for at in np.flatnonzero((sent != self._sent) | (closed >= 0)).tolist():
            number = int(self._exits[at])
            channel, base, mask = self._joints[number].channel, *self._place(number)
            elements = []
            for index in range(int(self._sent[at]), int(sent[at])):
                visible, code = slots[base + (index & mask), : c.USABLE].tolist()
                element = self._codes.element(code)
                assert element is not None
                elements.append((visible, element))
            end = int(closed[at])
            if elements or (end >= 0 and channel.closed_cycle is None):
                channel.hand_over(elements, None if end < 0 else end)
        self._sent = sent
        taken = rows[self._entrances, c.TAKEN]
        for at in np.flatnonzero(taken != self._taken).tolist():
            number = int(self._entrances[at])
            channel, base, mask = self._joints[number].channel, *self._place(number)
            indices = base + (np.arange(self._taken[at], taken[at]) & mask)
            channel.give_back(slots[indices, c.USABLE].tolist())
        self._taken = taken

    def _place(self, number: int) -> tuple[int, int]:
        row = self._channels[number]
        return int(row[c.BASE]), int(row[c.MASK])

    def _arm(self) -> bool:
        """Let what stages wait for wake them; whether some of it is there already."""
        rows, found = self._rows, False
        status = rows[self._into, c.STATUS]
        waits = (status == c.NO_ELEMENT) & (rows[self._into, c.WAIT] == self._entrances)
        waits |= status == c.DRAINING
        waits &= ~self._armed[self._entrances]
        for at in np.flatnonzero(waits).tolist():
            number, stage = int(self._entrances[at]), int(self._into[at])
            channel = self._joints[number].channel
            before = int(self._channels[number, c.CLOSED])
            if len(channel.queue) > self._shown[number] or (
                before < 0 and channel.closed_cycle is not None
            ):
                self._fetch(number)
                found = True
                if rows[stage, c.STATUS] == c.NO_ELEMENT:
                    self._push(stage)
                elif rows[stage, c.WAIT] >= 0:
                    self._push(stage)
                    rows[stage, c.STATUS] = c.DRAINING
                    rows[stage, c.WAIT] = -1
            elif before < 0:
                self._armed[number] = True
                channel.reader = channel.consumer
        waits = rows[self._out_of, c.STATUS] == c.NO_CREDIT
        waits &= rows[self._out_of, c.WAIT] == self._exits
        waits &= ~self._armed[self._exits]
        for at in np.flatnonzero(waits).tolist():
            number, stage = int(self._exits[at]), int(self._out_of[at])
            if self._fetch_credits(number):
                found = True
                self._push(stage)
            else:
                channel = self._joints[number].channel
                self._armed[number] = True
                channel.writer = channel.producer
        return found

    def _rest(self) -> None:
        """Count the stages that were woken as waiting."""
        woken, self._woken = self._woken, []
        status = self._rows[:, c.STATUS]
        clock = self._clock
        for number in woken:
            unit = self._stages[number].unit
            unit.wait = self._waiting
            unit.strand.parked = True
        for number in np.flatnonzero(status == c.PACED).tolist():
            if number not in self._pacing:
                self._pacing.add(number)
                unit = self._stages[number].unit
                unit.now = int(self._rows[number, c.NOW])
                clock.note_pacing(unit)
        clock.leave(len(woken))
        if not self._control[c.LIVE]:
            self._over.set()

    def publish(self) -> None:
        """Let units and channels say how far they are."""
        if self._is_published:
            return
        self._is_published = True
        for stage, row in zip(self._stages, self._rows.tolist(), strict=True):
            unit = stage.unit
            unit.now, unit.busy_cycles, unit.flops = row[c.NOW], row[c.BUSY], row[c.FLOPS]
            unit.finished = row[c.STATUS] == c.FINISHED
            if unit.wait is not None:
                unit.wait = None if unit.finished else self._wait_of(stage, row)
        for number, row in enumerate(self._channels.tolist()):
            self._publish_channel(number, row)

    def _wait_of(self, stage: Stage, row: list[int]) -> Wait:
        """Return what a stage that does not go on waits for."""
        now, status = row[c.NOW], row[c.STATUS]
        if status == c.NO_CREDIT:
            return Wait(Operation.SEND, (self._joints[row[c.WAIT]].channel,), now)
        if status == c.NO_ELEMENT:
            return Wait(Operation.RECEIVE, (self._joints[row[c.WAIT]].channel,), now)
        if status == c.DRAINING:
            going_on = tuple(
                channel
                for channel in stage.inputs
                if self._channels[self._number[channel], c.CLOSED] < 0
            )
            return Wait(Operation.RECEIVE, going_on, now, any_of=True)
        if status == c.OFF_CHIP:
            return Wait(Operation.OFF_CHIP, (), now)
        if status == c.STUCK:
            awaited = stage.automaton.awaited(row[c.STATE])
            assert awaited is not None
            return Wait(Operation.RECEIVE, (stage.inputs[awaited.port],), now, stops=awaited.stops)
        return Wait(Operation.REACH, (), now)

    def _publish_channel(self, number: int, row: list[int]) -> None:
        channel, assumed, producer, consumer = self._joints[number]
        if producer >= 0:
            if assumed is not None:
                first = row[c.COUNTED]
                rows = self._dimensions.array[first : first + row[c.RANK] + 1].tolist()
                assumed.count_sent(
                    [each[c.SIZE] for each in rows],
                    [each[c.GROUPS] for each in rows],
                    [(each[c.LEAST], each[c.MOST]) for each in rows],
                )
            channel.count_sent(row[c.BARE_SENT], row[c.FULL], row[c.CREDIT])
            if consumer >= 0 and row[c.CLOSED] >= 0:
                channel.closed_cycle = row[c.CLOSED]
        if consumer < 0:
            return
        channel.count_taken(
            row[c.TAKEN],
            row[c.EMPTY],
            row[c.LEFT_OVER],
            row[c.PEAK],
            row[c.LAST_CREDIT],
            ended=bool(row[c.ENDED]),
        )
        queue = channel.queue
        for _ in range(self._shown[number]):
            queue.popleft()
        base, mask = row[c.BASE], row[c.MASK]
        for index in range(row[c.SENT] - 1, row[c.TAKEN] - 1, -1):
            visible, code = self._slots.array[base + (index & mask), : c.USABLE].tolist()
            element = self._codes.element(code)
            assert element is not None
            queue.appendleft((visible, element))
        self._shown[number] = row[c.SENT] - row[c.TAKEN]
