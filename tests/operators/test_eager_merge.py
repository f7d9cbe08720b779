"""EagerMerge: order of arrival, ties, sub-tensors, clocks and unread outputs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

import fabric as fab
from fabric.extend import Empty, Ports, Wiring
from operators import EagerMerge, Partition
from tests.bases import Sink, Source
from tests.fabric.trace.recording import record
from tests.own import Anything
from tests.schedules import SCHEDULES, schedule


@dataclass(frozen=True)
class Script(Source):
    conducted = True

    steps: tuple[tuple[int, Any, int], ...]
    shape: tuple[fab.Dim, ...]

    @override
    def infer(self, wiring: Wiring, *inputs: fab.Stream) -> tuple[fab.StreamType, ...]:
        return (fab.StreamType(self.shape, Anything()),)

    @override
    async def run(self, ports: Ports) -> None:
        for cycle, value, stop in self.steps:
            ports.unit.charge(max(0, cycle - ports.unit.now))
            if isinstance(value, Empty):
                await ports.sink.send_bare(stop, value.dimension)
            else:
                await ports.sink.send((value, stop))


@dataclass(frozen=True)
class Seen(Sink):
    output: str

    @override
    async def run(self, ports: Ports) -> None:
        seen = ports.stored.setdefault(self.output, [])
        while (element := await ports.source.receive()) is not None:
            SEEN[self.output].append((ports.unit.now, *element))
            seen.append(element)


@dataclass(frozen=True)
class Fails(Source):
    cycle: int

    @override
    def infer(self, wiring: Wiring, *inputs: fab.Stream) -> tuple[fab.StreamType, ...]:
        return (fab.StreamType((1,), Anything()),)

    @override
    async def run(self, ports: Ports) -> None:
        await ports.clock.reach(ports.unit, self.cycle)
        raise ValueError("no data")


SEEN: dict[str, list[Any]] = {}


def merged(*scripts: tuple[tuple[int, Any, int], ...], rank: int = 0) -> fab.Report:
    SEEN.update(data=[], selectors=[])
    inner = (2,) * rank
    with fab.Program("merge") as program:
        data, selectors = EagerMerge(rank)([Script(steps, (3, *inner))() for steps in scripts])
        Seen("data")(data)
        Seen("selectors")(selectors)
    return fab.simulate(program)


def test_an_element_that_is_sent_later_but_visible_earlier_wins() -> None:
    merged(((9, "late", 0),), ((2, "early", 0), (8, "second", 0)))
    assert ["early", "second", "late"] == [value for _, value, _ in SEEN["data"]]


@pytest.mark.parametrize("order", SCHEDULES)
def test_one_empty_input_is_enough_to_go_on(order: str | int, tmp_path: Path) -> None:
    SEEN.update(data=[])
    with fab.Program("cut short") as program:
        data, _ = EagerMerge()([Script(((8, "a", 0),), (1,))(), Fails(2)(), Fails(3)()])
        Seen("data")(data)
    with schedule(order):
        report, trace = record(program, tmp_path)
    assert "error" == report.status
    assert [("reach", True, 2)] == trace.rows(
        "SELECT waits_for, any_of, count(channel) FROM states JOIN waiting USING (unit) "
        "JOIN units USING (unit) WHERE name = 'eager_merge_1' GROUP BY ALL"
    )


def test_one_output_is_enough_and_none_is_refused() -> None:
    SEEN.update(a=[], b=[])
    with fab.Program("one") as program:
        inputs = [Script(((1, "a", 0),), (1,))(), Script(((5, "b", 0),), (1,))()]
        data, selectors = EagerMerge()(inputs)
        for name, stream in zip("ab", Partition(2)(data, selectors), strict=True):
            Seen(name)(stream)
    assert "completed" == fab.simulate(program).status
    assert [["a"], ["b"]] == [[value for _, value, _ in SEEN[name]] for name in "ab"]
    with fab.Program("none") as program:
        EagerMerge()([Script((), (1,))()])
    with pytest.raises(fab.ProgramError) as caught:
        fab.simulate(program)
    assert caught.value.message == (
        "eager_merge_1: none of its 2 outputs is read by an operator: "
        "expected a reader of one of them"
    )
