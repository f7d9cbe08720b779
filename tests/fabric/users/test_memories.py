"""Memories of users: what they do wrong is told at their line, and ends the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pytest

from fabric import Hardware, Program, hardware_scope, simulate
from fabric.extend import Burst, OffChipDescription, Unit, register_memory
from fabric.graph.values.fit import MOST_CYCLES
from fabric.messages.telling.errors import FabricError
from fabric.messages.telling.place import Place
from fabric.timing.machine.users_parts import CheckedMemory
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
from tests.schedules import SCHEDULES, schedule


class _Memory:
    """Asks ``advances`` what to answer."""

    bytes_moved = 0
    final_cycle = None

    def __init__(self, description: _Mistaken, _readers: object, _writers: object) -> None:
        self.advances = ADVANCES[description.mistake][0]
        self.under_way: list[Unit] = []

    @property
    def pending(self) -> bool:
        return bool(self.under_way)

    def submit(self, unit: Unit, _burst: Burst) -> None:
        self.under_way.append(unit)

    def served(self, _unit: Unit) -> int:
        return 0

    def advance(self, _horizon_cycle: int) -> Any:
        done, self.under_way = self.under_way, []
        return self.advances(sorted(done, key=lambda unit: unit.name))


@dataclass(frozen=True, kw_only=True)
class _Mistaken(OffChipDescription):
    model: ClassVar[str] = "mistaken"
    request_bytes: int = 1
    peak_bytes_per_cycle: int = 1
    mistake: str = "none"


register_memory(_Mistaken, _Memory)


def _answered(units: list[Unit], cycles: Any) -> list[Unit]:
    for unit in units:
        unit.now += cycles
    return units


def _raises(_units: list[Unit]) -> Any:
    raise RuntimeError("bank 3 is on fire")


ADVANCES: Final[dict[str, tuple[Callable[[list[Unit]], Any], str]]] = {
    "none": (lambda units: _answered(units, 3), ""),
    "raises": (_raises, "RuntimeError: bank 3 is on fire"),
    "nobody": (
        lambda _: [],
        "advance() answers none of 2 bursts, and nothing else goes on: expected at least one",
    ),
    "nothing": (lambda _: None, "TypeError: 'NoneType' object is not iterable"),
    "twice": (
        lambda units: _answered(units[:1], 3) * 2,
        "advance() answers first: expected units that have a burst under way, once each",
    ),
    "another": (
        lambda units: [*units, 7],
        "advance() answers 7: expected units that have a burst under way, once each",
    ),
    "early": (
        lambda units: _answered(units, -2),
        "-2 is the cycle in which first is answered: expected at least 0",
    ),
    "half": (
        lambda units: _answered(units, 0.5),
        "0.5 is the cycle in which first is answered: expected an integer",
    ),
}


_ADVANCE: Final = _Memory.advance.__code__.co_firstlineno
_RAISING: Final = _raises.__code__.co_firstlineno + 1


def _program(mistake: str) -> Program:
    with hardware_scope(Hardware(hbm=_Mistaken(mistake=mistake))), Program("two") as program:
        for name in ("first", "second"):
            load = LinearOffChipLoad(Tensor((4, 4)), (2, 2), name=name)
            LinearOffChipStore(f"y_{name}")(load())
    return program


class TestMistakes:
    @pytest.mark.parametrize("mistake", [name for name in ADVANCES if name != "none"])
    def test_message(self, mistake: str) -> None:
        """What it did and where, the same under every schedule."""
        told = set()
        for order in SCHEDULES:
            with schedule(order):
                report = simulate(_program(mistake))
            assert report.status == "error"
            assert report.error is not None
            told.add((report.error["message"], report.error["line"]))

        ((message, line),) = told
        assert f"memory 'mistaken': {ADVANCES[mistake][1]}, at cycle 0" == message
        assert line == (_RAISING if mistake == "raises" else _ADVANCE)

    def test_before(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Who is answered in an earlier cycle than it asked in is told both."""

        def back(units: list[Unit]) -> list[Unit]:
            return _answered(units, 3 if units[0].now == 0 else -1)

        monkeypatch.setitem(ADVANCES, "before", (back, ""))
        report = simulate(_program("before"))
        assert report.error is not None
        assert report.error["message"] == (
            "memory 'mistaken': first is answered in cycle 2: expected 3, in which it asked, or a "
            "later one, at cycle 3"
        )

    def test_none(self) -> None:
        """Clocks that are set by hand count as waits, too."""
        report = simulate(_program("none"))

        assert report.status == "completed"
        waited = {unit.name: unit.hbm_cycles for unit in report.units}
        assert {4 * 3} == set(waited.values())


class _ByHand(_Memory):
    """Answers, each time it advances, whom ``answers`` says in which cycles."""

    def __init__(self, *answers: dict[Unit, int]) -> None:
        self.answers = [*answers]
        self.under_way = []
        self.counts: object = None

    def advance(self, _horizon_cycle: int) -> list[Unit]:
        done = self.answers.pop(0)
        for unit, cycle in done.items():
            unit.now = cycle
        return [*done]

    def counters(self) -> object:
        return self.counts


def _checked(
    *answers: tuple[int, ...],
) -> tuple[CheckedMemory, _ByHand, list[Unit], list[tuple[int, str]]]:
    """Return a memory with a burst of each of three units, asked for in cycles 9, 5 and 7."""
    told: list[tuple[int, str]] = []

    def keep(cycle: int, error: FabricError) -> None:
        told.append((cycle, error.message))

    place = Place("program.py", 1)
    units = [Unit(name, at, place, bytes_per_cycle=1) for at, name in enumerate("abc")]
    inner = _ByHand(*(dict(zip(units, cycles, strict=False)) for cycles in answers))
    memory = CheckedMemory(inner, "mine", 3, keep)
    for unit, now in zip(units, (9, 5, 7), strict=True):
        unit.now = now
        memory.submit(unit, Burst(0, 1, 1, 1, write=False))
    return memory, inner, units, told


def test_answers_by_hand() -> None:
    """Nobody may be answered as long as something else goes on; who is may be at once.

    What a memory does not know of itself is told at the latest cycle in which it answered.
    """
    memory, inner, units, told = _checked((), (9, 20, 11))
    assert memory.advance(MOST_CYCLES - 1) == []
    assert memory.pending
    assert memory.advance(30) == units
    assert [unit.now for unit in units] == [9, 20, 11]
    assert [unit.off_chip_cycles for unit in units] == [0, 15, 4]
    assert (memory.pending, memory.counters(), told) == (False, None, [])
    inner.counts = 3
    assert memory.counters() is None
    assert told == [
        (20, "memory 'mine': counters() returns 3: expected MemoryCounters or None, at cycle 20")
    ]
    inner.bytes_moved = 7
    assert (memory.bytes_moved, memory.final_cycle, memory.served(units[0])) == (0, None, 0)


def test_none_by_hand() -> None:
    """Where nothing else goes on somebody has to be answered: since the first one asked."""
    memory, inner, _, told = _checked(())
    inner.bytes_moved = 7
    assert (memory.bytes_moved, memory.pending) == (7, True)
    assert memory.advance(MOST_CYCLES) == []
    assert told == [
        (
            5,
            "memory 'mine': advance() answers none of 3 bursts, and nothing else goes on: expected "
            "at least one, at cycle 5",
        )
    ]
    assert (memory.bytes_moved, memory.pending) == (0, False)
