"""The arrays of the compiled loop."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from fabric.timing.compiled import world as c
from fabric.timing.compiled.automaton import Automaton, Tables
from fabric.timing.compiled.kernel import run_loop
from fabric.timing.compiled.world import GrowingTable, World
from fabric.timing.engine.log import Entry
from fabric.timing.engine.tables import Counters, Table
from fabric.timing.memories.flat import NO_MEMORY, FlatMemory
from fabric.timing.network.links import NO_LINKS, Links

if TYPE_CHECKING:
    from fabric.graph.hardware.address_space import Region
    from fabric.timing.engine.channel import AssumedSink, Channel
    from fabric.timing.engine.log import Log
    from fabric.timing.engine.unit import Unit

_ANY_SIZE: Final = 1 << 62

_FIRST_SLOTS: Final = 128
"""The most slots that a channel begins with."""

_LEDGER: Final = 1 << 14

_FIRST_LOOK: Final = 1 << 14
"""``pays`` first compares after this many steps, which take half a second."""

_PAYING: Final = 16
"""Handing one element to an operator takes as long as this many transfers of tasks."""


class Stage(NamedTuple):
    """An operator in the compiled loop; ``region`` holds its tensor in off-chip memory."""

    unit: Unit
    automaton: Automaton
    inputs: tuple[Channel, ...]
    outputs: tuple[Channel | None, ...]
    region: Region | None


class Joint(NamedTuple):
    """A channel of a stage.

    Attributes:
        number: in edge order.
        assumed: counts groups, if the program states a shape.
        producer, consumer: numbers of stages; OUTSIDE for tasks.
    """

    number: int
    channel: Channel
    rank: int
    assumed: AssumedSink | None
    producer: int
    consumer: int


class Arrays:
    """The world of the loop.

    Attributes:
        world: replaced by ``link`` after a table has grown.
        stages, joints: by rows of the world's ``stages`` and ``channels``.
        number: by channel, the number of its joint.
        outer_flows: flows that tasks send on.
    """

    def __init__(
        self,
        tables: Tables,
        stages: Sequence[Stage],
        joints: Sequence[Joint],
        *,
        network: Links | None,
        memory: FlatMemory | None,
        log: Log | None,
    ) -> None:
        self.codes: Final = tables.codes
        self.tables: Final = tables
        self.stages: Final = stages
        self.joints: Final = joints
        self.network: Final = network
        self.memory: Final = memory
        self.log: Final = log
        self.number: Final = {joint.channel: number for number, joint in enumerate(joints)}
        count = len(stages)
        channels, dimensions = self._channels()
        sizes = channels.rows["mask"] + 1
        self.slots: Final = GrowingTable(c.Slot, int(sizes.sum()) + 1)
        self.slots.reserve(int(sizes.sum()))
        ready = np.zeros(1 << (count + 1).bit_length(), np.int64)
        ready[:count] = range(count)
        sinks = chain.from_iterable(stage.outputs for stage in stages)
        outputs = [c.OUTSIDE if sink is None else self.number[sink] for sink in sinks]
        self.world = World(
            stages=self._stages(), channels=channels, slots=self.slots.table,
            dimensions=dimensions, inputs=self._inputs(), outputs=np.array([*outputs, 0], np.int64),
            stamps=np.zeros(count * c.STAMPS, np.int64), states=tables.states.table,
            known=tables.known, transitions=tables.transitions.table,
            operations=tables.operations.table, kinds=self.codes.kinds.table,
            bursts=self.codes.bursts.table, ready=ready,
            ledger=Table.zeros(c.Change, _LEDGER),
            log=Table.zeros(Entry, 0) if log is None else log.table,
            control=Table.zeros(c.Control, 1)[0], ends=self._ends(channels), links=NO_LINKS,
            memory=NO_MEMORY if memory is None else memory.world,
        )  # fmt: skip
        self.world.control.horizon_cycle = c.OUTSIDE
        self.world.control.live = self.world.control.ready_count = count
        self._next_look = _FIRST_LOOK
        self._linked: tuple[object, ...] = (None,) * 8
        self.link()

    def _channels(self) -> tuple[Table[c.ChannelRow], Table[c.Dimension]]:
        joints = self.joints
        table, dimensions = Table.zeros(c.ChannelRow, len(joints)), GrowingTable(c.Dimension)
        rows, channels = table.rows, [joint.channel for joint in joints]
        # A channel begins with a power of two of slots.
        bits = [(min(channel.depth, _FIRST_SLOTS) - 1).bit_length() for channel in channels]
        sizes = 1 << np.array(bits, np.int64)
        rows["mask"], rows["base"] = sizes - 1, _starts(sizes)
        rows["depth"] = [channel.depth for channel in channels]
        rows["forward"] = [channel.forward_cycles for channel in channels]
        rows["backward"] = [channel.backward_cycles for channel in channels]
        rows["interval"] = [channel.interval_cycles for channel in channels]
        rows["wait"] = [channel.producer.registers.wait_cycles for channel in channels]
        rows["end"] = [channel.producer.registers.end_cycles for channel in channels]
        rows["closed"] = rows["counted"] = rows["flow"] = c.OUTSIDE
        rows["peak"] = 1
        rows["number"] = [joint.number for joint in joints]
        rows["rank"] = [joint.rank for joint in joints]
        rows["producer"] = [joint.producer for joint in joints]
        rows["consumer"] = [joint.consumer for joint in joints]
        for number, joint in enumerate(joints):
            if joint.assumed is not None:
                expected = [-1 if size is None else size for size in joint.assumed.expected]
                sizes_of = [[0, 0, _ANY_SIZE, 0, size] for size in expected]
                rows["counted"][number] = dimensions.extend(sizes_of)
        return table, dimensions.table

    def _ends(self, channels: Table[c.ChannelRow]) -> Counters:
        """Connect channels to flows, and flows to the channels that stages send on."""
        flows = 0 if self.network is None else len(self.network.ends)
        ends: list[list[int]] = [[] for _ in range(flows)]
        for number, joint in enumerate(self.joints):
            if joint.channel.way is not None:
                flow = joint.channel.way.flow
                channels[number].flow = flow
                if joint.producer >= 0:
                    ends[flow].append(number)
        if self.network is not None:
            # A flow begins with room for one element per slot of its channel.
            masks = [channels[numbers[0]].mask if numbers else 1 for numbers in ends]
            self.network.reserve(np.array(masks) + 1)
        outer = [flow for flow, numbers in enumerate(ends) if not numbers]
        self.outer_flows: Counters = np.array(outer, np.int64)
        starts = np.cumsum([len(ends) + 1, *map(len, ends)])
        return np.array([*starts.tolist(), *chain.from_iterable(ends)], np.int64)

    def _inputs(self) -> Table[c.InputRow]:
        channels = [self.number[channel] for stage in self.stages for channel in stage.inputs]
        table = Table.zeros(c.InputRow, len(channels) + 1)
        table.rows["channel"][:-1] = channels
        table.rows["seen"] = c.ENDED_CODE
        return table

    def _stages(self) -> Table[c.StageRow]:
        stages, table = self.stages, Table.zeros(c.StageRow, len(self.stages))
        rows = table.rows
        rows["state"] = [stage.automaton.first_state for stage in stages]
        rows["unit"] = [stage.unit.index for stage in stages]
        rows["pc"] = [stage.automaton.first_stretch[0] for stage in stages]
        rows["end"] = [stage.automaton.first_stretch[1] for stage in stages]
        rows["wait"] = c.OUTSIDE
        rows["inputs"] = [len(stage.inputs) for stage in stages]
        rows["first_input"] = _starts(rows["inputs"])
        rows["outputs"] = [len(stage.outputs) for stage in stages]
        rows["first_output"] = _starts(rows["outputs"])
        rows["client"] = c.OUTSIDE
        if self.memory is not None:
            for number, stage in enumerate(stages):
                rows["client"][number] = self.memory.connect(stage.unit, number)
        return table

    def link(self) -> None:
        """Pass the tables to the loop, after some have grown."""
        tables = self.tables
        growing: dict[str, Any] = {
            "slots": self.slots.table,
            "states": tables.states.table,
            "known": tables.known,
            "transitions": tables.transitions.table,
            "operations": tables.operations.table,
            "kinds": self.codes.kinds.table,
            "bursts": self.codes.bursts.table,
            "links": NO_LINKS if self.network is None else self.network.world,
        }
        if not all(map(is_, growing.values(), self._linked)):
            self._linked = tuple(growing.values())
            self.world = self.world._replace(**growing)
            self._loop = run_loop.over(self.world)

    def run(self, pace_cycle: int, operations: int) -> tuple[int, int]:
        control = self.world.control
        if self.log is not None:
            control.entries = self.log.count
        reason, about = self._loop(pace_cycle, operations)
        if self.log is not None:
            self.log.count = control.entries
            if reason == c.BUFFER_FULL:
                self.log.flush()
        return reason, about

    def pays(self) -> bool:
        """Whether the tables save time. This is compared again each time the steps have doubled."""
        steps = self.tables.steps
        if steps < self._next_look:
            return True
        self._next_look = 2 * steps
        return bool(self.world.channels.rows["taken"].sum() > _PAYING * steps)

    def grow(self, number: int) -> None:
        """Double the slots of a channel. No slot was reused yet, so copies keep the order."""
        channel = self.world.channels[number]
        base, size = channel.base, channel.mask + 1
        channel.base = at = self.slots.reserve(2 * size)
        channel.mask = 2 * size - 1
        slots = self.slots.table.rows
        slots[at : at + size] = slots[base : base + size]

    def enlarge_queue(self, number: int) -> None:
        """Enlarge the queue of a channel on shared links."""
        assert self.network is not None
        self.network.grow(self.world.channels[number].flow)

    def slots_of(self, number: int, first: int, end: int) -> Counters:
        """Return the slots of elements ``first`` to ``end`` - 1 of a channel."""
        channel = self.world.channels[number]
        slots: Counters = channel.base + (np.arange(first, end) & channel.mask)
        return slots


def _starts(sizes: Counters) -> Counters:
    starts: Counters = np.cumsum(sizes) - sizes
    return starts
