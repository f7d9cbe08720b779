"""Faults put into operators and channels on purpose: each makes a check of this folder fail.

What was tried, and which check finds it. A check that passes with the fault in place is one that
cannot fail.

* Every operator whose output has stops: a level one too low, one too high, a bare stop left out,
  its empty dimension one too low. Found by the definitions.
* A stream that closes a group twice is not settled, in Map, Zip, Accum, Expand, Partition and
  Streamify; a buffer keeps a stop that only closes. Found by the definitions.
* A padding row kept: SplitRows(valid_only) emits every row; the last
  chunk has one padding tile too few. Found by the definitions.
* A tie broken the other way: in Reassemble (case R3) and in EagerMerge (its own test).
* A credit that comes a cycle early: found by the closed forms of a pipeline.
* A buffer given back by the first of its readers, or never: found by the tests of the capacity.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from typing import Any
from unittest import mock

import pytest

import operators
from fabric import Program, StreamType, Tile, simulate
from fabric.extend import Allocation, Arrivals, Channel, Operator, Ports
from operators import SplitRows, bufferize, reassemble
from operators.shape import Reshape
from operators.streams.reading import Guided, Lockstep
from tests.fabric.scripted import Relay
from tests.operators import test_capacity, test_conformance_routing, test_eager_merge
from tests.operators.cases import CASES
from tests.operators.driving import NUMBER, Choices, Collect, Emit, run_cases
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule


def _defined(case: str) -> None:
    """Check 200 cases of an operator against its definition."""
    source = random.Random(case)
    for _ in range(4):
        run_cases([CASES[case](Choices(source.randbytes(48))) for _ in range(50)])


_sound = cache(_defined)
"""The same without a fault, once."""


def _pipeline() -> None:
    """Four stages pass 1,000 elements in 1,003 cycles; at depth 1 in 2,002."""
    for depth, cycles in ((2, 1_003), (1, 2_002)):
        with Program("pipeline", channel_depth=depth) as program:
            source = Emit(StreamType((1_000,), NUMBER), [(True, 0)] * 1_000, (0, *[1] * 999))()
            Collect([])(Relay()(Relay()(source)))
        assert cycles == simulate(program).cycles


class _Levels:
    """Stands in front of a sink and changes the stops that pass."""

    def __init__(self, sink: Any, fault: str) -> None:
        self._sink = sink
        self._fault = fault

    def _level(self, level: int) -> int:
        if self._fault == "too low":
            return max(level - 1, 0)
        return level + 1 if level and self._fault == "too high" else level

    async def send(self, element: Any) -> None:
        await self._sink.send((element[0], self._level(element[1])))

    async def send_at(self, element: Any, requested_cycle: int) -> None:
        await self._sink.send_at((element[0], self._level(element[1])), requested_cycle)

    async def send_bare(self, level: int, empty_dimension: int) -> None:
        if self._fault == "left out":
            return
        if self._fault == "empty dimension":
            empty_dimension = max(empty_dimension - 1, 0)
        await self._sink.send_bare(self._level(level), empty_dimension)

    def close(self) -> None:
        self._sink.close()


STOPS = {
    "Flatten": "Flatten",
    "Reshape": "Reshape of an outer dimension",
    "Promote": "Promote",
    "Repeat": "Repeat",
    "Expand": "Expand",
    "Map": "Map",
    "Zip": "Zip",
    "Accum": "Accum",
    "Scan": "Scan",
    "FlatMap": "FlatMap of rank 2",
    "Partition": "Partition",
    "Reassemble": "Reassemble",
    "Parallelize": "Parallelize",
    "Bufferize": "Bufferize and Streamify",
    "Streamify": "Streamify by a reference",
    "LinearOffChipLoad": "LinearOffChipLoad",
    "RandomOffChipLoad": "RandomOffChipLoad",
    "ExpertAddresses": "ExpertAddresses",
    "CacheReadAddresses": "CacheReadAddresses",
    "FilterLastTile": "FilterLastTile",
}
"""From each operator with stops to the cases that check it."""


@pytest.mark.parametrize("fault", ["too low", "too high", "left out", "empty dimension"])
@pytest.mark.parametrize("operator", spread(STOPS, 7))
def test_a_wrong_stop_is_found(operator: str, fault: str) -> None:
    """Whatever stop of whatever operator is wrong, its definition disagrees."""
    kind = getattr(operators, operator)
    run = kind.run

    async def faulty(self: Operator, ports: Ports) -> None:
        sinks: Any = tuple(_Levels(sink, fault) for sink in ports.outputs)
        await run(self, replace(ports, outputs=sinks))

    _sound(STOPS[operator])
    with mock.patch.object(kind, "run", faulty), pytest.raises(AssertionError):
        _defined(STOPS[operator])


async def _nothing(*_: Any) -> None:
    """Do not settle."""


async def _as_it_is(lockstep: Any) -> int:
    """Take the first input's level for all."""
    level: int = lockstep._tracks[0].level
    return level


def _all_rows(self: SplitRows, tile: Tile) -> Any:
    return SplitRows().apply(tile) if self.valid_only else _APPLY(self, tile)


async def _short(self: Reshape, ports: Ports, missing: int, level: int) -> None:
    await _FILL(self, ports, max(missing - 1, 1), level)


async def _last_first(self: Arrivals) -> Any:
    self._shown.reverse()
    source = await _EARLIEST(self)
    self._shown.reverse()
    return source


async def _early(channel: Channel) -> Any:
    element = await _RECEIVE(channel)
    if element is not None:
        channel._returned[-1] -= 1
    return element


def _first_reader(allocation: Allocation, cycle: int) -> None:
    earlier = allocation._done_cycle or cycle
    allocation._done_cycle = 0
    _DONE(allocation, min(earlier, cycle))


def _two_readers() -> None:
    """Whichever of two readers the host runs first, the buffer is held until the later is done."""
    for order in SCHEDULES:
        with schedule(order):
            test_capacity.test_a_buffer_with_two_readers_is_held_until_the_later_is_done()


_APPLY, _FILL, _EARLIEST = SplitRows.apply, Reshape._fill, Arrivals.earliest
_RECEIVE, _DONE = Channel.receive, Allocation.done

FAULTS: dict[str, tuple[Callable[[], AbstractContextManager[Any]], Callable[[], None]]] = {
    "Map does not settle": (
        lambda: mock.patch.object(Lockstep, "_settle", _as_it_is),
        lambda: _defined("Map"),
    ),
    "Zip does not settle": (
        lambda: mock.patch.object(Lockstep, "_settle", _as_it_is),
        lambda: _defined("Zip"),
    ),
    "Accum does not settle": (
        lambda: mock.patch.object(Lockstep, "_settle", _as_it_is),
        lambda: _defined("Accum"),
    ),
    "Expand does not settle": (
        lambda: mock.patch.object(Guided, "_settle", _nothing),
        lambda: _defined("Expand"),
    ),
    "Partition does not settle": (
        lambda: mock.patch.object(Guided, "_settle", _nothing),
        lambda: _defined("Partition"),
    ),
    "Streamify does not settle": (
        lambda: mock.patch.object(Guided, "_settle", _nothing),
        lambda: _defined("Streamify by a reference"),
    ),
    "a buffer forgets what closes it": (
        lambda: mock.patch.object(bufferize, "_close"),
        lambda: _defined("Bufferize and Streamify"),
    ),
    "padding rows are kept": (
        lambda: mock.patch.object(SplitRows, "apply", _all_rows),
        lambda: _defined("FlatMap"),
    ),
    "a padding tile is left out": (
        lambda: mock.patch.object(Reshape, "_fill", _short),
        lambda: _defined("Reshape of the innermost dimension"),
    ),
    "Reassemble breaks a tie the other way": (
        lambda: mock.patch.object(Arrivals, "earliest", _last_first),
        lambda: test_conformance_routing.test_r3_the_earliest_stream_comes_first(
            None, "70|S1 71|S2"
        ),
    ),
    "EagerMerge breaks a tie the other way": (
        lambda: mock.patch.object(
            reassemble, "min", lambda heads: min(heads, key=lambda h: (h[0], -h[1])), create=True
        ),
        test_eager_merge.test_ties_go_to_the_lowest_input,
    ),
    "a credit comes a cycle early": (
        lambda: mock.patch.object(Channel, "receive", _early),
        _pipeline,
    ),
    "a buffer is given back by its first reader": (
        lambda: mock.patch.object(Allocation, "done", _first_reader),
        _two_readers,
    ),
    "a buffer is never given back": (
        lambda: mock.patch.object(Allocation, "done"),
        test_capacity.test_a_buffer_waits_until_the_one_before_it_has_been_read,
    ),
}
"""A fault by its name: what puts it in, and the check that finds it."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str) -> None:
    """The check passes, and fails as soon as the fault is there."""
    fault, check = FAULTS[name]
    check()
    with fault(), pytest.raises(AssertionError):
        check()
