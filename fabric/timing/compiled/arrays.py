"""The arrays of the compiled loop.

If the run is recorded, they keep the transitions of stages, which determine all events.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabric.timing.compiled import columns as c
from fabric.timing.compiled.automaton import Array, Automaton, Rows, Tables
from fabric.timing.compiled.codes import Codes
from fabric.timing.compiled.kernel import go_on
from fabric.timing.compiled.kernel_channels import wake
from fabric.timing.network.links import NO_LINKS, Links

if TYPE_CHECKING:
    from fabric.graph.hardware.address_space import Region
    from fabric.timing.engine.channel import AssumedSink, Channel
    from fabric.timing.engine.unit import Unit

_ANY_SIZE: Final = 1 << 62

_FIRST_SLOTS: Final = 128
"""Initial slots of a channel at most."""

_LEDGER: Final = 1 << 14

_JOURNAL: Final = 1 << 16

_FIRST_LOOK: Final = 1 << 14
"""Elements handed to operators, in half a second, before the first look at ``pays``."""

_PAYING: Final = 16
"""Transfers of tasks that take as long as handing one element to an operator."""


class Stage(NamedTuple):
    """An operator in the region.

    Attributes:
        region: of its tensor in off-chip memory, if any.
    """

    unit: Unit
    automaton: Automaton
    inputs: tuple[Channel, ...]
    outputs: tuple[Channel | None, ...]
    region: Region | None


class Joint(NamedTuple):
    """A channel of a stage.

    Attributes:
        assumed: counts groups, if the program states a shape.
        producer, consumer: numbers of stages; OUTSIDE for tasks.
    """

    channel: Channel
    rank: int
    assumed: AssumedSink | None
    producer: int
    consumer: int


class Arrays:
    """Arrays of the loop; ``columns`` has their layout.

    Attributes:
        stages, joints: by rows of ``rows`` and ``channels``.
        number: of each channel's joint.
    """

    def __init__(
        self,
        codes: Codes,
        tables: Tables,
        stages: Sequence[Stage],
        joints: Sequence[Joint],
        *,
        network: Links | None = None,
        recorded: bool = False,
    ) -> None:
        self.codes: Final = codes
        self.tables: Final = tables
        self.stages: Final = stages
        self.joints: Final = joints
        self.network: Final = network
        self.number: Final = {joint.channel: number for number, joint in enumerate(joints)}
        self._build_channels()
        self._build_stages()
        self.control: Final[Array] = np.zeros(c.CONTROLS, np.int64)
        self.control[c.LIVE] = self.control[c.READY_COUNT] = len(stages)
        self.submitted: Final[Array] = np.zeros((len(stages), c.SUBMITTED_COLUMNS), np.int64)
        self.ledger: Final[Array] = np.zeros(_LEDGER, np.int64)
        self.journal: Final[Array] = np.zeros(_JOURNAL if recorded else 0, np.int64)
        self._ready = np.zeros(1 << (len(stages) + 1).bit_length(), np.int64)
        self._ready[: len(stages)] = range(len(stages))
        self._next_look = _FIRST_LOOK
        self._linked: tuple[object, ...] = (self._ready,) * 8
        self.link()

    def _build_channels(self) -> None:
        joints = self.joints
        depths = np.array([joint.channel.depth for joint in joints], np.int64)
        slots = np.array([_first_slots(joint.channel.depth) for joint in joints], np.int64)
        self.dimensions = Rows(c.DIMENSION_COLUMNS)
        self.channels = rows = np.zeros((len(joints), c.CHANNEL_COLUMNS), np.int64)
        rows[:, c.DEPTH], rows[:, c.MASK], rows[:, c.BASE] = depths, slots - 1, _starts(slots)
        rows[:, c.FORWARD] = [joint.channel.forward_cycles for joint in joints]
        rows[:, c.BACKWARD] = [joint.channel.backward_cycles for joint in joints]
        rows[:, c.INTERVAL] = [joint.channel.interval_cycles for joint in joints]
        rows[:, c.CLOSED], rows[:, c.PEAK], rows[:, c.COUNTED] = -1, 1, c.OUTSIDE
        rows[:, c.FLOW] = c.OUTSIDE
        rows[:, c.RANK] = [joint.rank for joint in joints]
        self._build_flows()
        rows[:, c.PRODUCER] = [joint.producer for joint in joints]
        rows[:, c.CONSUMER] = [joint.consumer for joint in joints]
        for number, joint in enumerate(joints):
            if joint.assumed is not None:
                expected = [-1 if size is None else size for size in joint.assumed.expected]
                rows[number, c.COUNTED] = self.dimensions.extend(
                    [[0, 0, _ANY_SIZE, 0, size] for size in expected]
                )
        self.slots = Rows(c.SLOT_COLUMNS, int(slots.sum()) + 1)
        self.slots.count = int(slots.sum())

    def _build_flows(self) -> None:
        """Connect channels to flows, and flows to the channels that stages send on."""
        flows = 0 if self.network is None else len(self.network.ends)
        ends: list[list[int]] = [[] for _ in range(flows)]
        for number, joint in enumerate(self.joints):
            if joint.channel.way is not None:
                flow = joint.channel.way.flow
                self.channels[number, c.FLOW] = flow
                if joint.producer >= 0:
                    ends[flow].append(number)
        if self.network is not None:
            # As many as the channel has slots at first.
            masks = [self.channels.item(each[0], c.MASK) if each else 1 for each in ends]
            self.network.reserve(np.array(masks) + 1)
        outer = [flow for flow, each in enumerate(ends) if not each]
        self.outer_flows: Array = np.array(outer, np.int64)
        first = len(ends) + 1
        starts = np.cumsum([first, *map(len, ends)])
        numbers = [number for each in ends for number in each]
        self._ends: Array = np.array([*starts.tolist(), *numbers], np.int64)

    def _build_stages(self) -> None:
        stages, number = self.stages, self.number
        inputs = [number[each] for stage in stages for each in stage.inputs]
        outputs = [
            c.OUTSIDE if each is None else number[each]
            for stage in stages
            for each in stage.outputs
        ]
        self.rows = rows = np.zeros((len(stages), c.STAGE_COLUMNS), np.int64)
        rows[:, c.STATE] = [stage.automaton.first_state for stage in stages]
        rows[:, [c.PC, c.PC_END]] = [stage.automaton.first_stretch for stage in stages]
        rows[:, c.BEGAN] = rows[:, c.PC]
        rows[:, c.WAIT] = -1
        rows[:, c.INPUTS] = [len(stage.inputs) for stage in stages]
        rows[:, c.FIRST_INPUT] = _starts(rows[:, c.INPUTS])
        rows[:, c.OUTPUTS] = [len(stage.outputs) for stage in stages]
        rows[:, c.FIRST_OUTPUT] = _starts(rows[:, c.OUTPUTS])
        rows[:, c.FIRST_STAMP] = np.arange(len(stages)) * c.STAMPS
        self._flat_rows = self.rows.reshape(-1)
        self._inputs = np.array(inputs or [0], np.int64)
        self._outputs = np.array(outputs or [0], np.int64)
        self._seen = np.full(len(self._inputs), c.ENDED_CODE)
        self.marks: Array = np.zeros((len(self._inputs), 2), np.int64)
        self.stamps: Array = np.zeros(len(stages) * c.STAMPS, np.int64)

    def link(self) -> None:
        """Pass the arrays to the loop, after some have grown."""
        tables = self.tables
        links = NO_LINKS if self.network is None else self.network.world
        growing = (
            self.slots.array,
            tables.states.array,
            tables.known,
            tables.transitions.array,
            tables.operations.array,
            self.codes.empties,
            self.codes.sizes,
            links.queue,
        )
        if all(map(is_, growing, self._linked)):
            return
        self._linked = growing
        slots, states, known, transitions, operations, empties, sizes, _ = growing
        self._loop = go_on.over(
            stages=self._flat_rows,
            channels=self.channels.reshape(-1),
            slots=slots.reshape(-1),
            dimensions=self.dimensions.array.reshape(-1),
            inputs=self._inputs,
            outputs=self._outputs,
            seen=self._seen,
            stamps=self.stamps,
            marks=self.marks.reshape(-1),
            states=states.reshape(-1),
            known=known.reshape(-1),
            transitions=transitions.reshape(-1),
            operations=operations.reshape(-1),
            empties=empties,
            sizes=sizes,
            ready=self._ready,
            ledger=self.ledger,
            submitted=self.submitted.reshape(-1),
            journal=self.journal,
            control=self.control,
            ends=self._ends,
            links=links,
        )

    def go_on(self, pace_cycle: int, horizon_cycle: int, operations: int) -> tuple[int, int]:
        """Run the loop; see ``kernel.go_on``."""
        reason, about = self._loop(pace_cycle, horizon_cycle, operations)
        return reason, about

    def pays(self) -> bool:
        """Whether far more elements were taken than handed to operators; checked now and then."""
        steps = self.tables.steps
        if steps < self._next_look:
            return True
        self._next_look = 2 * steps
        return bool(self.channels[:, c.TAKEN].sum() > _PAYING * steps)

    def grow(self, number: int) -> None:
        """Double the slots of a channel, none of which has been used twice yet."""
        row = self.channels[number]
        base, mask = self.place(number)
        size = mask + 1
        row[c.BASE] = at = self.slots.reserve(2 * size)
        self.slots.array[at : at + size] = self.slots.array[base : base + size]
        row[c.MASK] = 2 * size - 1

    def crowd(self, number: int) -> None:
        """Enlarge the queue of a channel on shared links."""
        assert self.network is not None
        self.network.grow(self.channels.item(number, c.FLOW))

    def wake(self, stage: int) -> None:
        """Make a stage ready; one whose operator has ended keeps draining."""
        wake(stage, self._flat_rows, self._ready, self.control)

    def place(self, number: int) -> tuple[int, int]:
        """Return where the slots of a channel begin, and the mask of a count."""
        row = self.channels[number]
        return row.item(c.BASE), row.item(c.MASK)


def _first_slots(depth: int) -> int:
    """Return the initial slots of a channel: a power of two."""
    return 1 << (min(depth, _FIRST_SLOTS) - 1).bit_length()


def _starts(sizes: Array) -> Array:
    starts: Array = np.cumsum(sizes) - sizes
    return starts


class Journal:
    """Transitions of ``stages``, their elements as ``codes``, and each stage's progress."""

    def __init__(self, arrays: Arrays) -> None:
        self.stages: Final[Sequence[Stage]] = arrays.stages
        self.tables: Final[Tables] = arrays.tables
        self.codes: Final[Codes] = arrays.codes
        self.standing: Array = arrays.rows.copy()
        self._small: Final = np.min_scalar_type(len(self.stages))
        self._stages: list[NDArray[Any]] = []
        self._taken: list[NDArray[np.int32]] = []

    def keep(self, arrays: Arrays) -> None:
        """Copy the loop's journal and clear it there."""
        rows = arrays.journal[: arrays.control[c.JOURNAL]]
        self._stages.append((rows >> c.STAGE_SHIFT).astype(self._small))
        self._taken.append(rows.astype(np.int32))
        arrays.control[c.JOURNAL] = 0
        self.standing = arrays.rows.copy()

    def rows(self) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Return stages and their transitions, in the order of the loop."""
        stages = np.concatenate([np.zeros(0, self._small), *self._stages])
        return stages, np.concatenate([np.zeros(0, np.int32), *self._taken])

    def forget(self) -> None:
        """Drop the rows so far and keep the stages' progress."""
        self._stages, self._taken = [], []

    @property
    def chose(self) -> Array:
        """Stages whose work depends on which input came first."""
        return np.flatnonzero(self.standing[:, c.CHOSE])
