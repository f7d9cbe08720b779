"""Compares the stamps and credits of channels with a model that steps through every cycle."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fabric
from fabric import Program, ProgramError
from fabric.graph.values.dims import Claim
from fabric.graph.values.expression import Symbol
from fabric.graph.values.value import Empty
from fabric.messages.place import Place
from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from fabric.timing.engine.channel import AssumedSink, Discard
from tests.fabric.graphs import Graph, Wire, graphs, run_graph
from tests.fabric.scripted import Stage
from tests.operators.driving import encode
from tests.profiles import examples
from tests.schedules import SCHEDULES


@dataclass
class _Edge:
    depth: int
    hop: fabric.Hop
    visible: deque[int] = field(default_factory=deque)
    taken: list[int] = field(default_factory=list)
    sent: int = 0
    closed: int | None = None


def _stepped(  # noqa: C901, PLR0912 - the whole rule on one page
    nodes: list[tuple[int, bool]], edges: list[Wire], count: int
) -> list[list[int]]:
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
        # The end of a channel is seen in the same cycle, so readers with lower numbers look again.
        if not any(
            todo[node][0] == "end"
            and channels[todo[node][1]].closed == cycle
            and busy_until[node] <= cycle
            for node in running
        ):
            cycle += 1
    return clocks


class TestRecurrence:
    @examples(quick=37, deep=300)
    @given(graphs(), st.sampled_from(SCHEDULES))
    def test_matches_a_model_that_steps_through_cycles(
        self, graph: Graph, order: str | int
    ) -> None:
        clocks, report = run_graph(*graph, order)

        assert "completed" == report.status
        assert _stepped(*graph) == clocks

    @examples(quick=12, deep=100)
    @given(graphs())
    def test_peak_occupancy_is_the_smallest_depth_that_changes_nothing(self, graph: Graph) -> None:
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


def _done(asked: Awaitable[Any]) -> Any:
    async def awaits() -> Any:
        return await asked

    try:
        awaits().send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


def _groups(tensor: Any, dims: int) -> list[list[int]]:
    if dims == 1:
        return [[len(tensor)]]
    parts = [_groups(part, dims - 1) for part in tensor]
    inner = [[size for part in parts for size in part[each]] for each in range(dims - 1)]
    return [*inner, [len(tensor)]]


@examples(quick=12, deep=1000)
@given(st.data())
def test_sizes_of_groups_are_counted_as_a_tensor_has_them(data: st.DataObject) -> None:
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


def test_depth_and_latency_of_a_run_override_the_program() -> None:
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
