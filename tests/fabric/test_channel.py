"""Channels: time stamps and credits, against a model that steps through every cycle."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

import fabric
from fabric import (
    ConfigurationError,
    Feedback,
    Program,
    ProgramError,
    Stream,
    StreamType,
    Tile,
    simulate,
)
from fabric.extend import BoolType, Element, Observer, Ports, Unit, Watched, Wiring
from fabric.graph.values.dims import Claim
from fabric.graph.values.expression import Symbol
from fabric.graph.values.value import Empty
from fabric.messages.telling.place import Place
from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from fabric.timing.engine.channel import AssumedSink, Channel, Discard
from fabric.timing.engine.checked_operator import LaterSink
from fabric.timing.engine.clock import Way
from fabric.timing.engine.observed_channel import NetworkedChannel, ObservedChannel
from fabric.timing.engine.unit import Reading
from fabric.timing.network.links import NO_CYCLE, Links
from tests.bases import Hop
from tests.fabric.graphs import Graph, Wire, graphs, run_graph
from tests.fabric.scripted import Charge, Stage
from tests.operators.driving import encode
from tests.own import Anything
from tests.profiles import examples
from tests.schedules import SCHEDULES


@dataclass
class _Edge:
    """A channel of the model: visible cycles of what it holds, and when slots come free."""

    depth: int
    hop: fabric.Hop
    visible: deque[int] = field(default_factory=deque)
    taken: list[int] = field(default_factory=list)
    sent: int = 0
    closed: int | None = None


def _stepped(  # noqa: C901, PLR0912 - the whole rule on one page
    nodes: list[tuple[int, bool]], edges: list[Wire], count: int
) -> list[list[int]]:
    """Return the clocks after every operation of every node, one cycle at a time.

    A value sent in a cycle is seen a hop later, and so is a credit, so that within a cycle no node
    sees what another does.
    """
    channels = [_Edge(edge[2], edge[3]) for edge in edges]
    clocks: list[list[int]] = [[] for _ in nodes]

    def life(node: int) -> Iterator[tuple[str, int]]:
        work, first = nodes[node]
        for _ in range(count):
            yield from (("receive", e) for e, edge in enumerate(edges) if edge[1] == node)
            if first:
                yield "work", work
            yield from (("send", e) for e, edge in enumerate(edges) if edge[0] == node)
            if not first:
                yield "work", work
        yield from (("end", e) for e, edge in enumerate(edges) if edge[1] == node)
        yield "close", 0

    lives = [life(node) for node in range(len(nodes))]
    todo = [next(one) for one in lives]
    busy_until = [0] * len(nodes)
    running = set(range(len(nodes)))
    cycle = 0
    while running:
        for node in sorted(running):
            while node in running and busy_until[node] <= cycle:
                what, which = todo[node]
                channel = (
                    channels[which]
                    if what in ("receive", "send", "end")
                    else _Edge(1, fabric.Hop())
                )
                if what == "receive":
                    if not channel.visible or channel.visible[0] > cycle:
                        break
                    channel.visible.popleft()
                    channel.taken.append(cycle)
                    clocks[node].append(cycle)
                elif what == "send":
                    freed = sum(
                        taken + channel.hop.backward_cycles <= cycle for taken in channel.taken
                    )
                    if channel.sent - freed >= channel.depth:
                        break
                    channel.sent += 1
                    channel.visible.append(cycle + channel.hop.forward_cycles)
                    clocks[node].append(cycle)
                elif what == "work":
                    busy_until[node] = cycle + which
                elif what == "end":
                    if channel.closed is None or channel.closed > cycle:
                        break
                else:
                    clocks[node].append(cycle)
                    running.discard(node)
                    for edge, other in zip(edges, channels, strict=True):
                        if edge[0] == node:
                            other.closed = cycle
                    break
                todo[node] = next(lives[node])
        # A close is seen in its own cycle: look again at readers with a lower number.
        if not any(
            todo[node][0] == "end"
            and channels[todo[node][1]].closed == cycle
            and busy_until[node] <= cycle
            for node in running
        ):
            cycle += 1
    return clocks


class TestRecurrence:
    @examples(quick=75, deep=300)
    @given(graphs(), st.sampled_from(SCHEDULES))
    def test_matches_a_model_that_steps_through_cycles(
        self, graph: Graph, order: str | int
    ) -> None:
        """Every operation of random graphs with forks and joins happens in the same cycle."""
        clocks, report = run_graph(*graph, order)

        assert "completed" == report.status
        assert _stepped(*graph) == clocks

    @examples(quick=25, deep=100)
    @given(graphs())
    def test_columns_of_a_unit_sum_to_the_cycles(self, graph: Graph) -> None:
        """Every cycle of every unit is counted once."""
        _, report = run_graph(*graph)

        for unit in report.units:
            spent = (
                unit.busy_cycles
                + unit.empty_cycles
                + unit.full_cycles
                + unit.credit_cycles
                + unit.hbm_cycles
                + unit.capacity_cycles
                + unit.idle_cycles
            )
            assert report.cycles == spent

    @examples(quick=25, deep=100)
    @given(graphs())
    def test_peak_occupancy_is_the_smallest_depth_that_changes_nothing(self, graph: Graph) -> None:
        """With every depth lowered to the peak, all clocks stay; no deeper slot was ever used."""
        nodes, edges, count = graph
        clocks, report = run_graph(*graph)
        peaks = {each.name: each.peak_occupancy for each in report.channels_counters}
        ports: dict[tuple[int, int], int] = {}
        lowered: list[Wire] = []
        for producer, consumer, depth, hop in edges:
            out = [edge[0] for edge in lowered].count(producer)
            into = ports[consumer, 0] = ports.get((consumer, 0), -1) + 1
            peak = peaks[f"n{producer}.{out} -> n{consumer}.{into}"]
            assert peak <= depth
            lowered.append((producer, consumer, max(1, peak), hop))

        assert clocks == run_graph(nodes, lowered, count)[0]


def _pipeline(length: int, count: int, depth: int) -> int | None:
    with Program("pipeline", channel_depth=depth) as program:
        (stream,) = Stage(count)()
        for _ in range(length - 2):
            (stream,) = Stage(count)(stream)
        Stage(count, outputs=0)(stream)
    return simulate(program).cycles


class TestAnchors:
    @pytest.mark.parametrize("depth", [2, 3, 16])
    @pytest.mark.parametrize(("length", "count"), [(2, 1), (4, 1000), (16, 50), (128, 7)])
    def test_pipeline(self, length: int, count: int, depth: int) -> None:
        """K operators pass N elements in N + K - 1 cycles at depth 2 and more."""
        assert count + length - 1 == _pipeline(length, count, depth)

    def test_pipeline_of_depth_1(self) -> None:
        """At depth 1 a credit comes back too late for the next cycle: twice the interval."""
        assert 2002 == _pipeline(4, 1000, 1)

    def test_fork_and_join(self) -> None:
        """One stage a branch and a sink, behind an inferred Broadcast: N + 4."""
        count = 100
        with Program("fork") as program:
            (source,) = Stage(count)()
            (left,) = Stage(count)(source)
            (right,) = Stage(count)(source)
            (joined,) = Stage(count)(left, right)
            Stage(count, outputs=0)(joined)

        assert count + 4 == simulate(program).cycles

    @pytest.mark.parametrize("count", [2, 10, 100])
    def test_sorted_merge(self, count: int) -> None:
        """Two sources of N / 2 numbers, a merge that charges 1 per element, a sink: N + 2."""
        with Program("merge", channel_depth=count) as program:
            left, right = _Numbers(0, count)(), _Numbers(1, count)()
            Charge()(_SortedMerge()(left, right))

        assert count + 2 == simulate(program).cycles

    def test_ring(self) -> None:
        """One element goes round K operators in K cycles a lap."""
        length, laps = 5, 7
        clocks: list[int] = []
        with Program("ring") as program:
            loop = Feedback(StreamType((laps,), BoolType()))
            stream = _Starter(laps, clocks)(loop)
            for _ in range(length - 1):
                stream = _Hop()(stream)
            loop.connect(stream)
        report = simulate(program)

        assert "completed" == report.status
        assert [length * lap for lap in range(1, laps + 1)] == clocks


@dataclass(frozen=True)
class _Hop(Hop):
    """Pass a stream on without charging anything."""

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)


@dataclass(frozen=True)
class _Numbers(_Hop):
    """Send every second number from ``first`` to ``stop``, one a cycle."""

    first: int
    stop: int

    @override
    def __call__(self) -> Stream:  # type: ignore[override]
        return self.wire()[0]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((self.stop // 2,), Anything()),)

    @override
    async def run(self, ports: Ports) -> None:
        for number in range(self.first, self.stop, 2):
            element: Any = number, 0
            await ports.sink.send(element)
            ports.unit.charge(1)


@dataclass(frozen=True)
class _SortedMerge(_Hop):
    """Pass on the smaller of two heads and charge 1 for it."""

    @override
    def __call__(self, left: Stream, right: Stream) -> Stream:  # type: ignore[override]
        return self.wire(left, right)[0]

    @override
    async def run(self, ports: Ports) -> None:
        while True:
            heads: list[Any] = [(await source.peek(), source) for source in ports.inputs]
            present = [(head, source) for head, source in heads if head is not None]
            if not present:
                return
            head, source = min(present, key=lambda pair: int(pair[0][0]))
            source.take()
            await ports.sink.send(head)
            ports.unit.charge(1)


@dataclass(frozen=True)
class _Starter(_Hop):
    """Send one element round ``laps`` times."""

    laps: int
    clocks: list[int]

    @override
    async def run(self, ports: Ports) -> None:
        for _ in range(self.laps):
            await ports.sink.send((True, 0))
            assert await ports.source.receive() is not None
            self.clocks.append(ports.unit.now)


class TestErrors:
    def test_depth_of_zero(self) -> None:
        """A channel holds at least one element."""
        with Program("pipeline") as program:
            (stream,) = Stage(1, name="a")()
            Stage(1, outputs=0, name="b")(stream)

        with pytest.raises(
            ProgramError,
            match=r"simulate: depths is the dict {'b\.0': 0}: "
            "expected a dict from texts to integers of at least 1",
        ):
            simulate(program, depths={"b.0": 0})

    def test_depth_of_no_channel(self) -> None:
        """A depth for a channel that does not exist says which ones do."""
        with Program("pipeline") as program:
            (stream,) = Stage(1, name="a")()
            Stage(1, outputs=0, name="b")(stream)

        with pytest.raises(
            ConfigurationError,
            match=r"test_channel\.py:\d+: --depth c\.0: no channel has that name: "
            r"expected OPERATOR\.INPUT, one of b\.0 \(did you mean b\.0\?\)$",
        ):
            simulate(program, depths={"c.0": 3})


class _Waits:
    """A clock of whom nobody waits."""

    network = None
    pace_cycle = 1 << 62

    def wake(self, _: Unit) -> None:
        pass


def _done(asked: Awaitable[Any]) -> Any:
    """Return what is there at once."""

    async def awaits() -> Any:
        return await asked

    try:
        awaits().send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


def _ends(*clocks: int) -> list[Unit]:
    units = [Unit(f"u{at}", at, Place("p.py", 1), bytes_per_cycle=1) for at in range(2)]
    for unit, now in zip(units, clocks, strict=True):
        unit.now = now
    return units


@pytest.mark.parametrize("interval", [0, 1])
def test_over_a_link_by_hand(interval: int) -> None:
    """Of 4 bytes a cycle 10 take 2.5, a bare stop none, and 4 one more; a hop is 2 cycles.

    They set out in 5, 6 and 6, or 7 where one is sent a cycle: they are through in 8, 8 and 9, seen
    2 cycles later, and without others would have been in 7, 8 and 8, or 9.
    """
    clock: Any = _Waits()
    producer, consumer = _ends(5, 8)
    links = Links([4], [[0]])
    channel: Any = NetworkedChannel("a.0 -> b.0", 3, producer, consumer, clock, fabric.Hop(2, 1))
    channel.interval_cycles = interval
    channel.way = Way(links.flows[0])
    links.flows[0].lead_to(channel)
    _done(channel.send((Tile(5, 1, np.dtype(np.int16)), 0)))
    producer.now = 6
    _done(channel.send_bare(1, 1))
    _done(channel.send((Tile(2, 1, np.dtype(np.int16)), 1)))
    last = 6 + interval
    assert (channel.way.bytes_sent, producer.now, channel.full_cycles) == (14, last, 0)
    assert channel.credit_cycles == interval
    assert (channel.under_way, channel.held_elements, channel.held_values) == (3, 3, 2)
    assert (channel.last_sent_cycle, channel.sent, channel.elements) == (last, 3, 0)
    producer.now = 9
    channel.close()
    assert (channel.ended, channel.closed_cycle) == (False, None)
    while links.next_cycle != NO_CYCLE:
        links.advance(0)
    assert [visible for visible, _ in channel.queue] == [10, 10, 11]
    assert [*channel.way.arrived] == [(5, 3), (6, 2), (last, 11 - last - 2)]
    assert (channel.under_way, channel.held_values, channel.last_sent_cycle) == (0, 2, last)
    assert channel.closed_cycle == 9 + 2 * interval
    # From 8 to 10 it waits for the link, and the last one it sees a cycle later.
    stops = [_done(channel.receive())[1] for _ in range(3)]
    assert (stops, consumer.now) == ([0, 1, 1], 11 + interval)
    assert (channel.way.links_cycles, channel.empty_cycles) == (3 - interval, 3 + interval)
    assert (channel.elements, channel.taken, channel.left_over) == (2, 3, 0)
    assert (channel.last_taken_cycle, channel.peak_occupancy) == (consumer.now, 3)
    assert [*channel.returned_cycles] == [11, 11 + interval, 12 + interval]
    assert _done(channel.receive()) is None
    assert (channel.ended, consumer.now, channel.last_sent_cycle) == (True, 11 + interval, None)


class _Told(Observer):
    """Notes what it is told of elements that are numbers."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def taken(self, element: Element, *stamps: object) -> None:
        self.told.append(("taken", element[1], *stamps))

    @override
    def left_over(self, channel: Watched, element: Element, *stamps: Any) -> None:
        self.told.append(("left over", element[1], *stamps))

    @override
    def idled(self, channel: Watched, *about: Any) -> None:
        self.told.append(("idled", *about))

    @override
    def ended(self, channel: Watched, *about: Any) -> None:
        self.told.append(("ended", *about))

    @override
    def requested(self, channel: Watched, *about: Any) -> None:
        self.told.append(("requested", *about))

    @override
    def chose(self, unit: Unit, stamp: Any) -> None:
        self.told.append(("chose", stamp))


@pytest.mark.parametrize("watched", [False, True])
def test_every_operation_by_hand(watched: bool) -> None:
    """Two slots, elements that take 2 cycles and credits that take 3.

    The first is looked at and taken later, the second heard of; a bare stop is put into a slot that
    was reserved; the third is requested for later, looked at and left over as the fourth is.
    """
    clock: Any = _Waits()
    producer, consumer = _ends(0, 1)
    ends = "a.0 -> b.0", 2, producer, consumer, clock, fabric.Hop(2, 3)
    watcher = _Told()
    channel = Channel(*ends)
    if watched:
        channel = told = ObservedChannel(*ends, 7, count().__next__)
        told.tell([watcher], watcher.taken)
    _done(channel.send((True, 3)))
    producer.now = 1
    _done(channel.send((True, 4)))
    producer.now = 2
    assert _done(channel.peek()) == _done(channel.peek()) == (True, 3)
    assert (consumer.now, channel.empty_cycles) == (2, 1)
    consumer.now = 4
    assert channel.take() == (True, 3)
    # Its credit is back in 7: for two cycles it was not taken, for three on its way.
    _done(channel.reserve())
    assert (producer.now, channel.full_cycles, channel.credit_cycles) == (7, 2, 3)
    producer.now = 9
    channel.put((Empty(1), 5))
    assert (channel.head_cycle, channel.hear(), consumer.now) == (3, (True, 4), 4)
    _done(channel.send_at((True, 6), 30))
    assert (producer.now, channel.last_sent_cycle, channel.sent) == (9, 28, 4)
    channel.grow(1)
    producer.now = 40
    _done(channel.send((True, 7)))
    assert (channel.depth, channel.held_elements, channel.held_values) == (3, 3, 2)
    assert (channel.elements, channel.taken, channel.peak_occupancy) == (2, 2, 3)
    channel.idle(20)
    assert _done(channel.receive()) == (Empty(1), 5)
    assert (consumer.now, channel.elements, channel.last_taken_cycle) == (20, 2, 20)
    assert _done(channel.peek()) == (True, 6)
    channel.discard(31)
    assert [*channel.returned_cycles][-2:] == [34, 45]
    producer.now = 45
    channel.close()
    channel.see_end()
    channel.see_end()
    assert (consumer.now, channel.empty_cycles, channel.left_over) == (45, 1 + 16 + 10 + 15, 2)
    assert (channel.elements, channel.taken, channel.peak_occupancy) == (4, 5, 2)
    # Numbers of operations, cycles after them and cycles waited; see ``Observer``.
    assert (
        watcher.told
        == [
            ("taken", 3, (0, 0, 0), (2, 2, 1), (3, 4)),
            ("taken", 4, (1, 1, 0), (6, 4, 0), (6, 3)),
            ("requested", 7, None, 30),
            ("chose", (9, 20, 0)),
            ("idled", (10, 20, 16), 9),
            ("taken", 5, (5, 9, 5, -1, 4, 7), (11, 20, 0), None),
            ("left over", 6, (7, 9, 0, 30, 7, 9), (12, 30, 10), 31),
            ("left over", 7, (8, 40, 0), None, 42),
            ("ended", (13, 45, 15)),
        ][: 9 if watched else 0]
    )


class _Asked:
    """Notes for which cycles elements are asked."""

    def __init__(self) -> None:
        self.cycles: list[int] = []
        self.send = self.send_bare = self.reserve = self.put = self.close = self.cycles.append

    def send_at(self, _: Element, cycle: int) -> None:
        self.cycles.append(cycle)


def test_later_sinks() -> None:
    """Cycles count from a later one than 0; the next run's from behind the latest asked for."""
    sink: Any = _Asked()
    later = LaterSink(sink, 10)
    assert later.next_cycle == 10
    seen = []
    for cycle in 4, 2, Reading.at(3, 8, 1), 5:
        later.send_at((True, 0), cycle)
        seen.append(later.next_cycle)
    assert (sink.cycles, seen) == ([14, 12, 13, 15], [15, 15, 15, 16])
    assert (sink.cycles[2].order, sink.cycles[2].later_cycles) == (8, 11)
    assert later.send == sink.send


def _groups(tensor: Any, dims: int) -> list[list[int]]:
    """Return the sizes of all groups of each dimension, the innermost first."""
    if dims == 1:
        return [[len(tensor)]]
    parts = [_groups(part, dims - 1) for part in tensor]
    inner = [[size for part in parts for size in part[each]] for each in range(dims - 1)]
    return [*inner, [len(tensor)]]


@examples(quick=25, deep=1000)
@given(st.data())
def test_sizes_of_groups(data: st.DataObject) -> None:
    """Groups are counted as a tensor has them, however stops close them; the last size is told.

    What the program says is compared as each group closes; the outermost has no number.
    """
    dims = data.draw(st.integers(1, 4))
    shapes: st.SearchStrategy[Any] = st.just(True)
    for _ in range(dims):
        shapes = st.lists(shapes, max_size=3)
    tensor = data.draw(shapes)
    elements = encode(tensor, dims, lambda: data.draw(st.booleans()))
    found = _groups(tensor, dims)

    def counted(*claims: Claim) -> AssumedSink:
        sink: Any = Discard()
        assumed = AssumedSink(sink, claims, dims - 1)
        for value, stop in elements:
            if isinstance(value, Empty):
                _done(assumed.send_bare(stop, value.dimension))
            else:
                _done(assumed.send((value, stop)))
        assumed.finish()
        return assumed

    assert counted().sizes == {
        each: (min(sizes), max(sizes)) for each, sizes in enumerate(found) if sizes
    }
    place = Place("p.py", 4)
    for dimension, sizes in enumerate(found):
        claim = Claim("s", dimension, Symbol("D"), 2, place)
        wrong = next((number for number, size in enumerate(sizes, 1) if size != 2), None)
        if wrong is None:
            assert counted(claim).expected == [2 if at == dimension else None for at in range(dims)]
            continue
        with pytest.raises(ProgramError) as refused:
            counted(claim)
        where = "" if dimension == dims - 1 else f" in group {wrong}"
        assert refused.value.message == (
            f"s: dimension {dimension} (D) is {sizes[wrong - 1]}{where}: expected 2, as the "
            "program assumes"
        )


def test_who_says_how_long_a_channel_is() -> None:
    """A run more than its program, the program of single channels more than of all."""

    def found(**of_the_run: Any) -> list[tuple[int, int, int]]:
        channels = Execution(program, Settings(mode="timing", **of_the_run)).machine.channels
        return [(each.depth, each.forward_cycles, each.backward_cycles) for each in channels]

    with Program("line", channel_depth=4) as program:
        (stream,) = Stage(1, name="a")()
        for name in "bcd":
            (stream,) = Stage(1, name=name)(stream)
        Stage(1, outputs=0, name="e")(stream)
    plain = (4, 1, 1)
    assert found() == [plain] * 4
    depths, hops = {"c.0": 7, "d.0": 8}, {"c.0": fabric.Hop(6, 7), "d.0": fabric.Hop(8, 9)}
    assert found(depths=depths) == [plain, (7, 1, 1), (8, 1, 1), plain]
    assert found(hops=hops) == [plain, (4, 6, 7), (4, 8, 9), plain]
    program.hops.update({"b.0": fabric.Hop(2, 3), "c.0": fabric.Hop(4, 5)})
    assert found() == [(4, 2, 3), (4, 4, 5), plain, plain]
    program.hops.clear()
    program.depths.update({"b.0": 5, "c.0": 6})
    assert found() == [(5, 1, 1), (6, 1, 1), plain, plain]
    program.hops.update({"b.0": fabric.Hop(2, 3), "c.0": fabric.Hop(4, 5)})
    assert found(depths=depths, hops=hops) == [(5, 2, 3), (7, 6, 7), (8, 8, 9), plain]
