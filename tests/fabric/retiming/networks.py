"""Random determinate networks, with every operation of a unit on a channel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hypothesis import strategies as st
from typing_extensions import override

from fabric import Dim, Hardware, Program, SelectorType, Stream, StreamType
from fabric.extend import BoolType, Element, Operator, Ports, Wiring
from fabric.graph.hardware.latency import Hop
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.program import hardware_scope
from fabric.timing.engine.ports import Source
from fabric.timing.retiming.record import Record
from operators import Add, Map, Parallelize, Partition, Reassemble, Repeat
from tests import definitions
from tests.deadlock import test_random
from tests.deadlock.parts import feedback
from tests.fabric.retiming import real
from tests.fabric.retiming.real import Run
from tests.operators.driving import Choices, Emit, encode, selector
from tests.operators.random_programs import Meant, Random, twice
from tests.programs.loading import REGISTERED


@dataclass(frozen=True)
class Network:
    program: Program
    hops: dict[str, Hop] = field(default_factory=dict)
    seen: tuple[list[Element], ...] = ()

    @cached_property
    def options(self) -> list[str]:
        return [edge.key for edge in elaborate(self.program).edges]

    def recorded(self, depths: Sequence[int]) -> tuple[Record | None, Run]:
        return real.recorded(self.program, self._begun(depths), self.hops)

    def run(self, depths: Sequence[int]) -> Run:
        return real.run(self.program, self._begun(depths), self.hops)

    def _begun(self, depths: Sequence[int]) -> dict[str, int]:
        for collected in self.seen:
            collected.clear()
        return dict(zip(self.options, depths, strict=True))


@dataclass(frozen=True)
class Steps(Operator):
    steps: tuple[str, ...]
    rounds: int | None = None
    counts: tuple[Dim, ...] = (1,)

    def __call__(self, *inputs: Stream) -> tuple[Stream, ...]:
        return self.wire(*inputs)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return tuple(StreamType((count,), BoolType()) for count in self.counts)

    @override
    async def run(self, ports: Ports) -> None:
        done, start = 0, ports.now
        while self.rounds is None or done < self.rounds:
            for step in self.steps:
                if step == "n":
                    start = ports.now
                elif not await _step(ports, step, start):
                    return
            done += 1


async def _step(ports: Ports, step: str, start: int) -> bool:
    what, number, later = step[0], int(step[1:].partition("+")[0]), step.partition("+")[2]
    match what:
        case "r":
            return await ports.inputs[number].receive() is not None
        case "p":
            return await ports.inputs[number].peek() is not None
        case "t":
            ports.inputs[number].take()
        case "s":
            await ports.outputs[number].send((True, 0))
        case "v":
            await ports.outputs[number].reserve()
        case "w":
            ports.outputs[number].put((True, 0))
        case "a":
            await ports.outputs[number].send_at((True, 0), ports.now + int(later))
        case "b":
            return await _busy(ports, ports.inputs[number], int(later))
        case "l":
            await ports.outputs[number].send_at((True, 0), start + int(later))
        case _:
            ports.unit.charge(number)
    return True


async def _busy(ports: Ports, source: Source, cycles: int) -> bool:
    """Receive an element and be busy until ``cycles`` after its arrival; False at the end."""
    arrivals = ports.arrivals()
    if not await arrivals.show(source):
        return False
    assert await arrivals.earliest() is source
    arrivals.busy_until(cycles)
    source.take()
    return True


_READS = (("r",), ("p", "t"), ("p", "r"), ("b+0",), ("b+4",))
_WRITES = (("s",), ("s", "s"), ("v", "w"), ("a+0",), ("a+5",), ("l+7",), ("l+2", "l+3"))


@st.composite
def of_steps(draw: st.DrawFn) -> Network:
    """Return a network of two to eight operators, some with a loop."""
    with Program("steps", channel_depth=2) as program:
        loops = [feedback(1)] if draw(st.integers(0, 3)) == 0 else []
        streams: list[Stream] = []
        for _ in range(draw(st.integers(1, 2))):
            streams += _source(draw)
        for loop in loops:
            # The loop begins with the element that the unit sends before it receives.
            first = ("s0", *draw(st.permutations(["r0", "r1", *_spread(draw, 1)])))
            inner, outer = Steps(first, draw(st.integers(1, 4)), (1, 1))(streams.pop(), loop)
            loop.connect(Steps(_steps(draw, 1, 1), None, (1,))(inner)[0])
            streams.append(outer)
        for _ in range(draw(st.integers(0, 3))):
            streams += _between(draw, streams)
        while streams:
            together = [streams.pop() for _ in range(min(len(streams), draw(st.integers(1, 2))))]
            limit = draw(st.sampled_from((None, None, 1, 2)))
            Steps(_steps(draw, len(together), 0), limit, ())(*together)
    return _with_hops(draw, program)


def _source(draw: st.DrawFn) -> tuple[Stream, ...]:
    outputs = draw(st.integers(1, 2))
    return Steps(_steps(draw, 0, outputs), draw(st.integers(1, 5)), (1,) * outputs)()


def _between(draw: st.DrawFn, streams: list[Stream]) -> tuple[Stream, ...]:
    def taken() -> Stream:
        return streams.pop(draw(st.integers(0, len(streams) - 1)))

    kind = draw(st.integers(0, 5))
    if kind == 0:
        return (Repeat(draw(st.integers(1, 3)))(taken()),)
    if kind == 1:
        source = taken()
        return Parallelize(2, source.rank, switch_cycles=draw(st.integers(0, 3)))(source)
    if kind == 2:
        # Two readers: the graph gets a Broadcast.
        source = taken()
        return (source, source)
    inputs = [taken() for _ in range(draw(st.integers(1, min(2, len(streams)))))]
    outputs = draw(st.integers(1, 2))
    rounds = draw(st.sampled_from((None, None, 1, 3)))
    return Steps(_steps(draw, len(inputs), outputs), rounds, (1,) * outputs)(*inputs)


def _steps(draw: st.DrawFn, inputs: int, outputs: int) -> tuple[str, ...]:
    """Return a round in which each port is used; the steps of one port keep their order."""
    groups: list[list[str]] = []
    for count, ways in ((inputs, _READS), (outputs, _WRITES)):
        for port in range(count):
            chosen: tuple[str, ...] = draw(st.sampled_from(ways))
            groups.append([step[0] + str(port) + step[1:] for step in chosen])
    groups += [[f"c{draw(st.integers(0, 6))}"] for _ in range(draw(st.integers(0, 2)))]
    groups += [["n"]] if draw(st.booleans()) else []
    return tuple(_shuffled(draw, groups))


def _spread(draw: st.DrawFn, port: int) -> list[str]:
    return [f"s{port}", f"c{draw(st.integers(0, 3))}"]


def _shuffled(draw: st.DrawFn, groups: list[list[str]]) -> Iterator[str]:
    order = draw(st.permutations([at for at, group in enumerate(groups) for _ in group]))
    for at in order:
        yield groups[at].pop(0)


@st.composite
def of_scripts(draw: st.DrawFn) -> Network:
    """Return one of the networks of the tests of deadlocks."""
    return _with_hops(draw, draw(test_random.networks(merging=False)).program)


@st.composite
def of_operators(draw: st.DrawFn) -> Network:
    """Return a network of up to a dozen shipped operators, with bare stops in its streams."""
    made = _Determinate(Choices(draw(st.binary(min_size=150, max_size=150))), functional=False,
                        operators=draw(st.integers(7, 12)))  # fmt: skip
    return _with_hops(draw, made.program, tuple(seen for seen, _, _ in made.ends))


class _Determinate(Random):
    def _route(self, of: Meant) -> Iterator[Meant]:
        """Partition, double every part, and reassemble, one part at a time."""
        choices = self._choices
        rank = choices.below(of.dims)
        steered = of.dims - rank
        if of.dims > 4:
            yield of
            return
        sets = definitions.at_depth(lambda _: {choices.below(2)}, steered, of.tensor)
        made = definitions.map_values(selector(2), steered, sets)
        kind = StreamType(of.stream.shape[:steered], SelectorType(2, hits=1))
        selectors = Emit(kind, encode(made, steered, choices.maybe))()
        parts = Partition(2, rank)(of.stream, selectors)
        doubled = [Map(Add())(part, part) for part in parts]

        def routed(part: Any, _hits: set[int]) -> Any:
            return [definitions.map_values(twice, rank, part)]

        tensor = definitions.at_depth(routed, steered, of.tensor, sets)
        yield Meant(Reassemble(rank)(doubled, selectors), tensor)


def _with_hops(draw: st.DrawFn, program: Program, seen: tuple[list[Element], ...] = ()) -> Network:
    network = Network(program)
    length = st.integers(1, 4)
    longer = st.dictionaries(st.sampled_from(network.options), st.builds(Hop, length, length))
    return Network(program, draw(st.one_of(st.just({}), longer)), seen)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    with hardware_scope(draw(st.sampled_from((Hardware(), Hardware().of_wires(), REGISTERED)))):
        return draw(st.one_of(of_steps(), of_steps(), of_scripts(), of_operators()))
