"""The compiled operators of a run and the loop that runs them.

For the clock and for channels to tasks, a compiled operator is a unit like any other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import trio

from fabric.graph.values.stream_type import BoolType, SelectorType, TileType, TupleType, ValueType
from fabric.graph.wiring.operator import behaving_as
from fabric.messages.causes import Operation
from fabric.messages.place import is_ours
from fabric.messages.users_code import pass_signals
from fabric.timing.compiled import world as c
from fabric.timing.compiled.arrays import Arrays, Joint, Stage
from fabric.timing.compiled.automaton import Automaton, Tables
from fabric.timing.compiled.boundary import Boundary, publish
from fabric.timing.compiled.codes import UnfitError
from fabric.timing.compiled.kernel import next_event, number_in
from fabric.timing.compiled.kernel_channels import wake
from fabric.timing.compiled.likeness import Likeness
from fabric.timing.engine.channel import AssumedSink, Channel
from fabric.timing.engine.conductor import Strand
from fabric.timing.engine.off_chip import LoggedOffChip, OffChip, prefetching
from fabric.timing.engine.ports import Sink
from fabric.timing.engine.unit import Wait
from fabric.timing.memories.flat import FlatMemory

if TYPE_CHECKING:
    from fabric.graph.wiring.elaborate import Plan
    from fabric.timing.compiled.port_views import Views
    from fabric.timing.engine.ports import Ports
    from fabric.timing.network.links import Links


_BUDGET: Final = 2_000_000
"""Operations between two checks for signals."""

_MOST_FOUND: Final = 1_000
"""Transitions found before other tasks have a turn."""


class Region:
    """Runs stages. The clock advances the region, with its links and memory, like a network.

    Attributes:
        gave_up: whether an operator's behaviour cannot be recorded. Then the run begins again as
            tasks.
    """

    def __init__(self, arrays: Arrays, likeness: Likeness, views: Views) -> None:
        self._clock: Final = views.clock
        self._on_chip: Final = views.on_chip
        self._off_chip: Final = views.off_chip
        self._arrays: Final = arrays
        self._boundary: Final = Boundary(arrays)
        self.likeness: Final = likeness
        self.gave_up = False
        self.indices: Final = frozenset(stage.unit.index for stage in arrays.stages)
        self._over: Final = trio.Event()
        self._woken = list(range(len(arrays.stages)))
        self._touched: list[int] = []
        self._scheduled = False
        self._is_published = True
        self._clock.network = self
        if arrays.memory is not None:
            self._clock.memory = None
        self._carries = 0
        self._waiting: Final = Wait(Operation.RECEIVE, (), 0)
        self._strand: Final = Strand()
        self._strand.step = self._go
        for number, stage in enumerate(arrays.stages):
            stage.unit.strand.parked = True
            stage.unit.strand.step = partial(self._touch, number)

    async def run(self) -> None:
        """Run the stages in the conductor until all have ended, or the region gives up."""
        self._schedule()
        await self._over.wait()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            # Tasks run first, so that the elements they send are fetched together.
            self._clock.conductor.resume_last(self._strand)

    @property
    def next_cycle(self) -> int:
        """See ``Network``. Before this cycle, no unit sees its burst complete either."""
        return next_event(self._arrays.world)

    @property
    def cycle(self) -> int:
        network, memory = self._arrays.network, self._arrays.world.memory
        return max(0 if network is None else network.cycle, memory.progress.now_cycle)

    def advance(self, horizon_cycle: int, quiet_cycle: int) -> None:
        """Let the loop advance while all stages wait."""
        control = self._arrays.world.control
        control.horizon_cycle = horizon_cycle
        control.quiet_cycle = quiet_cycle
        self._carries += 1
        self._clock.running += 1
        self._schedule()

    def _touch(self, stage: int, _: object) -> None:
        self._woken.append(stage)
        self._touched.append(stage)
        self._schedule()

    def _go(self, _: object) -> None:
        self._scheduled = False
        clock = self._clock
        if clock.stopped or self.gave_up:
            return
        self._is_published = False
        try:
            touched, self._touched = self._touched, []
            for stage in touched:
                self._absorb(stage)
            while True:
                self._arrays.link()
                if not self._run():
                    self._boundary.disarm()
                    clock.conductor.pause()
                    self._schedule()
                    return
                self._submit()
                self._answer()
                self._boundary.emit()
                if not self._boundary.arm():
                    break
        except (UnfitError, OverflowError):
            self.publish()
            self.close(keeps=False)
            self.gave_up = True
            self._over.set()
        else:
            self._rest()

    def _absorb(self, number: int) -> None:
        """Make a woken stage ready, if its element, credit or answer has arrived."""
        arrays = self._arrays
        stage = arrays.world.stages[number]
        status = stage.status
        if status == c.OFF_CHIP:
            stage.now = arrays.stages[number].unit.now
        elif status != c.WAITS_FOR_PACE and not self._boundary.fetch_awaited(number):
            return
        wake(arrays.world, number)

    def _run(self) -> bool:
        """Run the loop until all stages wait; False if it returned early."""
        arrays, transitions = self._arrays, 0
        control = arrays.world.control
        while transitions < _MOST_FOUND and not self._clock.stopped:
            reason, about = arrays.run(self._clock.pace_cycle, _BUDGET)
            if control.changes:
                self._on_chip.record(arrays.world.ledger.rows[: control.changes].tolist())
                control.changes = 0
            if reason == c.UNFIT:
                raise UnfitError
            if reason in (c.AT_REST, c.BUDGET_SPENT):
                return bool(reason == c.AT_REST)
            if reason == c.UNKNOWN_CODE:
                automaton = arrays.stages[about].automaton
                automaton.find_transition(control.unknown_state, control.unknown_code)
                if not arrays.pays():
                    raise UnfitError
                transitions += 1
            elif reason == c.SLOTS_FULL:
                arrays.grow(about)
            elif reason == c.QUEUE_FULL:
                arrays.enlarge_queue(about)
            arrays.link()
        return False

    def _submit(self) -> None:
        world = self._arrays.world
        if not world.control.submitted:
            return
        world.control.submitted = 0
        for number in np.flatnonzero(world.stages.rows["status"] == c.SUBMITS).tolist():
            assert self._off_chip is not None
            row, stage = world.stages[number], self._arrays.stages[number]
            unit, region = stage.unit, stage.region
            assert region is not None
            operation = world.operations[row.pc - 1]
            tile = operation.sends
            if operation.source >= 0:
                tile = number_in(world, row, operation.source)
            size = world.bursts[operation.amount]
            burst = region.burst(size.rows, size.row_bytes, tile)
            row.status = c.OFF_CHIP
            unit.now = row.now
            try:
                self._off_chip.submit(unit, burst)
            except BaseException as error:
                pass_signals(error)
                raise UnfitError from error
            unit.off_chip_bytes += burst.rows * burst.row_bytes

    def _answer(self) -> None:
        """Wake the tasks whose bursts are complete."""
        control, memory = self._arrays.world.control, self._arrays.memory
        if memory is not None and control.answered:
            units = memory.answered(control.answered)
            if isinstance(self._off_chip, LoggedOffChip):
                self._off_chip.write(units)
            for unit in units:
                self._clock.wake(unit)
            control.answered = 0

    def _rest(self) -> None:
        """Count the woken stages as waiting."""
        woken, self._woken = self._woken, []
        arrays, clock = self._arrays, self._clock
        for number in woken:
            unit = arrays.stages[number].unit
            unit.wait = self._waiting
            unit.strand.parked = True
        stages, control = arrays.world.stages, arrays.world.control
        if control.too_far:
            control.too_far = 0
            for number in np.flatnonzero(stages.rows["status"] == c.PACED).tolist():
                stages[number].status = c.WAITS_FOR_PACE
                unit = arrays.stages[number].unit
                unit.now = stages[number].now
                clock.note_pacing(unit)
        carries, self._carries = self._carries, 0
        clock.now = max(clock.now, self.cycle)
        clock.leave(len(woken) + carries)
        if not control.live:
            self._over.set()

    def publish(self) -> None:
        if not self._is_published:
            self._is_published = True
            publish(self._arrays, self._boundary)

    def close(self, *, keeps: bool = True) -> None:
        """Release all but the published progress; with ``keeps``, the next run uses the tables."""
        if self.gave_up:
            return
        for automaton in {stage.automaton for stage in self._arrays.stages}:
            automaton.close()
        if keeps:
            self._arrays.tables.keep()
        self._is_published = True
        self._clock.network, self._clock.memory = self._arrays.network, self._off_chip
        del self._arrays, self._boundary


def region_of(
    plan: Plan,
    views: Views,
    channels: Sequence[Channel],
    may_compile: Sequence[bool],
    network: Links | None,
) -> Region | None:
    """Return the region of operators that need no task; None if every operator needs a task.

    ``channels`` are in edge order, ``may_compile`` in node order.
    """
    hops = [max(channel.forward_cycles, channel.backward_cycles) for channel in channels]
    if max(hops, default=0) > c.FAR:
        return None
    behaving = {kind: behaving_as(kind) for kind in {type(node.operator) for node in plan.nodes}}
    turning = {kind for kind, base in behaving.items() if vars(base).get("turns", False)}
    tables, likeness = Tables.take(), Likeness()
    automata: dict[Hashable, Automaton | None] = {}
    stages: list[Stage] = []
    number = [c.OUTSIDE] * len(plan.nodes)
    rows = zip(plan.nodes, views.units, views.inputs, views.outputs, may_compile, strict=True)
    for index, (node, unit, inputs, outputs, may) in enumerate(rows):
        operator = node.operator
        kind = type(operator)
        if not may or kind not in turning:
            continue
        key = likeness.of(node, unit, outputs)
        if key not in automata:
            ports = views[index]
            turns = likeness.keeps(operator, behaving[kind]) and _is_fit(ports)
            is_known = is_ours(behaving[kind]) and likeness.is_plain(operator)
            options = (
                ports.interval_cycles, unit.registers, ports.repeats, ports.region is None
            )  # fmt: skip
            of_all_runs = (key, *options) if is_known else None
            automata[key] = tables.automaton(of_all_runs, operator, ports) if turns else None
        automaton = automata[key]
        if automaton is not None:
            number[index] = len(stages)
            sinks = tuple(map(_channel, outputs))
            stages.append(Stage(unit, automaton, inputs, sinks, views.region(index)))
    if not stages:
        return None
    memory: OffChip | None = views.off_chip
    if isinstance(memory, LoggedOffChip):
        memory = memory.memory
    try:
        joints = _joints(plan, views, channels, number)
        flat = memory if type(memory) is FlatMemory else None
        arrays = Arrays(tables, stages, joints, network=network, memory=flat, log=views.log)
    except OverflowError:
        return None
    return Region(arrays, likeness, views)


def _joints(
    plan: Plan, views: Views, channels: Sequence[Channel], number: Sequence[int]
) -> list[Joint]:
    """Return the channels of stages; ``number`` is the stage of each node."""
    joints = []
    for at, (edge, channel) in enumerate(zip(plan.edges, channels, strict=True)):
        source, output, target = edge.producer, edge.output, edge.consumer
        producer, consumer = number[source.index], number[target.index]
        if producer >= 0 or consumer >= 0:
            sink = views.outputs[source.index][output]
            assumed = sink if producer >= 0 and isinstance(sink, AssumedSink) else None
            joints.append(Joint(at, channel, edge.type.rank, assumed, producer, consumer))
    return joints


def _channel(sink: Sink) -> Channel | None:
    if isinstance(sink, AssumedSink):
        return sink.channel
    return sink if isinstance(sink, Channel) else None


def _is_fit(ports: Ports) -> bool:
    """Whether the ports of an operator with turns can be recorded."""
    # Announced reads cannot be recorded: a table would announce one element at a time.
    announces = ports.region is not None and not ports.region.write
    if announces and prefetching(ports.off_chip) is not None:
        return False
    return all(_is_coded(stream.value) for stream in (*ports.input_types, *ports.output_types))


def _is_coded(described: ValueType) -> bool:
    if isinstance(described, TupleType):
        return all(map(_is_coded, described.items))
    return type(described) in (TileType, SelectorType, BoolType)
