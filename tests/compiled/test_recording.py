"""What an operator does is written down, or else it is left to tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from unittest import mock

import numpy as np
import pytest
from typing_extensions import override

from fabric import Program, Tile, simulate
from fabric.extend import Ports
from fabric.timing.compiled.stand_ins import Recording
from operators import Flatten, Metadata, Promote, Repeat
from operators.tiles.integers import integer
from tests.compiled.both import both, described, run
from tests.compiled.turning import GIVE_UP, Turning, numbers
from tests.operators.driving import Collect


@pytest.mark.parametrize("name", GIVE_UP)
def test_gives_up(name: str, tmp_path: Path) -> None:
    """What cannot be written down is done by tasks, and all that is said is theirs."""
    found = both(lambda: numbers(GIVE_UP[name]), tmp_path)

    assert found.gave_up


@dataclass(frozen=True)
class Late(Turning):
    """Sends each element when it has seen the next, without a look at the numbers."""

    conducted: ClassVar[bool] = True
    turns: ClassVar[bool] = True
    carries_numbers: ClassVar[bool] = True

    @override
    async def run(self, ports: Ports) -> None:
        source, sink = ports.source, ports.sink
        while (element := await source.receive()) is not None:
            await source.peek()
            await sink.send(element)
            ports.turn()


@dataclass(frozen=True)
class Hoarding(Turning):
    """The same, with the element among what it keeps."""

    conducted: ClassVar[bool] = True
    turns: ClassVar[bool] = True
    carries_numbers: ClassVar[bool] = True

    @override
    async def run(self, ports: Ports) -> None:
        source, sink = ports.source, ports.sink
        kept = await source.receive()
        while kept is not None:
            ports.turn(kept)
            element = await source.receive()
            await sink.send(kept)
            kept = element


@pytest.mark.parametrize("kind", [Late, Hoarding])
def test_number_before_last(kind: type[Turning], tmp_path: Path) -> None:
    """The loop knows the number that was looked at last: an older one is left to tasks."""
    found = both(lambda: numbers(kind(None)), tmp_path)

    assert found.gave_up


def numbers_seen(operator: Promote | Turning, folder: Path) -> list[list[object]]:
    """Return what comes out of ``operator`` for a few numbers, as tasks and compiled."""
    seen: list[list[object]] = []

    def build() -> Program:
        with Program("numbers", mode="timing") as program:
            for values in ([3, 1, 4, 1, 5], [7], [2**31, 0, 2**40, 2**31 - 1]):
                seen.append([])
                numbers = Flatten(0, 1)(Metadata(np.array(values))())
                Collect(seen[-1])(Repeat(2)(operator(numbers)))
        return program

    found = both(build, folder)
    assert found.compiled
    return [described(each) for each in seen]


@pytest.mark.parametrize("operator", [Promote(), Promote(0), Promote(1)])
def test_numbers_behind_a_look_ahead(operator: Promote, tmp_path: Path) -> None:
    """A Promote, which looks at the next element before it sends one, sends each number."""
    seen = numbers_seen(operator, tmp_path)

    assert seen[:3] == seen[3:]


def test_too_little_said(tmp_path: Path) -> None:
    """An operator that keeps what it does not say does something else: the comparison tells."""

    async def counts(ports: Ports, number: int, _: Tile) -> None:
        ports.unit.charge(number)

    with pytest.raises(AssertionError):
        both(lambda: numbers(Turning(counts), (1, 1, 1, 1)), tmp_path)


def test_all_said(tmp_path: Path) -> None:
    """The same operator that says it."""

    async def counts(ports: Ports, number: int, _: Tile) -> int:
        ports.unit.charge(number)
        return number

    found = both(lambda: numbers(Turning(counts), (1, 1, 1, 1)), tmp_path)
    assert (found.gave_up, found.compiled) == (False, 2)


def test_clock_mutated(tmp_path: Path) -> None:
    """A recording that does not know when the clock moves is found out."""

    async def asks_late(ports: Ports, _: int, __: Tile) -> None:
        start = ports.unit.now
        ports.unit.charge(5)
        await ports.sink.send_at((integer(1), 0), start + 3)
        await ports.sink.send_at((integer(1), 0), start + 40)

    def build() -> Program:
        return numbers(Turning(asks_late))

    assert not both(build, tmp_path).gave_up
    with mock.patch.object(Recording, "moved"), pytest.raises(AssertionError):
        both(build, tmp_path)


def test_looks_mutated(tmp_path: Path) -> None:
    """A recording that does not know which number was looked at last is found out."""
    with mock.patch.object(Recording, "check_shown"):
        seen = numbers_seen(Late(None), tmp_path)

    assert seen[:3] != seen[3:]


def test_tasks_are_asked_for(tmp_path: Path) -> None:
    """With ``engine="tasks"``, in functional mode and with observers nothing is compiled."""
    assert not run(lambda: numbers(GIVE_UP["reads the clock"]), "tasks", tmp_path).compiled
    program = numbers(GIVE_UP["keeps a clock"])
    assert simulate(program, mode="functional").status == "completed"
