"""What readers do with bare stops, call for call, on ends of channels that note what is done."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fabric import OperatorError, Selector, StreamType, Tile, TupleType
from fabric.extend import Element
from operators.streams.reading import (
    Guided,
    Lockstep,
    Track,
    Values,
    load_cycles,
    placed,
    send,
    size_bytes,
    unpacked_types,
)
from tests.operators.driving import FLOAT, NUMBER, tile
from tests.operators.writing import read, write


class _End:
    """Both ends of a channel: reads from ``text``, and notes what is done in ``log``."""

    def __init__(self, log: list[str], text: str = "", name: str = "") -> None:
        self._log = log
        self._name = name
        self._elements = read(text)
        self.producer = SimpleNamespace(name=f"source{name}")

    async def peek(self) -> Element | None:
        return self._elements[0] if self._elements else None

    async def receive(self) -> Element | None:
        return self.take() if self._elements else None

    def take(self) -> Element:
        element = self._elements.pop(0)
        self._log.append(f"take{self._name} {write([element])}")
        return element

    async def send(self, element: Element) -> None:
        self._log.append(f"send {write([element])}")

    async def send_bare(self, level: int, dimension: int) -> None:
        self._log.append(f"send -{dimension}|S{level}")


def _failure(message: str) -> OperatorError:
    return OperatorError(message, operator="", cycle=0, element=0)


def _ports(*inputs: _End, dimensions: int = 3) -> Any:
    types = (StreamType((2,) * dimensions, NUMBER),) * len(inputs)
    return SimpleNamespace(
        inputs=inputs, input_types=types, failure=_failure, follow=lambda _: None
    )


class TestTrack:
    @pytest.mark.parametrize(
        ("last", "described"),
        [
            ((5, 1), "6 at [0, 2, 0] of source closes 0 dimensions"),
            (None, "6 at [0, 1, 2] of source closes 0 dimensions"),
        ],
    )
    def test_it_goes_on_from_where_it_is_put(self, last: Any, described: str) -> None:
        """Behind the last element that is known, or at the very coordinates."""
        track = Track(_ports(_End([], "")), 0)
        before, after = read("4|S2 6")
        track.passed(before)
        track.resume([2, 1, 0], last)
        track.passed(after)

        assert track.described == described


class TestValues:
    @pytest.mark.parametrize(
        ("held", "expected"),
        [
            (False, ["take 0", "show 0|S0", "take -0|S2", "send -1|S3"]),
            (True, ["show 0|S0", "take 0", "send -1|S3", "take -0|S2"]),
        ],
    )
    async def test_bare_stops_are_passed_on(self, held: bool, expected: list[str]) -> None:
        """They are not shown; added dimensions are inside. Held, they keep their slot till then."""
        log: list[str] = []
        end: Any = _End(log, "0 -0|S2")
        values = Values[int](end, end, adds=1, held=held)

        async for value, stop in values:
            log.append(f"show {value}|S{stop}")
            if held:
                values.take()

        assert expected == log

    async def test_send_takes_either(self) -> None:
        """A value goes as it is, a bare stop by its own way."""
        log: list[str] = []
        end: Any = _End(log)

        for value, stop in read("3|S1 -1|S2"):
            await send(end, value, stop)

        assert ["send 3|S1", "send -1|S2"] == log


class TestLockstep:
    @pytest.mark.parametrize(
        ("held", "expected"),
        [
            (False, ["takeA -1|S2", "takeB -1|S2", "send -0|S1", "show 0"]),
            (True, ["send -0|S1", "takeA -1|S2", "takeB -1|S2", "show 0"]),
        ],
    )
    async def test_what_is_empty_outside_of_groups_is_passed_on(
        self, held: bool, expected: list[str]
    ) -> None:
        """Folding away one dimension: the bare stop of dimension 1 becomes one of dimension 0."""
        log: list[str] = []
        ends = _End(log, "-1|S2 0|S2", "A"), _End(log, "-1|S2 1|S2", "B")
        sink: Any = _End(log)

        async for values, _ in Lockstep[int](_ports(*ends), sink, adds=-1, held=held):
            log.append(f"show {values[0]}")
            break

        assert expected == log

    @pytest.mark.parametrize("passes", [True, False])
    async def test_what_is_empty_inside_of_a_group_is_shown(self, passes: bool) -> None:
        """It may close the group; without a sink, all bare stops are shown."""
        log: list[str] = []
        end = _End(log, "0 -0|S2" if passes else "0 -1|S2")
        shown = []
        sink: Any = end if passes else None
        inputs = Lockstep[Any](_ports(end), sink, adds=-1)

        async for (value,), stop in inputs:
            inputs.take()
            shown.append((value, stop))

        assert read("0 -0|S2" if passes else "0 -1|S2") == shown


class TestGuided:
    async def test_each_value_has_a_group(self) -> None:
        """Bare stops outside of groups belong together, also where they only close more."""
        log: list[str] = []
        ends = _End(log, "0 -0|S1 1 -0|S1", "A"), _End(log, "5|S1 -1|S2 6|S2", "B")
        ports, sink = _ports(*ends), _End(log)
        here, there = Track(ports, 0), Track(ports, 1, 1)

        values = Guided[int](ports, here, there, sink, inner=1)  # type: ignore[arg-type]
        async for value in values:
            there.passed(await ends[1].receive())
            log.append(f"show {value}")

        assert [
            *("takeA 0", "takeB 5|S1", "show 0"),
            *("takeA -0|S1", "takeB -1|S2", "send -1|S2"),
            *("takeA 1", "takeB 6|S2", "show 1", "takeA -0|S1"),
        ] == log


class TestValuesInMemory:
    def test_tuples(self) -> None:
        """Tiles inside of tuples count; what is in no memory is not loaded."""
        near, far = tile(1), tile(2).placed(in_memory=True)
        other = Tile(3, 5, np.dtype(np.float16), in_memory=True)
        selector = Selector((1,), 9)
        value = (near, (far, True, other), selector)
        unit: Any = SimpleNamespace(transfer=lambda size: 100 + size)

        assert [0, 104, 130, 234, 0] == [
            load_cycles(unit, each) for each in (near, far, other, value, selector)
        ]
        assert [4, 30, 1, selector.size_bytes, 4 + 4 + 1 + 30 + selector.size_bytes] == [
            size_bytes(each) for each in (near, other, True, selector, value)
        ]
        for in_memory in (True, False):
            found: Any = placed(value, in_memory=in_memory)
            assert [in_memory] * 3 == [
                each.in_memory for each in (found[0], found[1][0], found[1][2])
            ]
            assert (True, selector) == (found[1][1], found[2])

    def test_types(self) -> None:
        """The items of tuples are operands of their own."""
        inner = TupleType((FLOAT, NUMBER))
        assert (NUMBER, FLOAT, FLOAT, NUMBER) == unpacked_types([NUMBER, TupleType((FLOAT, inner))])
