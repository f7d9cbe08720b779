from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import pytest
from typing_extensions import override

from fabric import Program, simulate
from fabric.extend import Element, Observer, Unit, Watched
from fabric.timing.engine.observer import Sent, Stamp, Taken, Transferred
from tests.deadlock.parts import Script, source
from tests.fabric.trace.recording import PROGRAMS, program, record
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule

Note: TypeAlias = tuple[object, ...]


@dataclass
class _Notes(Observer):
    by_unit: dict[str, list[tuple[int, Note]]] = field(default_factory=dict)
    dropped: list[tuple[str, int]] = field(default_factory=list)

    @override
    def watch(self, channel: Watched) -> Transferred:
        def transferred(element: Element, sent: Sent, seen: Stamp, taken: Taken | None) -> None:
            # Only the cycles of ``sent`` after its number: with a reservation it has two numbers.
            self._note(channel.producer, sent[:3], "send", channel.name, element[1], *sent[3::2])
            self._note(channel.consumer, seen, "see", channel.name, element[1])
            if taken is not None:
                self._note(channel.consumer, taken, "take", channel.name, element[1])

        return transferred

    @override
    def left_over(
        self, channel: Watched, element: Element, sent: Sent, seen: Stamp | None, cycle: int
    ) -> None:
        self._note(channel.producer, sent[:3], "send", channel.name, element[1], *sent[3::2])
        self.dropped.append((channel.name, cycle))

    @override
    def idled(self, channel: Watched, stamp: Stamp, until_cycle: int) -> None:
        self._note(channel.consumer, stamp, "idle", channel.name, until_cycle)

    @override
    def ended(self, channel: Watched, stamp: Stamp) -> None:
        self._note(channel.consumer, stamp, "end", channel.name)

    @override
    def burst(self, unit: Unit, requests: int, stamp: Stamp) -> None:
        self._note(unit, stamp, "burst", requests)

    @override
    def allocated(self, unit: Unit, size_bytes: int, stamp: Stamp) -> None:
        self._note(unit, stamp, "allocate", size_bytes)

    def _note(self, unit: Unit, stamp: Sequence[int], *what: object) -> None:
        self.by_unit.setdefault(unit.name, []).append((stamp[0], (*stamp[1:], *what)))

    @property
    def notes(self) -> dict[str, list[Note]]:
        return {unit: [what for _, what in sorted(each)] for unit, each in self.by_unit.items()}


class TestRuns:
    @pytest.mark.parametrize("order", spread(SCHEDULES, 1))
    @pytest.mark.parametrize("name", spread(["simplified_moe", "moe regions", "attention"], 1))
    def test_observers_are_told_the_same_under_every_schedule(
        self, name: str, order: str | int, tmp_path: Path
    ) -> None:
        alone, first, second = _Notes(), _Notes(), _Notes()
        plain = simulate(program(name), observers=[alone])
        with schedule(order):
            report, _ = record(program(name), tmp_path, observers=[first, second])

        assert plain == replace(report, log_dir=None, wall_seconds=plain.wall_seconds)
        assert alone.notes == first.notes == second.notes

    @pytest.mark.parametrize("name", spread(PROGRAMS, 3))
    def test_observed_waits_are_all_waits(self, name: str) -> None:
        notes = _Notes()
        report = simulate(program(name), observers=[notes])
        waited: dict[str, int] = {}
        for unit, noted in notes.notes.items():
            # A dequeue of an element that was seen before does not wait, and notes no wait.
            waited[unit] = sum(what[1] for what in noted if isinstance(what[1], int))

        assert waited == {
            unit.name: unit.empty_cycles + unit.full_cycles + unit.credit_cycles
            + unit.hbm_cycles + unit.capacity_cycles
            for unit in report.units
        }  # fmt: skip

    @pytest.mark.parametrize("order", SCHEDULES)
    def test_elements_left_over_are_observed(self, order: str | int) -> None:
        notes = _Notes()
        with Program("left over") as wired:
            Script(("r0", "c10"), rounds=1, counts=(), name="y")(source("x", 5))
        with schedule(order):
            simulate(wired, observers=[notes])

        assert [("x.0 -> y.0", cycle) for cycle in (11, 11, 13, 14)] == notes.dropped
        assert [0, 1, 2, 12, 13] == [cycle for cycle, *_ in notes.notes["x"]]
