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


def chosen() -> list[int]:
    return [selector.hits[0] for _, selector, _ in SEEN["selectors"]]


def test_order_of_arrival_and_the_selector_at_the_winners_cycle() -> None:
    # When the other input has ended, the selector need not wait until the element is visible.
    merged(((11, "a", 0), (23, "b", 0), (35, "c", 0)), ((13, "x", 0),))
    assert [(13, "a", 0), (15, "x", 0), (25, "b", 0), (37, "c", 0)] == SEEN["data"]
    assert [0, 1, 0, 0] == chosen()
    assert [13, 15, 24, 36] == [cycle for cycle, _, _ in SEEN["selectors"]]


def test_ties_go_to_the_lowest_input() -> None:
    merged(((4, "a", 0),), ((4, "b", 0),), ((4, "c", 0),))
    assert [(6, "a", 0), (6, "b", 0), (8, "c", 0)] == SEEN["data"]
    assert [0, 1, 2] == chosen()


def test_selectors_overtake_data_when_every_input_is_known() -> None:
    merged(((4, "a", 0),), ((4, "b", 0),), ())
    assert [(5, 0), (6, 1)] == [(cycle, choice.hits[0]) for cycle, choice, _ in SEEN["selectors"]]
    assert [(6, "a", 0), (6, "b", 0)] == SEEN["data"]


def test_selectors_wait_for_an_input_that_may_still_be_earlier() -> None:
    merged(((4, "a", 0),), ((6, "b", 0),))
    assert [(6, 0), (7, 1)] == [(cycle, choice.hits[0]) for cycle, choice, _ in SEEN["selectors"]]


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


def test_sub_tensors_are_not_interleaved_and_keep_their_stops() -> None:
    # The last element waits for a slot, which "b" leaves at 11.
    merged(((1, "a", 0), (9, "b", 1)), ((2, "x", 0), (2, "y", 1)), rank=1)
    expected = [(3, "a", 0), (11, "b", 1), (11, "x", 0), (13, "y", 1)]
    assert expected == SEEN["data"]
    assert [0, 1] == chosen()


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
